"""The register-tiled inner kernel of GEMM and convolution.

A tile of rows × vectors is accumulated in registers: per step of the innermost reduction dim,
`vectors` loads of B and one broadcast of A per row feed rows · vectors multiply-adds. The scheme
is that of BLIS (Van Zee and van de Geijn, "BLIS: A Framework for Rapidly Instantiating BLAS
Functionality", TOMS 2015) with B packed and A read where it lies.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from braid.analysis.nests.dims import LoopDim, merged
from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.common.long_sums import additions_of
from braid.lowering.cpu.kernels.contraction.arithmetic import FLOATS, Arithmetic
from braid.lowering.cpu.kernels.contraction.tile_runs import Pass
from braid.lowering.cpu.kernels.pointwise.epilogue import Accumulators
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.lowering.emit.buffer import LINE_BYTES, Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.long_sums import carry_sums
from braid.support.sizes.expression import Extent

VECTORS = (1, 2, 3, 4)
"""The numbers of vectors of columns that a tile may have."""

WIDE_VECTORS = 8
"""The number of vectors of a single row by whole rows of B, which reads more of B at a time: 0.78
of the time of 4 where rows lie 4 KiB apart."""

_AHEAD_BYTES = 8192
"""The bytes by which prefetches of B are ahead of its use. Weights come from beyond the
second-level cache, and what processors ask for on their own ends at each page: with prefetches a
Winograd convolution of 256 channels, 14 x 14, took 0.40 of the time on Zen 5 (1 KiB: 0.75, 2 KiB:
0.59, 4 KiB: 0.48, 16 KiB: 0.45), and ResNet-50 0.86."""

_MOST_LINES, _FEWEST_ROWS = 3, 4
"""Rows of B per step, and rows of a tile, from which on prefetches pay: with four rows of B,
matmuls with B in the cache took 1.03 times as long; with a tile of one row, 1.2 times."""


_ROWS_LEVEL = 2
"""The cache into which the next tile's rows are prefetched: together with this tile's, deep rows
exceed L1."""


@dataclass(frozen=True)
class Tile:
    """`rows` × `vectors` accumulators; the innermost reduction loop is unrolled `unroll` times."""

    rows: int
    vectors: int
    unroll: int


@dataclass(frozen=True)
class TileOperands:
    """The operands of a tile: row r of A is at `a_base + r · a_row`, B's columns at `b_base`.

    `masks` has one entry per vector of B: None, or the columns that exist (only where B is not
    padded to whole tiles). With `next_rows`, the rows of the next tile follow in memory, and are
    not in the caches.
    """

    a: Buffer
    a_base: Index
    a_row: Index
    b: Buffer
    b_base: Index
    masks: Sequence[Value | None]
    arithmetic: Arithmetic = FLOATS
    next_rows: bool = False


@dataclass(frozen=True)
class Part:
    """A part of a reduction: its first dims within `bounds`, and of the next one only the `passes`.

    Without passes, it has all elements after those dims.
    """

    bounds: tuple[tuple[Index, Index], ...] = ()
    passes: tuple[Pass, ...] = ()


def accumulate(
    e: Emitter,
    operands: TileOperands,
    reduction: Sequence[LoopDim[Extent]],
    tile: Tile,
    part: Part = Part(),
) -> Accumulators:
    """Return sums of products over the `reduction` dims (outermost first; strides in A, then B)."""
    bases = operands.a_base, operands.b_base
    initial = tile.rows * [
        operands.arithmetic.initial(e, operands.a, operands.b, operands.b_base, vector)
        for vector in range(tile.vectors)
    ]
    sums = _reduce_part(e, operands, reduction, tile, part, *bases, initial)
    return [list(sums[r * tile.vectors : (r + 1) * tile.vectors]) for r in range(tile.rows)]


def _reduce_part(
    e: Emitter,
    operands: TileOperands,
    reduction: Sequence[LoopDim[Extent]],
    tile: Tile,
    part: Part,
    a_base: Index,
    b_base: Index,
    initial: Sequence[Value],
) -> Sequence[Value]:
    """Emit one loop per dim with bounds, and in these one reduction per pass."""
    if not part.bounds and not part.passes:
        return _reduce(e, operands, reduction, tile, a_base, b_base, initial)
    dim, inner = reduction[0], reduction[1:]
    a_stride, b_stride = dim.strides
    if part.bounds:
        rest = replace(part, bounds=part.bounds[1:])

        def at(position: Index, sums: Sequence[Value]) -> Sequence[Value]:
            a = e.add(a_base, e.mul(position, a_stride))
            b = e.add(b_base, e.mul(position, b_stride))
            return _reduce_part(e, operands, inner, tile, rest, a, b, sums)

        added = additions_of([dim.extent for dim in inner])
        most = dim.extent if isinstance(dim.extent, int) else None
        return carry_sums(e, *part.bounds[0], 1, initial, at, added, most)
    sums = list(initial)
    for each in part.passes:
        own = slice(each.first * tile.vectors, each.last * tile.vectors)
        dims = merged((LoopDim(each.end - each.begin, dim.strides), *inner))
        ahead = e.add(e.mul(each.begin, a_stride), e.mul(each.first, operands.a_row))
        a, b = e.add(a_base, ahead), e.add(b_base, e.mul(each.begin, b_stride))
        rows = replace(tile, rows=each.last - each.first)
        sums[own] = _reduce(e, operands, dims, rows, a, b, sums[own])
    return sums


def _reduce(
    e: Emitter,
    operands: TileOperands,
    reduction: Sequence[LoopDim[Extent]],
    tile: Tile,
    a_base: Index,
    b_base: Index,
    initial: Sequence[Value],
) -> Sequence[Value]:
    """Emit one loop per reduction dim; the innermost one is unrolled.

    The remainder is straight code, or a loop if its length is unknown.
    """
    if not reduction:
        return _multiply_add(e, operands, tile, a_base, b_base, initial)
    dim, inner = reduction[0], reduction[1:]
    a_stride, b_stride = dim.strides
    if not inner:
        # Else LLVM tries all ways to add up the terms of every address in the loop.
        a_base, b_base = e.opaque(a_base), e.opaque(b_base)
    most = dim.extent if isinstance(dim.extent, int) else tile.unroll
    unroll = 1 if inner else min(tile.unroll, most)

    def at(position: Index, sums: Sequence[Value]) -> Sequence[Value]:
        a = e.add(a_base, e.mul(position, a_stride))
        b = e.add(b_base, e.mul(position, b_stride))
        return _reduce(e, operands, inner, tile, a, b, sums)

    def body(position: Index, sums: Sequence[Value]) -> Sequence[Value]:
        for step in range(unroll):
            if not inner:
                _prefetch(
                    e, operands, tile, e.add(b_base, e.mul(position, b_stride)), b_stride, step
                )
            if operands.next_rows:
                _prefetch_next_rows(e, operands, tile, e.add(position, step))
            sums = at(e.add(position, step), sums)
        return sums

    whole = dim.extent - dim.extent % unroll
    added = unroll * additions_of([dim.extent for dim in inner])
    sums = carry_sums(e, 0, whole, unroll, initial, body, added)
    if not isinstance(dim.extent, int) or not isinstance(whole, int):
        return sums if whole == dim.extent else e.carry(whole, dim.extent, 1, sums, at)
    for position in range(whole, dim.extent):
        sums = at(position, sums)
    return sums


def _prefetch(
    e: Emitter, operands: TileOperands, tile: Tile, base: Index, stride: Index, step: int
) -> None:
    """Prefetch the cache lines of B that lie `_AHEAD_BYTES` after those of step `step`.

    This is done only if steps are contiguous, have few cache lines each, and take long enough:
    otherwise the core looks far enough ahead, or loads are the bottleneck.
    """
    size = bytes_of(operands.b.element_type)
    elements = tile.vectors * e.lanes * operands.arithmetic.group
    lines = -(-elements * size // LINE_BYTES)
    if stride != elements or lines > _MOST_LINES or tile.rows < _FEWEST_ROWS:
        return
    if step * elements * size % LINE_BYTES:
        return
    for line in range(lines):
        ahead = step * elements + (_AHEAD_BYTES + line * LINE_BYTES) // size
        operands.b.prefetch(e, e.add(base, ahead))


def _prefetch_next_rows(e: Emitter, operands: TileOperands, tile: Tile, step: Index) -> None:
    """Prefetch a step's part of the rows of the next tile, which follow this one's.

    After as many steps as a row has elements, all of the rows are prefetched: each step prefetches
    as many elements as there are rows.
    """
    size, group = bytes_of(operands.a.element_type), operands.arithmetic.group
    begin = e.add(operands.a_base, e.mul(tile.rows, operands.a_row))
    begin = e.add(begin, e.mul(step, tile.rows * group))
    for offset in range(0, tile.rows * group, LINE_BYTES // size):
        operands.a.prefetch(e, e.add(begin, offset), _ROWS_LEVEL)


def _multiply_add(
    e: Emitter,
    operands: TileOperands,
    tile: Tile,
    a_offset: Index,
    b_offset: Index,
    sums: Sequence[Value],
) -> Sequence[Value]:
    """Emit one step of the innermost dim: an outer product added to the tile."""
    arithmetic = operands.arithmetic
    step = e.lanes * arithmetic.group
    # One row of B's block: [vectors · lanes] columns, each with `group` neighbours along K.
    columns = [
        arithmetic.column(e, operands.b, e.add(b_offset, vector * step), operands.masks[vector])
        for vector in range(tile.vectors)
    ]
    result: list[Value] = []
    # sums[row, vector] += A[row, k] · B[k, vector], with the element of A in every lane.
    for row in range(tile.rows):
        a = arithmetic.repeated(e, operands.a, e.add(a_offset, e.mul(row, operands.a_row)))
        for vector, column in enumerate(columns):
            place = row * tile.vectors + vector
            result.append(arithmetic.multiply_add(e, a, column, sums[place]))
    return result


def tile_cycles(rows: int, vectors: int, unit: VectorUnit) -> float:
    """Return how long one reduction step of a tile takes, in units of a vector's multiply-add.

    The limits are multiply-adds, vector loads, and the latency of four cycles between dependent
    multiply-adds, two per cycle on cores with AVX-512 (5 x 97 x 4099 took 1.35 times as long
    in tiles of one vector as in those of two on Zen 5). Per multiply-add there are one load or two
    broadcasts; a core with two narrower multiply-adds a cycle has two loads, but only one broadcast
    (tiles of one vector took 1.8 to 2.4 times as long as those of two on Zen 3), and sums that just
    cover the latency are a quarter slower.
    """
    if unit.multiply_adds == 1:
        return max(rows * vectors, vectors + rows / 2, 8.0)
    return max(rows * vectors, vectors + rows, 2.0 * rows, 10.0)


@cache
def feasible_tiles(
    unit: VectorUnit, constants: int = 0, counts: Sequence[int] = VECTORS
) -> Sequence[tuple[int, int]]:
    """Return tiles (rows, vectors) whose accumulators, vectors of B, a broadcast and `constants`
    fit registers.

    LLVM moves the constants of an epilogue out of all loops, where they hold registers.
    """
    available = unit.registers - 1 - constants
    return tuple(
        (rows, vectors)
        for vectors in counts
        for rows in range(1, unit.registers)
        if rows * vectors + vectors <= available
    )
