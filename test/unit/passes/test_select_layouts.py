"""`select-layouts` against brute force: random declared graphs with nested control flow."""

import itertools
import math
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block

from braid.analysis.execution_counts import ExecutionCounts
from braid.analysis.layout_costs import LayoutCosts
from braid.analysis.remarks import collect_remarks
from braid.frontends.mlir import parse_mlir
from braid.passes.layout.flow import Chooser, collect_flow
from braid.passes.manager import run_pipeline
from braid.targets.target import load_target
from braid.universe import make_context

LAYOUTS = ("l0", "l1", "l2")
TYPE = "tensor<4xf32>"
MAX_ASSIGNMENTS = 200


@st.composite
def graphs(draw: st.DrawFn) -> str:
    milliseconds = st.integers(0, 9)
    reorders = ", ".join(
        f'{{source = "{a}", target = "{b}", cost = {draw(st.integers(1, 4))}.0e-3 : f64}}'
        for a, b in itertools.permutations(LAYOUTS, 2)
    )
    lines: list[str] = []

    def choices(reads: int) -> str:
        picked = draw(st.lists(st.sampled_from(LAYOUTS), min_size=1, max_size=3, unique=True))
        entries: list[str] = []
        for made in picked:
            names = ", ".join(f'"{draw(st.sampled_from(LAYOUTS))}"' for _ in range(reads))
            cost = f"{draw(milliseconds)}.0e-3 : f64"
            entries.append(f'{{operands = [{names}], results = ["{made}"], cost = {cost}}}')
        return ", ".join(entries)

    def op(values: list[str]) -> None:
        reads = [
            draw(st.sampled_from(values)) for _ in range(min(len(values), draw(st.integers(0, 2))))
        ]
        types = ", ".join(TYPE for _ in reads)
        name = f"%v{len(lines)}"
        lines.append(
            f'{name} = braid.opaque "o"({", ".join(reads)}) {{layouts = [{choices(len(reads))}]}}'
            f" : ({types}) -> {TYPE}"
        )
        values.append(name)

    def block(values: list[str], depth: int, size: int) -> str:
        values = list(values)
        op(values)
        for _ in range(size):
            if depth < 2 and draw(st.integers(0, 3)) == 0:
                control_flow(values, depth)
            else:
                op(values)
        return values[-1]

    def control_flow(values: list[str], depth: int) -> None:
        name = f"%v{len(lines)}"
        if draw(st.booleans()):
            lines.append(f"{name} = scf.if %c -> ({TYPE}) {{")
            probability = draw(st.integers(0, 4)) / 4
            for close in ("} else {", f"}} {{braid.branch_probability = {probability} : f64}}"):
                lines.append(f"scf.yield {block(values, depth + 1, 0)} : {TYPE}")
                lines.append(close)
        else:
            start, carried = draw(st.sampled_from(values)), f"%i{len(lines)}"
            lines.append(
                f"{name} = scf.for {carried}n = %lo to %hi step %hi "
                f"iter_args({carried} = {start}) -> ({TYPE}) {{"
            )
            lines.append(f"scf.yield {block([*values, carried], depth + 1, 0)} : {TYPE}")
            lines.append(f"}} {{braid.trip_count = {draw(st.integers(0, 4))}.0 : f64}}")
        values.append(name)

    block([], 0, draw(st.integers(1, 4)))
    body = "\n".join(lines)
    return (
        f"module attributes {{braid.reorder_costs = [{reorders}]}} {{\n"
        f"func.func @main(%c: i1, %lo: index, %hi: index) {{\n{body}\nfunc.return }} }}"
    )


class BruteForce:
    """The least cost over all assignments, by the definition."""

    def __init__(self, module: ModuleOp) -> None:
        (func,) = (op for op in module.ops if isinstance(op, FuncOp))
        self.costs = LayoutCosts(module, load_target().backends[0], "seconds")
        self.counts = ExecutionCounts.of(module)
        self.choosers = collect_flow(func, self.costs).choosers

    def assignments(self) -> int:
        return math.prod(len(chooser.costs) for chooser in self.choosers)

    def least(self) -> float:
        options = (range(len(chooser.costs)) for chooser in self.choosers)
        return min(self.cost(a) for a in itertools.product(*options))

    def cost(self, assignment: tuple[int, ...]) -> float:
        total = 0.0
        wanted: dict[object, dict[Block, set[str]]] = {}
        made: dict[object, tuple[str, Block]] = {}
        for chooser, option in zip(self.choosers, assignment, strict=True):
            total += self.counts.of_block(chooser.block) * chooser.costs[option]
            self._note(chooser, option, wanted, made)
        for value, (layout, home) in made.items():
            total += self._spread(home, frozenset([layout]), wanted.get(value, {}), home)
        return total

    def _note(
        self,
        chooser: Chooser,
        option: int,
        wanted: dict[object, dict[Block, set[str]]],
        made: dict[object, tuple[str, Block]],
    ) -> None:
        for port in chooser.makes:
            made[port.value] = port.layouts[option].tag, port.block
        for port in chooser.reads:
            blocks = wanted.setdefault(port.value, {})
            blocks.setdefault(port.block, set()).add(port.layouts[option].tag)

    def _spread(
        self, block: Block, have: frozenset[str], wanted: Mapping[Block, set[str]], home: Block
    ) -> float:
        """Least cost of the reorders in `block` and below, if `have` is available around."""
        children = {c for user in wanted for c in [_child(block, user)] if c is not None}
        best = math.inf
        for more in _subsets(set(LAYOUTS) - have):
            now = have | more
            if wanted.get(block, set()) <= now:
                here = self.counts.of_block(block) * self._extend(have, more)
                below = sum(self._spread(c, now, wanted, home) for c in children)
                best = min(best, here + below)
        return best

    def _extend(self, have: frozenset[str], more: frozenset[str]) -> float:
        return min(
            sum(
                min(self._reorder(s, t) for s in (*have, *order[:index]))
                for index, t in enumerate(order)
            )
            for order in itertools.permutations(more)
        )

    def _reorder(self, source: str, target: str) -> float:
        return self.costs._declared_reorders[source, target]  # pyright: ignore[reportPrivateUsage]


def _subsets(items: set[str]) -> Iterator[frozenset[str]]:
    for size in range(len(items) + 1):
        yield from map(frozenset, itertools.combinations(sorted(items), size))


def _child(block: Block, user: Block) -> Block | None:
    """The block directly in `block` that contains `user`, None if `user` is not nested in it."""
    current: Block | None = user
    while current is not None:
        parent = current.parent_op()
        outer = parent.parent if parent is not None else None
        if outer is block:
            return current
        current = outer
    return None


@settings(max_examples=20, deadline=None)
@given(graphs())
def test_the_choice_is_the_best_of_all(text: str) -> None:
    context = make_context()
    module = parse_mlir(context, text, "g.mlir").module
    brute = BruteForce(module)
    assume(brute.assignments() <= MAX_ASSIGNMENTS)
    with collect_remarks() as remarks:
        run_pipeline(context, module, "select-layouts")
    (remark,) = remarks
    assert remark.data["cost"] == pytest.approx(brute.least(), rel=1e-9, abs=1e-12)
    assert remark.data["gap"] == 0
    run_pipeline(context, module, "apply-layouts")
