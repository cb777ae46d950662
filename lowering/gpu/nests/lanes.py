"""The body of a nest for neighbours that one thread computes, each op as seldom as possible.

Values that are the same for all neighbours are computed once. Adjacent elements in memory are read
by the widest accesses that are known to be aligned, also inside of a branch that all of them take.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any, TypeAlias, cast

from xdsl.builder import Builder
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from braid.lowering.common.element_types import constant
from braid.lowering.common.tensor_loops import index_constant
from braid.lowering.gpu.nests.wide_access import element_of, load_vector


@dataclass(frozen=True)
class Following:
    """A number and those that follow it: the first is a multiple of `multiple`."""

    first: SSAValue
    multiple: int


Lanes: TypeAlias = SSAValue | Following | Sequence[SSAValue]
"""A value of the body: one for all neighbours, numbers that follow each other, or one each."""


def wide_lanes(
    builder: Builder, buffer: SSAValue, index: Sequence[SSAValue], width: int, piece: int
) -> list[SSAValue]:
    """Load `width` elements from `index` on, by accesses of `piece`."""
    lanes: list[SSAValue] = []
    for start in range(0, width, piece):
        place = [*index[:-1], index_plus(builder, index[-1], start)]
        loaded = load_vector(builder, buffer, place, piece)
        lanes += [element_of(builder, loaded, n) for n in range(piece)]
    return lanes


def scattered_lanes(
    builder: Builder,
    buffer: SSAValue,
    index: Sequence[SSAValue],
    offsets: Sequence[int],
    piece: int,
) -> list[SSAValue]:
    """Load the elements at these distances from `index`, by accesses of `piece`, each of
    them once.
    """
    found: dict[int, list[SSAValue]] = {}
    for start in sorted({offset // piece * piece for offset in offsets}):
        place = [*index[:-1], index_plus(builder, index[-1], start)]
        found[start] = wide_lanes(builder, buffer, place, piece, piece)
    return [found[offset // piece * piece][offset % piece] for offset in offsets]


class LaneBody:
    """Emits a body; `values` are those of its arguments, `index` that of a dim of the nest."""

    def __init__(
        self,
        builder: Builder,
        width: int,
        values: Mapping[SSAValue, Lanes],
        index: Callable[[Builder, int], Lanes],
    ) -> None:
        self._builder = builder
        self._width = width
        self._values: dict[SSAValue, Lanes] = dict(values)
        self._index = index

    def results(self, block: Block) -> list[list[SSAValue]]:
        """Return the yielded values of the block: for each result, one value per neighbour."""
        for op in block.ops:
            if isinstance(op, linalg.YieldOp | scf.YieldOp):
                return [self._each(value) for value in op.operands]
            self._emit(op)
        raise AssertionError("a body yields")

    def _emit(self, op: Operation) -> None:
        match op:
            case linalg.IndexOp():
                self._values[op.result] = self._index(self._builder, op.dim.value.data)
            case memref.LoadOp() if (piece := self._piece(op)) > 1:
                *outer, inner = (self._values.get(index, index) for index in op.indices)
                assert isinstance(inner, Following)
                place = [*cast(Sequence[SSAValue], outer), inner.first]
                self._values[op.res] = wide_lanes(
                    self._builder, op.memref, place, self._width, piece
                )
            case arith.IndexCastOp() if isinstance(number := self._values.get(op.input), Following):
                first = self._builder.insert(arith.IndexCastOp(number.first, op.result.type))
                self._values[op.result] = Following(first.result, number.multiple)
            case arith.AddiOp() | arith.SubiOp() if (moved := self._moved(op)) is not None:
                self._values[op.results[0]] = moved
            case scf.IfOp() if self._is_shared(op.cond):
                self._branch(op)
            case _:
                self._clone(op)

    def _is_shared(self, value: SSAValue) -> bool:
        return isinstance(self._values.get(value, value), SSAValue)

    def _piece(self, op: memref.LoadOp) -> int:
        """Return how many neighbours are read by one access; 1 where they do not lie so."""
        type = cast(MemRefType[Any], op.memref.type)
        strides, offset = type.get_strides(), type.get_offset()
        if not op.indices or strides is None or offset is None or strides[-1] != 1:
            return 1
        *outer, inner = (self._values.get(index, index) for index in op.indices)
        if not isinstance(inner, Following) or not all(isinstance(v, SSAValue) for v in outer):
            return 1
        known = [
            int(s or 0) for s, extent in zip(strides, type.get_shape(), strict=True) if extent > 1
        ]
        steps = known[:-1] if type.get_shape()[-1] > 1 else known
        return gcd(self._width, inner.multiple, offset, *steps)

    def _moved(self, op: arith.AddiOp | arith.SubiOp) -> Following | None:
        """Return consecutive numbers, plus or minus one that is the same for all."""
        left, right = (self._values.get(operand, operand) for operand in op.operands)
        if isinstance(op, arith.AddiOp) and isinstance(right, Following):
            left, right = right, left
        if not isinstance(left, Following) or not isinstance(right, SSAValue):
            return None
        multiple = 1
        if isinstance(by := right.owner, arith.ConstantOp) and isinstance(by.value, IntegerAttr):
            multiple = gcd(left.multiple, cast("IntegerAttr[Any]", by.value).value.data)
        first = self._builder.insert(type(op)(left.first, right)).results[0]
        return Following(first, multiple)

    def _branch(self, op: scf.IfOp) -> None:
        """Emit a branch that all neighbours take; each of its results becomes one for each
        neighbour.
        """
        types = [result.type for result in op.results for _ in range(self._width)]
        regions: list[Region] = []
        for region in op.regions:
            block = Block()
            if region.blocks:
                inside = Builder(InsertPoint.at_end(block))
                lanes = LaneBody(inside, self._width, self._values, self._index)
                found = lanes.results(region.block)
                inside.insert(scf.YieldOp(*(value for each in found for value in each)))
            regions.append(Region(block if region.blocks else []))
        condition = self._values.get(op.cond, op.cond)
        made = self._builder.insert(
            scf.IfOp(cast(SSAValue, condition), types, regions[0], regions[1])
        )
        for number, result in enumerate(op.results):
            start = number * self._width
            self._values[result] = list(made.results[start : start + self._width])

    def _clone(self, op: Operation) -> None:
        """Clone an op once if its operands are the same for all neighbours, else for each of
        them."""
        inner = {result for each in op.walk() for result in each.results}
        inner |= {a for each in op.walk() for r in each.regions for b in r.blocks for a in b.args}
        used = {value for each in op.walk() for value in each.operands} - inner
        reads_index = any(isinstance(each, linalg.IndexOp) for each in op.walk())
        if not reads_index and all(map(self._is_shared, used)):
            made = self._builder.insert(op.clone(self._lane(used, 0)))
            self._values.update(zip(op.results, made.results, strict=True))
            return
        copies: list[Operation] = []
        for lane in range(self._width):
            copy = self._builder.insert(op.clone(self._lane(used, lane)))
            self._replace_indices(copy, lane)
            copies.append(copy)
        for number, result in enumerate(op.results):
            self._values[result] = [copy.results[number] for copy in copies]

    def _lane(self, used: set[SSAValue], lane: int) -> dict[SSAValue, SSAValue]:
        return {
            value: self._at(self._values[value], lane) for value in used if value in self._values
        }

    def _replace_indices(self, copy: Operation, lane: int) -> None:
        """Replace the indices within an op with regions that is copied for a neighbour."""
        for op in [op for op in copy.walk() if isinstance(op, linalg.IndexOp)]:
            before = Builder(InsertPoint.before(copy))
            number = self._at(self._index(before, op.dim.value.data), lane, before)
            op.result.replace_all_uses_with(number)
            op.detach()
            op.erase()

    def _each(self, value: SSAValue) -> list[SSAValue]:
        lanes = self._values.get(value, value)
        return [self._at(lanes, lane) for lane in range(self._width)]

    def _at(self, lanes: Lanes, lane: int, builder: Builder | None = None) -> SSAValue:
        if isinstance(lanes, SSAValue):
            return lanes
        if isinstance(lanes, Following):
            return index_plus(builder or self._builder, lanes.first, lane)
        return lanes[lane]


def index_plus(builder: Builder, index: SSAValue, number: int) -> SSAValue:
    """Return `index` plus `number`."""
    if number == 0:
        return index
    is_index = isinstance(index.type, IndexType)
    by = index_constant(builder, number) if is_index else constant(builder, number, index.type)
    return builder.insert(arith.AddiOp(index, by)).result
