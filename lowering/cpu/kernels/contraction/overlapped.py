"""Matrix products that are written over their left operand, which is smaller than the result.

Diagonal memory optimisation (Blacker, Bridges, Hadfield: "Diagonal Memory Optimisation for Machine
Learning on Micro-controllers", 2020) lets an operand overlap the result as long as each element is
read before it is written over. Row r of C = A · B needs row r of A only, so the rows of A, which
are packed at the beginning of C, are first moved to the ends of the rows of C. All columns before
are computed as ever, B being read once. The last columns, which A overlaps now, are computed for a
few rows at a time, from a copy of these rows of A.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from braid.analysis.nests.contraction import Contraction
from braid.dialects.braid.buffer import aligned
from braid.lowering.cpu.kernels.contraction.kernel import ContractionKernel, TileWriter
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.rows import each

_COPIED_ROWS = 8
"""Rows of A that are copied at once, at most: B's last columns are read again for each copy."""


def can_overlap(nest: Contraction) -> bool:
    """Return whether A and C have dense rows, A's are no longer, and one B serves all of them."""
    row, depth, columns = nest.row, nest.depth, nest.columns
    return (
        not nest.outer
        and row.extent > 1
        and depth <= columns
        and (row.strides[0], row.strides[-1]) == (depth, columns)
        and len(nest.points.results) == 1
        and nest.slabs is None
        and not nest.in_place
        and all(leaf.index != nest.a for leaf in nest.points.leaves)
    )


@dataclass(frozen=True)
class OverlappedGemm:
    """Emits `plain`, whose nest `can_overlap`, such that A may begin where C does.

    One iteration moves A, one per tile of the columns before A follows, the last one computes the
    rest. The last argument of the kernel is scratch of elements as A's, of `element_bytes` each.
    """

    plain: ContractionKernel
    element_bytes: int = 4

    @property
    def operand(self) -> int:
        """A."""
        return self.plain.nest.a

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch memory for the copied rows."""
        return aligned(self.element_bytes * self._copied_rows * self.plain.nest.depth)

    @property
    def grid(self) -> int:
        """Iterations in all."""
        return self._tiles + 2

    @property
    def barriers(self) -> tuple[int, ...]:
        """The iterations that wait for all before them."""
        return (1, self._tiles + 1) if self._tiles else (1,)

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """Move A and compute a tile, or all tiles that would write over A."""

        def tile() -> None:
            in_result = [*buffers]
            in_result[self.plain.nest.a] = buffers[-2]
            self._before.iteration(e, in_result[:-1], e.sub(index, 1))

        def after_move() -> None:
            if self._tiles:
                e.branch(index, self._tiles + 1, tile, lambda: self._compute_last(e, buffers))
            else:
                self._compute_last(e, buffers)

        e.branch(index, 1, lambda: self._move(e, buffers), after_move)

    @property
    def _gap(self) -> int:
        """Columns of C before A's rows."""
        return self.plain.nest.columns - self.plain.nest.depth

    @property
    def _whole_blocks(self) -> int:
        """Column blocks that end before A's rows begin."""
        return self._gap // self.plain.block

    @property
    def _copied_rows(self) -> int:
        return min(self.plain.nest.row.extent, self.plain.tile.rows, _COPIED_ROWS)

    @property
    def _tiles(self) -> int:
        return self._before.grid

    @cached_property
    def _before(self) -> ContractionKernel:
        """The matmul for the columns before A's rows, which are read at the ends of C's rows."""
        nest = self.plain.nest
        row = replace(nest.row, strides=(nest.columns, *nest.row.strides[1:]))
        columns = self._whole_blocks * self.plain.block
        moved = replace(nest, row=row, columns=columns, a_start=self._gap)
        return replace(self.plain, nest=moved)

    def _move(self, e: Emitter, buffers: Sequence[Buffer]) -> None:
        """Move the rows of A to the ends of the rows of C, from the last one backwards: no target
        is before its source, so nothing is overwritten before it is read.
        """
        nest, source, target = self.plain.nest, buffers[self.plain.nest.a], buffers[-2]
        depth, last = nest.depth, nest.row.extent - 1
        whole = depth - depth % e.lanes

        def move_row(step: Index) -> None:
            row = e.sub(last, step)
            begin = e.mul(row, depth)
            end = e.add(e.mul(row, nest.columns), self._gap)

            def move(position: Index, mask: Value | None) -> None:
                value = source.load(e, e.add(begin, position), mask)
                target.store(e, value, e.add(end, position), mask)

            if whole < depth:
                move(whole, e.mask(depth - whole))
            if whole:
                e.loop(0, whole, e.lanes, lambda i: move(e.sub(whole - e.lanes, i), None))

        e.loop(0, nest.row.extent, 1, move_row)

    def _compute_last(self, e: Emitter, buffers: Sequence[Buffer]) -> None:
        """Compute the columns in which the rows of A are stored, a few rows at a time."""
        extent, step = self.plain.nest.row.extent, self._copied_rows
        whole = extent - extent % step
        e.loop(0, whole, step, lambda first: self._compute_rows(e, buffers, first, step))
        if whole < extent:
            self._compute_rows(e, buffers, whole, extent - whole)

    def _compute_rows(
        self, e: Emitter, buffers: Sequence[Buffer], first: Index, count: int
    ) -> None:
        *tensors, scratch = buffers
        nest = self.plain.nest
        self._copy_rows(e, tensors[-1], scratch, first, count)
        tensors[nest.a] = scratch
        bases = [0, *(e.mul(first, stride) for stride in nest.row.strides[1:])]

        def tile(block: Index) -> None:
            TileWriter(self.plain, e, tensors, bases, block, count).write()

        e.loop(self._whole_blocks, -(-nest.columns // self.plain.block), 1, tile)

    def _copy_rows(
        self, e: Emitter, result: Buffer, scratch: Buffer, first: Index, count: int
    ) -> None:
        nest, depth = self.plain.nest, self.plain.nest.depth

        def copy_row(row: Index) -> None:
            begin = e.add(e.mul(e.add(first, row), nest.columns), self._gap)
            target = e.mul(row, depth)

            def copy(position: Index, mask: Value | None) -> None:
                value = result.load(e, e.add(begin, position), mask)
                scratch.store(e, value, e.add(target, position), mask)

            each(e, depth, copy)

        e.loop(0, count, 1, copy_row)
