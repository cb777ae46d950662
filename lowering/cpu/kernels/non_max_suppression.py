"""Non-maximum suppression: candidates are sorted by their digits, and each is compared with those
taken before it, a vector of boxes at a time.

Each iteration handles a class of one image. Its scratch memory has keys and indices of the
candidates, twice, the counts of digits, and the corners and areas of the chosen boxes, a row for
each.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i1, i32, i64
from xdsl.ir import BlockArgument, SSAValue

from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import boxes_of
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.box_selection import NonMaxSuppressionOp
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.regions import FusedOp
from braid.lowering.common.emitted_dialects import memref, vector
from braid.lowering.cpu.kernels.groups.vector_family import SizedFamily, VectorCandidate
from braid.lowering.cpu.kernels.selection.keys import key_of
from braid.lowering.cpu.kernels.selection.sorting import (
    DIGIT_VALUES,
    Keyed,
    digits_of,
    sort_many,
)
from braid.lowering.cpu.kernels.selection.words import Words
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.compare import at_least, at_most, compare
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.support.sizes.expression import Extent
from braid.targets.kernels.flexible_layouts import flexible_choices
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule

_WORD = i32
_LINE = 16
"""Words of a line of the cache."""
_ROWS = 5
"""The numbers that are kept of a box, in a row each: two corners and the area."""

_LOOKED = 3.0
"""Cycles for a box whose score is looked at."""
_SORTED = 60.0
"""Cycles for a candidate to be sorted, by four digits."""


@dataclass(frozen=True)
class NonMaxSuppressionFamily(SizedFamily):
    """A suppression alone in its group, row-major."""

    name: str = "non-max-suppression"
    version: int = 1
    anchors: ClassVar = (NonMaxSuppressionOp,)

    def match(self, group: FusedOp, extents_of: ExtentsOf = shape_of) -> "NonMaxSuppression | None":
        """Match one suppression whose results are all returned, of any shape."""
        ops = [op for op in group.body.block.ops if not isinstance(op, ConstantOp)]
        op = ops[0]
        if not isinstance(op, NonMaxSuppressionOp) or len(ops) != 2 or boxes_of(group):
            return None
        operands = tuple(map(_operand, op.operands))
        if tuple(group.terminator.arguments) != tuple(op.results) or not (
            isinstance(operands[0], int) and isinstance(operands[1], int)
        ):
            return None
        batches, classes, boxes = extents_of(op.scores)
        most = extents_of(op.indices)[2]
        unit = self.unit.for_elements(bytes_of(_WORD))
        centered = bool(op.centered.value.data)
        scores = (batches, classes, boxes)
        return NonMaxSuppression(group, unit, operands, scores, most, centered)


def _operand(value: SSAValue) -> int | float:
    """Return which operand of the group a value is, or the number that it is."""
    if isinstance(value, BlockArgument):
        return value.index
    assert isinstance(value.owner, ConstantOp)
    (values,) = value.owner.evaluate()
    return float(values.reshape(-1)[0])


@dataclass(frozen=True, eq=False)
class NonMaxSuppression(VectorCandidate):
    """The operands, the shape of the scores, how many boxes of a class are taken, and their form.

    Boxes and scores are operands of the group by number; thresholds are that, or floats.
    """

    operands: tuple[int | float, ...]
    scores: tuple[Extent, Extent, Extent]
    most: Extent
    centered: bool

    def choices(self) -> Sequence[LayoutChoice]:
        """Return row-major layouts."""
        return flexible_choices(self.group)[:1]

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the seconds of one pass over the scores, a sort, and each box against as many as
        may be taken.
        """
        batches, classes, boxes = (extent for extent in self.scores if isinstance(extent, int))
        assert isinstance(self.most, int), "costs are at likely sizes"
        compared = _ROWS * min(self.most, boxes) / self.unit.lanes
        cycles = batches * classes * boxes * (_LOOKED + _SORTED + compared)
        clock = self.unit.fma_rate / self.unit.multiply_adds
        return cycles / clock + self.moving_seconds(choice)

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Emit one class of one image in each iteration."""
        batches, classes, _ = self.scores

        def iteration(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            batch, _ = e.divmod(index, classes)
            _Suppression(e, self, buffers, batch, index).emit()

        grid, scratch = batches * classes, self._words * bytes_of(_WORD)
        return grid_kernel(self.group, symbol, self.unit, grid, iteration, scratch_bytes=scratch)

    @property
    def stride(self) -> Extent:
        """Words of an array with an entry for each box: whole lines."""
        return _whole_lines(self.scores[2])

    @property
    def row(self) -> Extent:
        """Words of a row of the mask of kept boxes; a vector may be read at its end."""
        return _whole_lines(self.most + self.unit.lanes)

    @property
    def counts(self) -> int:
        """Words of the counts of digits."""
        return digits_of(_WORD) * DIGIT_VALUES

    @property
    def _words(self) -> Extent:
        return 4 * self.stride + self.counts + _ROWS * self.row


def _whole_lines(words: Extent) -> Extent:
    return words + _LINE - words % _LINE


@dataclass(frozen=True)
class _Box:
    """Corners and area of one box, or of one in each lane."""

    low: tuple[Value, Value]
    high: tuple[Value, Value]
    area: Value


class _Suppression:
    """Emits the suppression of one class of one image."""

    def __init__(
        self,
        e: Emitter,
        candidate: NonMaxSuppression,
        buffers: Sequence[Buffer],
        batch: Index,
        line: Index,
    ) -> None:
        """Begin at class number `line`, counted over all images."""
        self._e, self._own = e, candidate
        boxes, scores, *thresholds = candidate.operands
        self._boxes, self._scores = buffers[int(boxes)], buffers[int(scores)]
        self._overlap, self._least = (
            buffers[own].load_scalar(e, 0) if isinstance(own, int) else e.constant(own, f32)
            for own in thresholds
        )
        self._indices, self._counts, self._scratch = buffers[-3:]
        count = candidate.scores[2]
        self._first_box = e.mul(batch, count * 4)
        self._first_score = e.mul(line, count)
        self._line = line
        arrays = [Words(self._scratch, i * candidate.stride) for i in range(4)]
        self._all, self._spare = Keyed(arrays[0], arrays[1]), Keyed(arrays[2], arrays[3])
        self._digits = Words(self._scratch, 4 * candidate.stride)
        begin = 4 * candidate.stride + candidate.counts
        self._rows: list[Extent] = [begin + i * candidate.row for i in range(_ROWS)]

    def emit(self) -> None:
        """Emit everything: candidates, their order, the selection, and the results."""
        e, own = self._e, self._own
        count = self._collect()
        sort_many(e, self._all, count, self._spare, self._digits)
        zero = e.constant(0.0, e.vector_type(f32))
        for row in self._rows:
            # Lanes after the last box have one of no area, which overlaps none.
            e.loop(
                0, own.row, e.lanes, lambda i, row=row: self._scratch.store(e, zero, e.add(row, i))
            )
        first = self._indices
        begin = e.mul(self._line, own.most)

        def look(place: Index, taken: Sequence[Value]) -> Sequence[Value]:
            is_left = e.insert(arith.CmpiOp(taken[0], e.index(own.most), "ult"))
            return e.replaced(is_left, taken, lambda: compared(place, taken[0]))

        def compared(place: Index, taken: Value) -> Sequence[Value]:
            number = self._all.numbers.load_index(e, place)
            box = self._box(number)
            overlaps = self._overlaps_any(box, taken)
            is_free = e.apply(arith.XOrIOp, overlaps, e.constant(1, i1))
            return e.replaced(is_free, [taken], lambda: [take(box, number, taken)])

        def take(box: _Box, number: Value, taken: Value) -> Value:
            for row, value in zip(self._rows, (*box.low, *box.high, box.area), strict=True):
                self._store(value, self._scratch, e.add(row, taken))
            self._store(_wide(e, number), first, e.add(begin, taken))
            return e.index(e.add(taken, 1))

        (taken,) = e.carry(0, count, 1, [e.index(0)], look)
        none = e.constant(0, i64)
        e.loop(taken, own.most, 1, lambda i: self._store(none, first, e.add(begin, i)))
        self._store(_wide(e, taken), self._counts, self._line)

    def _collect(self) -> Value:
        """Emit the search for candidates; return how many there are."""
        e = self._e
        least = self._least
        takes_all = compare(e, "uno", least, least)

        def look(number: Index, found: Sequence[Value]) -> Sequence[Value]:
            score = self._scores.load_scalar(e, e.add(self._first_score, number))
            is_above = e.apply(arith.OrIOp, takes_all, compare(e, "ogt", score, least))
            return e.replaced(is_above, found, lambda: [put(score, number, found[0])])

        def put(score: Value, number: Index, found: Value) -> Value:
            self._all.keys.store(e, key_of(e, score, f32, largest=True), found)
            self._all.numbers.store_index(e, number, found)
            return e.index(e.add(found, 1))

        (count,) = e.carry(0, self._own.scores[2], 1, [e.index(0)], look)
        return count

    def _box(self, number: Value) -> _Box:
        """Emit the corners of a box, the lower one first, and the box's area."""
        e = self._e
        at = e.add(self._first_box, e.mul(number, 4))
        a, b, c, d = (self._boxes.load_scalar(e, e.add(at, i)) for i in range(4))
        if self._own.centered:
            half = e.constant(0.5, f32)
            x, y = (e.apply(arith.MulfOp, size, half) for size in (c, d))
            low = (e.apply(arith.SubfOp, a, x), e.apply(arith.SubfOp, b, y))
            high = (e.apply(arith.AddfOp, a, x), e.apply(arith.AddfOp, b, y))
        else:
            low = (at_most(e, a, c), at_most(e, b, d))
            high = (at_least(e, a, c), at_least(e, b, d))
        sides = [e.apply(arith.SubfOp, h, g) for h, g in zip(high, low, strict=True)]
        return _Box(low, high, e.apply(arith.MulfOp, *sides))

    def _overlaps_any(self, box: _Box, taken: Value) -> Value:
        """Emit whether a box overlaps one of those that are taken too much, an i1."""
        e = self._e
        spread = _Box(
            (e.broadcast(box.low[0]), e.broadcast(box.low[1])),
            (e.broadcast(box.high[0]), e.broadcast(box.high[1])),
            e.broadcast(box.area),
        )
        most = e.broadcast(self._overlap)

        def among(place: Index, found: Sequence[Value]) -> Sequence[Value]:
            values = [self._scratch.load(e, e.add(row, place)) for row in self._rows]
            other = _Box((values[0], values[1]), (values[2], values[3]), values[4])
            return [e.apply(arith.OrIOp, found[0], _is_above(e, spread, other, most))]

        none = e.constant(0, e.vector_type(i1))
        (found,) = e.carry(0, taken, e.lanes, [none], among)
        some = {"kind": vector.CombiningKindAttr(vector.CombiningKindFlag.OR)}
        return e.make(vector.ReductionOp, [found], i1, some)

    def _store(self, value: Value, buffer: Buffer, at: Index) -> None:
        self._e.effect(memref.StoreOp.get(value, buffer.ref, [self._e.index(at)]))


def _is_above(e: Emitter, box: _Box, other: _Box, most: Value) -> Value:
    """Emit whether the intersection over union is above `most`; boxes without area never are."""
    zero = e.constant(0.0, most.type)
    sides: list[Value] = []
    for axis in range(2):
        low = at_least(e, box.low[axis], other.low[axis])
        high = at_most(e, box.high[axis], other.high[axis])
        sides.append(at_least(e, e.apply(arith.SubfOp, high, low), zero))
    common = e.apply(arith.MulfOp, *sides)
    union = e.apply(arith.SubfOp, e.apply(arith.AddfOp, box.area, other.area), common)
    return compare(e, "ogt", e.apply(arith.DivfOp, common, union), most)


def _wide(e: Emitter, index: Value) -> Value:
    return e.make(arith.IndexCastOp, [index], i64)
