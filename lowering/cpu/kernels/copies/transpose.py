"""The loops of a transposing copy: tiles are turned in registers, memory is read in lines."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from braid.analysis.nests.dims import LoopDim
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.register_transpose import (
    deinterleaved,
    interleaved,
    transposed,
)


@dataclass(frozen=True)
class TransposeLoops:
    """Moves elements from source to target, whose innermost dims are different ones.

    Dims have strides in source and target: 1 in the source for `lines`, 1 in the target for
    `columns`. A grid iteration moves at most `chunk` positions of the dim that vectors of the
    outer loop run along; `chunk` is a multiple of `lanes`.
    """

    outer: tuple[LoopDim, ...]
    lines: LoopDim
    columns: LoopDim
    lanes: int
    chunk: int

    @property
    def interleaves(self) -> bool:
        """Whether a few lines are woven into one contiguous piece of the target."""
        few = self.columns.extent <= self.lanes // 2
        return few and self.lines.strides[1] == self.columns.extent

    @property
    def deinterleaves(self) -> bool:
        """Whether a contiguous piece of the source is taken apart into a few lines."""
        few = self.lines.extent <= self.lanes // 2
        return few and not self.interleaves and self.columns.strides[0] == self.lines.extent

    @property
    def _long(self) -> LoopDim:
        """The dim that is shared among grid iterations."""
        return self.columns if self.deinterleaves else self.lines

    @property
    def grid_extents(self) -> tuple[int, ...]:
        """Outer dims, then chunks."""
        return (*(dim.extent for dim in self.outer), -(-self._long.extent // self.chunk))

    @property
    def grid(self) -> int:
        """Iterations of the grid."""
        return math.prod(self.grid_extents)

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """One chunk: whole vectors, then what is left under masks."""
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

    def _along(self, e: Emitter, number: Index, strip: Callable[[Index, int], None]) -> None:
        """`strip` for the whole vectors of a chunk, and for what is left in the last one."""
        extent = self._long.extent
        tail = extent % self.lanes
        start = e.mul(number, self.chunk)
        stop = e.minimum(e.add(start, self.chunk), extent - tail)
        if extent >= self.lanes:
            e.loop(start, stop, self.lanes, lambda position: strip(position, self.lanes))
        if tail:
            last = self.grid_extents[-1] - 1
            e.branch(number, last, lambda: None, lambda: strip(extent - tail, tail))


@dataclass(frozen=True)
class _Writer:
    """Moves pieces of one vector's length; `bases` are offsets in source and target."""

    loops: TransposeLoops
    e: Emitter
    source: Buffer
    target: Buffer
    bases: tuple[Index, Index]

    def for_columns(self, body: Callable[[Index, int], None]) -> None:
        """`body` for every vector of columns: the first one and how many there are."""
        extent, lanes = self.loops.columns.extent, self.loops.lanes
        whole = extent - extent % lanes
        if whole:
            self.e.loop(0, whole, lanes, lambda column: body(column, lanes))
        if whole < extent:
            body(whole, extent - whole)

    def tile(self, line: Index, lines: int, column: Index, columns: int) -> None:
        """Turns `lines` positions of `lines` and `columns` of `columns`."""
        mask_lines, mask_columns = self.e.tail_mask(lines), self.e.tail_mask(columns)
        rows = [
            self.source.load(self.e, self._source(line, self.e.add(column, i)), mask_lines)
            for i in range(columns)
        ]
        for i, vector in enumerate(transposed(self.e, rows)[:lines]):
            offset = self._target(self.e.add(line, i), column)
            self.target.store(self.e, vector, offset, mask_columns)

    def woven(self, position: Index, count: int) -> None:
        """`count` positions of `lines` for all `columns`: one piece of the target."""
        columns = self.loops.columns.extent
        mask = self.e.tail_mask(count)
        rows = [self.source.load(self.e, self._source(position, i), mask) for i in range(columns)]
        start = self._target(position, 0)
        for offset, vector, mask in self._piece(interleaved(self.e, rows), count * columns):
            self.target.store(self.e, vector, self.e.add(start, offset), mask)

    def taken_apart(self, position: Index, count: int) -> None:
        """`count` positions of `columns` for all `lines`: one piece of the source."""
        e, lines = self.e, self.loops.lines.extent
        start = self._source(0, position)
        vectors = [
            self.source.load(e, e.add(start, offset), mask)
            for offset, mask in self._masks(lines, count * lines)
        ]
        vectors += vectors[:1] * (lines - len(vectors))  # What they hold is masked.
        mask = self.e.tail_mask(count)
        for i, vector in enumerate(deinterleaved(e, vectors)):
            self.target.store(e, vector, self._target(i, position), mask)

    def _piece(self, vectors: Sequence[Value], count: int) -> list[tuple[int, Value, Value | None]]:
        """Those of the vectors that hold the first `count` elements, with offset and mask."""
        masks = self._masks(len(vectors), count)
        return [(o, v, m) for v, (o, m) in zip(vectors, masks, strict=False)]

    def _masks(self, vectors: int, count: int) -> list[tuple[int, Value | None]]:
        """Offset and mask of those of some contiguous vectors that hold `count` elements."""
        return [
            (offset, self.e.tail_mask(count - offset))
            for offset in range(0, min(vectors * self.loops.lanes, count), self.loops.lanes)
        ]

    def _source(self, line: Index, column: Index) -> Index:
        return self._offset(0, line, column)

    def _target(self, line: Index, column: Index) -> Index:
        return self._offset(1, line, column)

    def _offset(self, tensor: int, line: Index, column: Index) -> Index:
        dims = [self.loops.lines.strides[tensor], self.loops.columns.strides[tensor]]
        return self.e.add(self.bases[tensor], self.e.dot([line, column], dims))
