"""The loops of a transposing copy: tiles are turned in registers, memory is read in lines."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from braid.analysis.nests.dims import LoopDim
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.register_transpose import (
    deinterleaved,
    interleaved,
    transposed,
)
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of

Strip = Callable[[Index, Index], None]
"""Moves the elements at a position of a dim, for a number of positions."""


@dataclass(frozen=True)
class TransposeLoops:
    """Moves elements from source to target, whose innermost dims are different ones.

    Dims have strides in source and target: 1 in the source for `lines`, 1 in the target for
    `columns`. A grid iteration moves at most `chunk` positions of the dim that vectors of the
    outer loop run along; `chunk` is a multiple of `lanes`.
    """

    outer: tuple[LoopDim[Extent], ...]
    lines: LoopDim[Extent]
    columns: LoopDim[Extent]
    lanes: int
    chunk: int

    @property
    def interleaves(self) -> bool:
        """Return whether a few lines are woven into one contiguous piece of the target."""
        return self._are_few(self.columns) and self.lines.strides[1] == self.columns.extent

    @property
    def deinterleaves(self) -> bool:
        """Return whether a contiguous piece of the source is taken apart into a few lines."""
        few = self._are_few(self.lines) and not self.interleaves
        return few and self.columns.strides[0] == self.lines.extent

    def _are_few(self, dim: LoopDim[Extent]) -> bool:
        return isinstance(dim.extent, int) and dim.extent <= self.lanes // 2

    @property
    def _long(self) -> LoopDim[Extent]:
        """The dim that is shared among grid iterations."""
        return self.columns if self.deinterleaves else self.lines

    @property
    def grid_extents(self) -> tuple[Extent, ...]:
        """Outer dims, then chunks."""
        return (*(dim.extent for dim in self.outer), -(-self._long.extent // self.chunk))

    @property
    def grid(self) -> Extent:
        """Iterations of the grid."""
        return product_of(self.grid_extents)

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """Compute one chunk: whole vectors, then the remainder under masks."""
        *outer, number = e.coordinates(index, self.grid_extents)
        bases = (
            e.dot(outer, [dim.strides[0] for dim in self.outer]),
            e.dot(outer, [dim.strides[1] for dim in self.outer]),
        )
        writer = _Writer(self, e, buffers[0], buffers[-1], bases)
        if self.interleaves:
            self._along(e, number, writer.woven)
        elif self.deinterleaves:
            self._along(e, number, writer.taken_apart)
        else:
            # Few lines of the source at a time, each for many vectors, so that it is prefetched.
            writer.for_columns(
                lambda column, columns: self._along(
                    e, number, lambda line, lines: writer.tile(line, lines, column, columns)
                )
            )

    def _along(self, e: Emitter, number: Index, strip: Strip) -> None:
        """Emit `strip` for the whole vectors of a chunk, and for the remainder in the last one."""
        extent = self._long.extent
        tail = extent % self.lanes
        start = e.mul(number, self.chunk)
        stop = e.minimum(e.add(start, self.chunk), extent - tail)
        if extent != tail:
            e.loop(start, stop, self.lanes, lambda position: strip(position, self.lanes))
        if tail != 0:
            last = self.grid_extents[-1] - 1
            left = partial(_left, e, extent, self.lanes, strip)
            e.branch(number, last, lambda: None, left)


@dataclass(frozen=True)
class _Writer:
    """Moves pieces of one vector's length; `bases` are offsets in source and target."""

    loops: TransposeLoops
    e: Emitter
    source: Buffer
    target: Buffer
    bases: tuple[Index, Index]

    def for_columns(self, body: Strip) -> None:
        """Emit `body` for every vector of columns, given the first column and their number."""
        extent, lanes = self.loops.columns.extent, self.loops.lanes
        tail = extent % lanes
        if extent != tail:
            self.e.loop(0, extent - tail, lanes, lambda column: body(column, lanes))
        if tail != 0:
            _left(self.e, extent, lanes, body)

    def tile(self, line: Index, lines: Index, column: Index, columns: Index) -> None:
        """Transpose `lines` positions of `lines` and `columns` of `columns`."""
        e, lanes = self.e, self.loops.lanes
        mask_lines, mask_columns = e.tail_mask(lines), e.tail_mask(columns)
        places: list[Index] = list(range(columns if isinstance(columns, int) else lanes))
        if not isinstance(columns, int):  # The last one replaces missing ones.
            places = [e.minimum(place, e.sub(columns, 1)) for place in places]
        rows = [
            self.source.load(e, self._source(line, e.add(column, place)), mask_lines)
            for place in places
        ]
        for i, vector in enumerate(transposed(e, rows)):

            def store(i: int = i, vector: Value = vector) -> None:
                offset = self._target(e.add(line, i), column)
                self.target.store(e, vector, offset, mask_columns)

            e.branch(i, lines, store, lambda: None)

    def woven(self, position: Index, count: Index) -> None:
        """Interleave `count` positions of `lines` for all `columns`: one piece of the target."""
        columns = self.loops.columns.extent
        assert isinstance(columns, int)
        mask = self.e.tail_mask(count)
        rows = [self.source.load(self.e, self._source(position, i), mask) for i in range(columns)]
        start = self._target(position, 0)
        vectors = interleaved(self.e, rows)
        masks = self._masks(columns, self.e.mul(count, columns))
        for vector, (offset, mask) in zip(vectors, masks, strict=False):
            self.target.store(self.e, vector, self.e.add(start, offset), mask)

    def taken_apart(self, position: Index, count: Index) -> None:
        """Take apart `count` positions of `columns` for all `lines`: one piece of the source."""
        e, lines = self.e, self.loops.lines.extent
        assert isinstance(lines, int)
        start = self._source(0, position)
        vectors = [
            self.source.load(e, e.add(start, offset), mask)
            for offset, mask in self._masks(lines, e.mul(count, lines))
        ]
        vectors += vectors[:1] * (lines - len(vectors))  # Their elements are masked.
        mask = self.e.tail_mask(count)
        for i, vector in enumerate(deinterleaved(e, vectors)):
            self.target.store(e, vector, self._target(i, position), mask)

    def _masks(self, vectors: int, count: Index) -> list[tuple[int, Value | None]]:
        """Return the offsets and masks of those contiguous vectors that hold `count` elements."""
        most = vectors * self.loops.lanes
        end = min(most, count) if isinstance(count, int) else most
        return [
            (offset, self.e.tail_mask(self.e.sub(count, offset)))
            for offset in range(0, end, self.loops.lanes)
        ]

    def _source(self, line: Index, column: Index) -> Index:
        return self._offset(0, line, column)

    def _target(self, line: Index, column: Index) -> Index:
        return self._offset(1, line, column)

    def _offset(self, tensor: int, line: Index, column: Index) -> Index:
        dims = [self.loops.lines.strides[tensor], self.loops.columns.strides[tensor]]
        return self.e.add(self.bases[tensor], self.e.dot([line, column], dims))


def _left(e: Emitter, extent: Extent, lanes: int, strip: Strip) -> None:
    """Emit `strip` for the remainder after the last whole vector of a dim, if there is any."""
    e.loop(extent - extent % lanes, extent, lanes, lambda at: strip(at, e.sub(extent, at)))
