"""`select-rematerialization` by thresholds against all choices there are, on random functions.

Decisions are verified, applied, and executed where there are no opaque ops. `make test` takes the
first hundreds of seeds, `make slow` twelve thousand.
"""

from collections import Counter
from random import Random
from typing import cast

import numpy as np
import pytest
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from braid.analysis.diagnostics.remarks import collect_remarks
from braid.analysis.interpreter import interpret
from braid.analysis.structure.verification import verify_module
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.decision_checks import verifying_decisions
from braid.passes.infrastructure.manager import run_pipeline
from braid.universe import make_context
from test.unit.passes.rematerialization.random_programs import ARGUMENTS, random_program
from test.unit.passes.rematerialization.thresholds_by_hand import (
    ByHand,
    Choice,
    Edge,
    Options,
    kind,
    leaf_readers,
    seen,
    size,
)

MOST = 9
"""Functions with a block of more picked edges are left out: all subsets are tried."""

Sets = dict[tuple[SSAValue, Operation], frozenset[Operation]]
"""Tensor and the op that computes with it -> what is recomputed for that."""


def blocks_of(module: ModuleOp) -> list[Block]:
    return [block for op in module.walk() for region in op.regions for block in region.blocks][1:]


def options_for(random: Random, blocks: list[Block]) -> Options:
    """Options whose limits are at, or one below, sizes and peaks that occur."""
    everything = random.random() < 0.4
    sizes = [size(result) for block in blocks for op in block.ops for result in op.results]
    hands = [ByHand(block, Options(everything=everything)) for block in blocks]
    peaks = [hand.live(op) for hand in hands for op in hand.ops]
    used = random.randint(1, 15)

    def limit(bit: int, values: list[int]) -> int | None:
        return max(random.choice([0, *values]) - random.randint(0, 1), 0) if used & bit else None

    jumps = [max(first - second, 0) for first in sizes[:9] for second in sizes[:9]]
    mode = random.choice(["union", "union", "all"])
    jump = limit(4, jumps)
    return Options(limit(1, sizes), limit(2, peaks), jump, bool(used & 8), mode, everything)


def expected_choices(blocks: list[Block], options: Options) -> list[tuple[ByHand, Choice]] | None:
    """Return the only choice for each block; None if there are too many to try."""
    found: list[tuple[ByHand, Choice]] = []
    for block in blocks:
        hand = ByHand(block, options)
        picked: list[Edge] = [edge for edge in set(hand.edges()) if hand.is_picked(*edge)]
        if len(picked) > MOST:
            return None
        choices = hand.choices(picked)
        assert len(choices) == 1
        sets = choices[0].sets.values()
        if any(sum(kind(op) == "matmul" for op in members) > 1 for members in sets):
            return None  # A set has one product; which one is not said by hand.
        found.append((hand, choices[0]))
    return found


def of_all_blocks(choices: list[tuple[ByHand, Choice]]) -> Sets:
    """Return the sets for ops in regions too; operands of a copy there are copied with it."""
    wanted: Sets = {}
    gone = set[Operation]()
    for hand, choice in reversed(choices):
        for (value, reader), members in choice.sets.items():
            for op in leaf_readers(value, reader):
                wanted |= {k: found | members for k, found in wanted.items() if op in found}
                if op not in gone:
                    wanted[value, op] = members
        gone |= set(hand.ops) - choice.stay
    return wanted


def decided(module: ModuleOp) -> Sets:
    """Return the sets in attributes."""
    members: dict[int, list[Operation]] = {}
    for op in module.walk():
        for number in _numbers(op, "braid.recompute_sets"):
            members.setdefault(number, []).append(op)
    found: Sets = {}
    numbers = set[int]()
    for op in module.walk():
        for value, number in zip(
            op.operands, _numbers(op, "braid.recompute_operands"), strict=False
        ):
            if number >= 0:
                found[seen(value), op] = frozenset(members.get(number, ()))
                numbers.add(number)
    assert numbers == members.keys() and len(found) == len(numbers)
    return found


def _numbers(op: Operation, name: str) -> tuple[int, ...]:
    attribute = op.attributes.get(name)
    return () if attribute is None else cast(DenseArrayBase, attribute).get_values()


def names(ops: list[Operation]) -> Counter[str]:
    given = (op.attributes.get("braid.name") for op in ops if op.name != "braid.reshape")
    return Counter(name.data for name in given if isinstance(name, StringAttr))


def outputs(module: ModuleOp) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    inputs = [np.array(True), np.array(2)]
    inputs += [random.integers(-9, 9, shape).astype(np.float32) for _, shape in ARGUMENTS]
    return interpret(module, inputs)


def unread(module: ModuleOp) -> int:
    """Ops that make something that nothing reads."""
    made = (op for op in module.walk() if op.results and not op.regions)
    return sum(all(result.first_use is None for result in op.results) for op in made)


def require_only_copies(module: ModuleOp, limit: int | None) -> None:
    """Check that values larger than `limit` are not stored, unless a block yields them."""
    for op in module.walk():
        if limit is None or op.regions or "braid.recomputed" in op.attributes:
            continue
        for result in op.results if op.name not in ("braid.constant", "braid.reshape") else ():
            if size(result) > limit:
                readers = _readers(result)
                assert not readers or any(map(_is_end, readers)), f"{op} is stored"


def _readers(value: SSAValue) -> list[Operation]:
    users = [use.operation for use in value.uses]
    shown = [r for user in users if user.name == "braid.reshape" for r in _readers(user.results[0])]
    return [user for user in users if user.name != "braid.reshape"] + shown


def _is_end(op: Operation) -> bool:
    return op.next_op is None


def check(seed: int) -> bool:
    """Whether the function of `seed` was small enough; asserts that its sets are the right ones."""
    text, is_opaque = random_program(seed)
    module = parse_mlir(make_context(), text, f"{seed}.mlir").module
    blocks = blocks_of(module)
    options = options_for(Random(seed), blocks)
    expected = expected_choices(blocks, options)
    with collect_remarks(), verifying_decisions():
        select = f"select-rematerialization{{{options.text()}}}"
        run_pipeline(make_context(), module, select)
    if expected is not None:
        wanted = of_all_blocks(expected)
        assert decided(module) == wanted, f"seed {seed}: {options.text()}"
        copies = sum((names(list(members)) for members in wanted.values()), Counter[str]())
        stay = names([op for hand, choice in expected for op in choice.stay])
        constants = names([op for op in module.walk() if op.name == "braid.constant"])
    else:
        wanted, copies, stay, constants = {}, Counter[str](), Counter[str](), Counter[str]()
    before = unread(module)
    with collect_remarks(), verifying_decisions():
        run_pipeline(make_context(), module, "apply-rematerialization")
    verify_module(module)
    assert unread(module) <= before, f"seed {seed}: {options.text()}"
    if options.mode == "union" and options.peak is None and "matmul" not in text:
        require_only_copies(module, options.tensor)
    if expected is not None:
        ops = [op for op in module.walk() if op.name != "braid.constant"]
        again = [op for op in ops if "braid.recomputed" in op.attributes]
        assert names(again) == copies, f"seed {seed}: {options.text()}"
        assert names([op for op in ops if op not in again]) == stay, f"seed {seed}"
        assert not constants
    if not is_opaque:
        original = parse_mlir(make_context(), text, f"{seed}.mlir").module
        for actual, right in zip(outputs(module), outputs(original), strict=True):
            np.testing.assert_array_equal(actual, right, err_msg=f"seed {seed}")
    assert any(isinstance(op, FuncOp) for op in module.ops)
    return expected is not None


def test_dozens_of_functions() -> None:
    assert sum(map(check, range(60))) > 40


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 30 * 400, 400))
def test_thousands_of_functions(first: int) -> None:
    assert sum(map(check, range(first, first + 400))) > 200
