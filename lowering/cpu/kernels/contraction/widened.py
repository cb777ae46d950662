"""Products of bytes where the machine multiplies 16-bit numbers in pairs (`pmaddwd`).

Bytes of A are widened once for a block of rows, into scratch memory that stays in a core's cache,
and then read by all columns of B, whose bytes are widened as they are loaded. Sums of two products
fit 32 bits, so that all of it is exact, as the sums of bytes in pairs (`pmaddubsw`), which are
kept in 16 bits, are not.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import VectorType, f32, i32
from xdsl.dialects.vector import BitcastOp, LoadOp

from braid.dialects.braid.buffer import aligned
from braid.lowering.cpu.kernels.contraction.arithmetic import PairArithmetic, i8, i16
from braid.lowering.cpu.kernels.contraction.kernel import ContractionKernel, TileWriter
from braid.lowering.cpu.kernels.contraction.microkernel import Tile
from braid.lowering.cpu.kernels.contraction.problem import Contraction
from braid.lowering.cpu.kernels.emit.buffer import Buffer
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Index
from braid.lowering.cpu.kernels.groups.loop_dims import LoopDim

_PAIR = PairArithmetic.group


@dataclass(frozen=True)
class RowBlock:
    """The rows of A that are widened at once: `lines` of the last outer dim, `rows` of the row dim.

    `lines` are 1 where `rows` are not all of the row dim, or the last outer dim changes B.
    """

    lines: int
    rows: int


@dataclass(frozen=True)
class WidenedPiece:
    """What a block of rows reads of A: bytes that follow each other, once for each of `far`.

    `far` are dims of the reduction whose steps are longer than `span` bytes.
    """

    span: int
    far: tuple[LoopDim, ...]

    @staticmethod
    def of(problem: Contraction, block: RowBlock) -> "WidenedPiece":
        """By the strides of A."""
        span = _PAIR + (block.rows - 1) * problem.row.strides[0]
        if block.lines > 1:
            span += (block.lines - 1) * problem.outer[-1].strides[0]
        far: list[LoopDim] = []
        for dim in sorted(problem.reduction, key=lambda dim: dim.strides[0]):
            if dim.strides[0] > span:
                far.append(dim)
            else:
                span += (dim.extent - 1) * dim.strides[0]
        return WidenedPiece(span, tuple(far))

    @property
    def bytes_read(self) -> int:
        """Of A."""
        return self.span * math.prod(dim.extent for dim in self.far)

    @property
    def pairs(self) -> int:
        """Widened pairs from one of the pieces to the next."""
        return -(-self.span // _PAIR)

    @property
    def scratch_bytes(self) -> int:
        """For all of it."""
        return aligned(4 * self.pairs * math.prod(dim.extent for dim in self.far))


def takes_pairs(problem: Contraction) -> bool:
    """Whether all rows and steps of A begin at even bytes."""
    dims = (*problem.outer, problem.row, *problem.reduction)
    return all(dim.extent == 1 or dim.strides[0] % _PAIR == 0 for dim in dims)


@dataclass(frozen=True)
class WidenedContraction:
    """Emits `problem`, which `takes_pairs`, a block of rows and a part of the columns at a time.

    The last of the buffers is scratch of f32.
    """

    problem: Contraction
    tile: Tile
    lanes: int
    block: RowBlock
    parts: int
    arithmetic: PairArithmetic

    @property
    def scratch_bytes(self) -> int:
        """For the widened rows of a block."""
        return self._piece.scratch_bytes

    @property
    def grid_extents(self) -> tuple[int, ...]:
        """Outer dims, the last one in blocks, blocks of the row dim, parts of the columns."""
        extents = [dim.extent for dim in self.problem.outer]
        if extents:
            extents[-1] = -(-extents[-1] // self.block.lines)
        return (*extents, -(-self.problem.row.extent // self.block.rows), self.parts)

    @property
    def grid(self) -> int:
        """Iterations of the grid."""
        return math.prod(self.grid_extents)

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """Widens a block of rows, and multiplies it with a part of the columns."""
        *outer, row_block, part = e.coordinates(index, self.grid_extents)
        if outer:
            outer[-1] = e.mul(outer[-1], self.block.lines)
        first_row = e.mul(row_block, self.block.rows)
        problem = self.problem
        bases = [
            e.add(
                e.dot(outer, [dim.strides[tensor] for dim in problem.outer]),
                e.mul(first_row, problem.row.strides[tensor]),
            )
            for tensor in range(len(problem.row.strides))
        ]
        *tensors, scratch = buffers
        # What is widened of the last block begins earlier, so that it ends where A does.
        begin_a = e.minimum(bases[0], self._last_begin)
        ahead, _ = e.divmod(e.sub(bases[0], begin_a), _PAIR)
        rows_left = e.sub(problem.row.extent, first_row)
        self._widen(e, tensors[problem.a], scratch, e.add(begin_a, problem.a_start))
        tensors[problem.a] = scratch
        column_blocks = -(-problem.columns // self._kernel.block)
        begin = e.divmod(e.mul(part, column_blocks), self.parts)[0]
        end = e.divmod(e.mul(e.add(part, 1), column_blocks), self.parts)[0]

        def columns(column_block: Index) -> None:
            if self.block.lines == 1:
                self._line(e, tensors, [ahead, *bases[1:]], column_block, rows_left)
                return
            step = problem.outer[-1].strides
            left = e.sub(problem.outer[-1].extent, outer[-1])

            def line(number: Index) -> None:
                own = [e.add(ahead, e.mul(number, step[0] // _PAIR))]
                own += [
                    e.add(base, e.mul(number, stride))
                    for base, stride in zip(bases[1:], step[1:], strict=True)
                ]
                self._line(e, tensors, own, column_block, problem.row.extent)

            e.loop(0, e.minimum(self.block.lines, left), 1, line)

        e.loop(begin, end, 1, columns)

    def _line(
        self,
        e: Emitter,
        tensors: Sequence[Buffer],
        bases: Sequence[Index],
        column_block: Index,
        rows_left: Index,
    ) -> None:
        """The tiles of a block in one line of rows, of which `rows_left` are left."""
        rows, extent = self.tile.rows, self.problem.row.extent
        strides = self._kernel.problem.row.strides

        def tile(first: Index, count: int) -> None:
            own = [e.add(b, e.mul(first, s)) for b, s in zip(bases, strides, strict=True)]
            TileWriter(self._kernel, e, tensors, own, column_block, count).write()

        count = e.minimum(self.block.rows, rows_left)
        tiles, rest = e.divmod(count, rows)
        e.loop(0, tiles, 1, lambda number: tile(e.mul(number, rows), rows))
        left = extent % rows
        if left:
            e.loop(0, e.minimum(rest, 1), 1, lambda _: tile(e.mul(tiles, rows), left))

    @cached_property
    def _piece(self) -> WidenedPiece:
        return WidenedPiece.of(self.problem, self.block)

    @cached_property
    def _last_begin(self) -> int:
        """Where the last of the pieces begins that end within A."""
        near = [dim for dim in self.problem.reduction if dim not in self._piece.far]
        dims = (*self.problem.outer, self.problem.row, *near)
        end = _PAIR + sum((dim.extent - 1) * dim.strides[0] for dim in dims)
        return end - self._piece.span

    @cached_property
    def _kernel(self) -> ContractionKernel:
        """The problem with A in scratch memory, whose elements are pairs."""
        problem, place = self.problem, self._piece.pairs
        far: dict[LoopDim, int] = {}
        for dim in self._piece.far:
            far[dim] = place
            place *= dim.extent
        reduction = [
            replace(dim, strides=(far.get(dim, dim.strides[0] // _PAIR), dim.strides[1]))
            for dim in problem.reduction
        ]
        row = replace(
            problem.row, strides=(problem.row.strides[0] // _PAIR, *problem.row.strides[1:])
        )
        stored = replace(problem, row=row, reduction=tuple(reduction), a_start=0)
        return ContractionKernel(stored, self.tile, self.lanes, True, self.arithmetic)

    def _widen(self, e: Emitter, source: Buffer, scratch: Buffer, first: Index) -> None:
        """Bytes as 16-bit numbers, a vector of pairs after the other; the last ones overlap."""
        piece, pairs = self._piece, self._piece.pairs
        extents = [dim.extent for dim in piece.far]

        def widen(number: Index) -> None:
            places = e.coordinates(number, extents[::-1])[::-1]
            begin = e.add(first, e.dot(places, [dim.strides[0] for dim in piece.far]))
            target = e.mul(number, pairs)

            def vector(position: Index) -> None:
                self._widen_vector(e, source, scratch, begin, target, position)

            def pair(position: Index) -> None:
                _widen_pair(e, source, scratch, begin, target, position)

            if pairs < self.lanes:
                e.loop(0, pairs, 1, pair)
                return
            e.loop(0, pairs - pairs % self.lanes, self.lanes, vector)
            if pairs % self.lanes:
                vector(pairs - self.lanes)

        e.loop(0, math.prod(extents), 1, widen)

    def _widen_vector(
        self, e: Emitter, source: Buffer, scratch: Buffer, begin: Index, target: Index, at: Index
    ) -> None:
        place = e.add(begin, e.mul(at, _PAIR))
        count = _PAIR * self.lanes
        bytes_ = e.insert(LoadOp(source.ref, [e.index(place)], VectorType(i8, [count])))
        wide = e.insert(
            arith.ExtUIOp.create(operands=[bytes_], result_types=[VectorType(i16, [count])])
        )
        scratch.store(e, e.insert(BitcastOp(wide, e.vector_type(f32))), e.add(target, at))


def _widen_pair(
    e: Emitter, source: Buffer, scratch: Buffer, begin: Index, target: Index, at: Index
) -> None:
    """Two bytes as the 16-bit halves of an f32."""
    place = e.add(begin, e.mul(at, _PAIR))
    low, high = (
        e.insert(arith.ExtUIOp(source.load_scalar(e, e.add(place, n)), i32)) for n in range(_PAIR)
    )
    word = e.insert(arith.OrIOp(low, e.insert(arith.ShLIOp(high, e.constant(16, i32)))))
    number = e.insert(arith.BitcastOp(word, f32))
    e.effect(memref.StoreOp.get(number, scratch.ref, [e.index(e.add(target, at))]))
