"""The time to find groups of tiles is linear in the number of ops, whatever their shape."""

from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from braid.analysis.tiles.tile_sizes import tile_sizes
from braid.dialects.braid.attribute_names import FUSION_GROUP
from braid.frontends.mlir import parse_mlir
from braid.passes.fusion.fusion_rules import FusionRules, fusion_rules
from braid.passes.fusion.select_fusion import SelectFusionPass
from braid.passes.fusion.select_tiles import tile_groups
from braid.universe import make_context

TYPE = "tensor<1024x4096xf32>"
SMALL = "tensor<16x16xf32>"


def module(lines: list[str], type: str, result: str) -> ModuleOp:
    """Return a function of one argument `%x`."""
    body = "\n".join(lines)
    text = f"func.func @main(%x: {type}) -> {type} {{\n{body}\nfunc.return {result} : {type}\n}}"
    return parse_mlir(make_context(), text, "test.mlir").module


def chain(length: int, type: str = SMALL) -> ModuleOp:
    values = ["%x", *(f"%v{i}" for i in range(length))]
    lines = [f"%v{i} = braid.neg {values[i]} : ({type}) -> {type}" for i in range(length)]
    return module(lines, type, values[-1])


def chain_behind_softmax(length: int) -> ModuleOp:
    """Return a pair of ops that is faster as tiles, and a chain after it."""
    values = ["%x", *(f"%v{i}" for i in range(length))]
    lines = [
        f"%v{i} = braid.neg {values[i]} : ({TYPE}) -> {TYPE}"
        if i != 1
        else f"%v1 = braid.softmax %v0 {{dim = 1 : i64}} : ({TYPE}) -> {TYPE}"
        for i in range(length)
    ]
    return module(lines, TYPE, values[-1])


def grid(length: int) -> ModuleOp:
    side = int(length**0.5)
    lines = [
        f"%g{i}_{j} = braid.add {f'%g{i - 1}_{j}' if i else '%x'}, "
        f"{f'%g{i}_{j - 1}' if j else '%x'} : ({SMALL}, {SMALL}) -> {SMALL}"
        for i in range(side)
        for j in range(side)
    ]
    return module(lines, SMALL, f"%g{side - 1}_{side - 1}")


class Counting(FusionRules):
    """The default rules, which count how often they are asked."""

    asked = 0

    def joins_tiles(self, *arguments: object) -> bool:
        type(self).asked += 1
        return super().joins_tiles(*arguments)  # type: ignore


def groups(made: ModuleOp) -> tuple[int, list[int]]:
    """Return how often rules were asked, and the lengths of the groups."""
    given = fusion_rules("default")
    rules = Counting(given.pairs, given.anchors, given.tiles)
    Counting.asked = 0
    function = next(op for op in made.walk() if isinstance(op, FuncOp))
    found = tile_groups(function.body.block, rules)
    return Counting.asked, [len(group) for group in found]


@pytest.mark.parametrize("make", [chain, grid])
def test_questions_grow_with_the_ops(make: Callable[[int], ModuleOp]) -> None:
    (few, none), (many, still_none) = groups(make(100)), groups(make(1600))
    assert none == still_none == []
    assert few >= 90 and many <= 20 * few


def test_a_group_is_found_at_the_start_of_a_chain() -> None:
    assert groups(chain_behind_softmax(40))[1] == [40]


def test_of_a_long_chain_only_the_end_is_a_group() -> None:
    asked, lengths = groups(chain_behind_softmax(600))
    assert lengths == [256]
    assert asked < 4 * 600


def test_long_chains_become_groups_of_256() -> None:
    made = chain(600)
    SelectFusionPass().apply(make_context(), made)
    members = [op for op in made.walk() if op.name == "braid.neg"]
    numbers = Counter(str(op.attributes[FUSION_GROUP]) for op in members)
    assert sorted(numbers.values()) == [88, 256, 256]


def test_equal_groups_are_cut_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers of a model have the same groups; another extent or attribute is another group."""
    from braid.passes.fusion import select_tiles

    searched: list[SSAValue] = []

    def counted(members: Sequence[Operation], result: SSAValue) -> tuple[int, ...] | None:
        searched.append(result)
        return tile_sizes(members, result)

    monkeypatch.setattr(select_tiles, "tile_sizes", counted)

    def searches_and_groups(pairs: list[int]) -> tuple[int, int]:
        searched.clear()
        lines = [
            f"%n{i} = braid.neg %x : ({TYPE}) -> {TYPE}\n"
            f"%s{i} = braid.softmax %n{i} {{dim = {dim} : i64}} : ({TYPE}) -> {TYPE}"
            for i, dim in enumerate(pairs)
        ]
        last = len(pairs) - 1
        (function,) = module(lines, TYPE, f"%s{last}").body.block.ops
        assert isinstance(function, FuncOp)
        groups = tile_groups(function.body.block, fusion_rules("default"))
        return len(searched), len(groups)

    one, (each, groups) = searches_and_groups([1]), searches_and_groups([1] * 6)
    assert (each, groups) == (one[0], 6 * one[1]) and groups
    other = searches_and_groups([0])
    assert searches_and_groups([1, 0, 1, 0]) == (one[0] + other[0], 2 * (one[1] + other[1]))
