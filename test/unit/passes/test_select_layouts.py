"""`select-layouts` against brute force: random declared graphs with nested control flow."""

import itertools
import math
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block

from braid.analysis.diagnostics.remarks import collect_remarks
from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.dialects.braid.layout import Layout
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.layout.flow import LayoutVariable, collect_flow
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.layout_costs import LayoutCosts
from braid.targets.machines.load import load_target
from braid.universe import make_context
from test.unit.passes.declared_graphs import DeclaredGraph

LAYOUTS = ("l0", "l1", "l2")
EXTENT = 4
VECTOR = TensorType(f32, [EXTENT])
MAX_ASSIGNMENTS = 200


@st.composite
def graphs(draw: st.DrawFn) -> str:
    """Ops on vectors of one size, with branches and loops up to two deep."""
    reorders = {
        pair: f"{draw(st.integers(1, 4))}.0e-3" for pair in itertools.permutations(LAYOUTS, 2)
    }
    graph = DeclaredGraph(draw, LAYOUTS, reorders, [f"{cost}.0e-3" for cost in range(10)])
    _block(graph, [], 0, draw(st.integers(1, 4)))
    return graph.text()


def _block(graph: DeclaredGraph, values: list[str], depth: int, size: int) -> str:
    values = [*values, _op(graph, values)]
    for _ in range(size):
        if depth == 2 or graph.draw(st.integers(0, 3)):
            values.append(_op(graph, values))
        elif graph.draw(st.booleans()):
            values.append(_if(graph, values, depth))
        else:
            values.append(_for(graph, values, depth))
    return values[-1]


def _op(graph: DeclaredGraph, values: list[str]) -> str:
    count = min(len(values), graph.draw(st.integers(0, 2)))
    reads = [(graph.draw(st.sampled_from(values)), EXTENT) for _ in range(count)]
    made = graph.draw(st.lists(st.sampled_from(LAYOUTS), min_size=1, max_size=3, unique=True))
    return graph.op(reads, made, EXTENT)


def _if(graph: DeclaredGraph, values: list[str], depth: int) -> str:
    name = graph.begin_if(EXTENT)
    probability = graph.draw(st.integers(0, 4)) / 4
    for close in ("} else {", f"}} {{braid.branch_probability = {probability} : f64}}"):
        graph.end(_block(graph, values, depth + 1, 0), EXTENT, close)
    return name


def _for(graph: DeclaredGraph, values: list[str], depth: int) -> str:
    name, carried = graph.begin_for(graph.draw(st.sampled_from(values)), EXTENT)
    last = _block(graph, [*values, carried], depth + 1, 0)
    trips = graph.draw(st.integers(0, 4))
    graph.end(last, EXTENT, f"}} {{braid.trip_count = {trips}.0 : f64}}")
    return name


class BruteForce:
    """The least cost over all assignments, by the definition."""

    def __init__(self, module: ModuleOp) -> None:
        (func,) = (op for op in module.ops if isinstance(op, FuncOp))
        self.costs = LayoutCosts(module, CostSource(load_target()), "seconds")
        self.counts = ExecutionCounts.of(module)
        self.variables = collect_flow(func, self.costs).variables

    def assignments(self) -> int:
        return math.prod(len(variable.costs) for variable in self.variables)

    def least(self) -> float:
        options = (range(len(variable.costs)) for variable in self.variables)
        return min(self.cost(a) for a in itertools.product(*options))

    def cost(self, assignment: tuple[int, ...]) -> float:
        total = 0.0
        wanted: dict[object, dict[Block, set[str]]] = {}
        made: dict[object, tuple[str, Block]] = {}
        for variable, option in zip(self.variables, assignment, strict=True):
            total += self.counts.of_block(variable.block) * variable.costs[option]
            self._note(variable, option, wanted, made)
        for value, (layout, home) in made.items():
            total += self._spread(home, frozenset([layout]), wanted.get(value, {}), home)
        return total

    def _note(
        self,
        variable: LayoutVariable,
        option: int,
        wanted: dict[object, dict[Block, set[str]]],
        made: dict[object, tuple[str, Block]],
    ) -> None:
        for port in variable.makes:
            made[port.value] = port.layouts[option].tag, port.block
        for port in variable.reads:
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
        return self.costs.reorder(VECTOR, Layout.named(source), Layout.named(target))


def _subsets(items: set[str]) -> Iterator[frozenset[str]]:
    for size in range(len(items) + 1):
        yield from map(frozenset, itertools.combinations(sorted(items), size))


def _child(block: Block, user: Block) -> Block | None:
    """Return the block directly in `block` that contains `user`, None if `user` is not nested in
    it."""
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
