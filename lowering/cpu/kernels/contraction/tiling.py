"""Choose the tiles of a contraction, and estimate how long they take, without IR."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import geometric_mean

from braid.analysis.nests.windows import WindowDim
from braid.lowering.cpu.kernels.contraction.microkernel import (
    VECTORS,
    Tile,
    feasible_tiles,
    tile_cycles,
)
from braid.lowering.cpu.kernels.contraction.tile_runs import TileRun, open_runs, tile_runs
from braid.lowering.cpu.kernels.groups.traffic import moving_seconds
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.targets.kernels.kernel_family import LEVELS
from braid.targets.kernels.schedules import Schedule

_EPILOGUE_CYCLES = 3.0
"""Cycles of storing one vector of the result, with the loads and ops of an epilogue."""

_TILE_CYCLES = 30.0
"""Cycles around a tile: its coordinates, zeroing, filling the pipeline."""

_STRIDED_B_FACTOR, _STRIDED_B_MOVING_FACTOR, _LONG_ROW = 1.25, 2.5, 2048
"""The slowdown of reading B from whole rows instead of packed blocks, and of moving B if that is
the bottleneck (1 row, 1280 x 1000: 383 us instead of 150); and the fewest bytes of a row with which
they apply. Of shorter rows nothing was measured (attention, 512 bytes)."""

_UNALIGNED_B_FACTOR = 1.25
"""The slowdown of reading B from rows that are no multiple of a vector, so that loads cross cache
lines: 1.0 to 2.0 times, measured."""

_ONE_VECTOR_FACTOR = 1.12
"""The slowdown of a tile of one column vector: every broadcast serves one product, and loads
that wait delay it. With tiles of two vectors products took 0.83 to 0.94 of the time."""

_LARGE_TILE, _LARGE_TILE_CYCLES = 20, 4.0
"""The most accumulators; above it the end of a tile overlaps less with the start of the next one,
by `_LARGE_TILE_CYCLES` for each: 28 of them took 1.07 times as long as 14 in a reduction of 147,
and as long in one of 768.
"""

_FIRST_CACHE_BYTES = 32 << 10
"""The bytes of the L1 cache that A or B may use between two uses."""

_FAR_LINE_BYTES, _FAR_LINE_CYCLES = 64, 1.5
"""The bytes of a cache line, and the cycles to load one from the L2 cache, in addition to
multiply-adds: with B in L2, tiles of 5 rows took 1.06 to 1.17 times as long as those of 13, on
Emerald Rapids and on Zen 5."""

_WIDENING_CYCLES = 0.25
"""The cycles to convert a vector of B to f32 as it is loaded: matmuls with 16 rows take 1.06 times
as long with 16-bit and 1.03 with 8-bit elements (Zen 3), those with 128 rows 0.96 with 8-bit ones.
Those with one or four rows wait for B or for sums anyway."""

_SET_STRIDE, _WAYS = 4096, 8
"""Bytes after which addresses fall on the same set of the first-level cache; lines in a set."""

_UNROLLED_PRODUCTS, _FEWEST_UNROLLED, _MOST_UNROLLED = 32, 2, 128
"""Multiply-adds in the loop body: twice as many were 0 to 5 % slower in convolutions. And steps of
the reduction: with a single one, tiles of 6 rows and 4 vectors took 1.03 to 1.05 times as long,
other tiles as long; more than the last number only make code grow."""

_ROW_FACTORS = (1, 4, 16)
"""Multiples of the likely number of rows that tiles are compared at where that is open."""

_PROMISING = (3, 12, 32)
"""The numbers of tiles up to the end of each level of the schedule space; beyond them `cycles` sees
no chance."""


@dataclass(frozen=True)
class TileSchedule(Schedule):
    """A cut of a contraction into tiles of the result.

    A tile has `rows` rows and `vectors` vectors of columns; `unroll` steps of the reduction are in
    the loop body. With `columns_outside` the loop over columns is around that over rows.
    """

    rows: int
    vectors: int
    unroll: int
    columns_outside: bool

    @property
    def tile(self) -> Tile:
        """The tile of the microkernel."""
        return Tile(self.rows, self.vectors, self.unroll)


@dataclass(frozen=True)
class ContractionSize:
    """`batches` times rows × columns × K.

    `row_bytes` is the distance of two rows of A, `packed` says that B is in column blocks,
    `constants` counts the vectors that are kept in registers, and `slowdown` says how much longer a
    step takes than a multiply-add of floats. Only the fraction `share` of K is computed, and along
    `window` only products without padding (see `tile_runs`). B that is converted to floats as it is
    loaded has `widened` bytes an element. With `rows_open`, other numbers of rows run through the
    same kernel, and `rows` are likely.
    """

    batches: int
    rows: int
    columns: int
    depth: int
    row_bytes: int
    packed: bool = True
    constants: int = 0
    slowdown: float = 1.0
    share: float = 1.0
    window: WindowDim | None = None
    widened: int = 0
    rows_open: bool = False

    @property
    def flops(self) -> int:
        """Multiplications and additions, including those with zeros."""
        return 2 * self.batches * self.rows * self.columns * self.depth

    def vector_bytes(self, unit: VectorUnit) -> int:
        """Return the bytes of a vector of B as it is stored."""
        return (self.widened or unit.element_bytes) * unit.lanes


def cycles(size: ContractionSize, rows: int, vectors: int, unit: VectorUnit) -> float:
    """Return the cycles of the contraction with a tile, remainders included."""
    blocks, columns = divmod(size.columns, vectors * unit.lanes)
    runs = open_runs(size.rows, rows) if size.rows_open else tile_runs(size.rows, rows, size.window)

    row_lines, vector_lines = _far_lines(size, rows, vectors, unit)

    def step(count: int, width: int) -> float:
        products = tile_cycles(count, width, unit) * size.slowdown
        if size.widened:
            products = max(products, (count + _WIDENING_CYCLES) * width)
        return products + _FAR_LINE_CYCLES * (count * row_lines + width * vector_lines)

    def tile(run: TileRun, width: int) -> float:
        if width == 0:
            return 0.0
        steps, sums = step(run.rows, width), run.rows * width
        if size.window is not None and run.passes:
            made = (step(p.last - p.first, width) * (p.end - p.begin) for p in run.passes)
            steps = sum(made) / size.window.size
        late = _LARGE_TILE_CYCLES if sums > _LARGE_TILE else 0.0
        return steps * size.depth * size.share + _TILE_CYCLES + (_EPILOGUE_CYCLES + late) * sums

    widths = ((blocks, vectors), (1, -(-columns // unit.lanes)))
    total = sum(number * run.count * tile(run, v) for number, v in widths for run in runs)
    total *= size.batches
    total *= _conflict_factor(min(rows, size.rows), size.row_bytes)
    total *= _ONE_VECTOR_FACTOR if vectors == 1 else 1.0
    total *= _unaligned_factor(size, unit)
    return total * _STRIDED_B_FACTOR if _reads_far_rows(size, unit) else total


def mean_cycles(size: ContractionSize, rows: int, vectors: int, unit: VectorUnit) -> float:
    """Return the key by which tiles are compared: `cycles`, and where rows are open their geometric
    mean.

    The mean is over several numbers of rows, so that a tile that is best for few rows but slow for
    many is not chosen only because few rows are likely.
    """
    factors = _ROW_FACTORS if size.rows_open else (1,)
    sizes = (replace(size, rows=factor * size.rows) for factor in factors)
    return geometric_mean(cycles(each, rows, vectors, unit) for each in sizes)


def _far_lines(
    size: ContractionSize, rows: int, vectors: int, unit: VectorUnit
) -> tuple[float, float]:
    """Return the lines from beyond the first-level cache in a step, for each row of A and vector of
    B.
    """
    vector_bytes = size.vector_bytes(unit)
    all_columns = -(-size.columns // unit.lanes)
    outside = _columns_outside(size.depth * all_columns * vector_bytes, unit)
    # The bytes that are read between two uses of the same data: all rows or one tile's, one tile's
    # columns or all.
    a_bytes = size.depth * unit.element_bytes * (size.rows if outside else min(rows, size.rows))
    b_bytes = size.depth * vector_bytes * (vectors if outside else all_columns)
    return (
        unit.element_bytes / _FAR_LINE_BYTES if a_bytes > _FIRST_CACHE_BYTES else 0.0,
        vector_bytes / _FAR_LINE_BYTES if b_bytes > _FIRST_CACHE_BYTES else 0.0,
    )


def far_column_cycles(size: ContractionSize, unit: VectorUnit) -> float:
    """Return the additional time of a vector of B if all of B comes from beyond the L1 cache."""
    bytes = size.vector_bytes(unit)
    is_near = size.depth * bytes * -(-size.columns // unit.lanes) <= _FIRST_CACHE_BYTES
    return 0.0 if is_near else _FAR_LINE_CYCLES * bytes / _FAR_LINE_BYTES


def _columns_outside(b_bytes: int, unit: VectorUnit) -> bool:
    """Return whether columns of B stay in the cache while all rows pass: all of B would not."""
    return b_bytes > unit.cache_bytes // 2


def _unaligned_factor(size: ContractionSize, unit: VectorUnit) -> float:
    return 1.0 if size.packed or size.columns % unit.lanes == 0 else _UNALIGNED_B_FACTOR


def _reads_far_rows(size: ContractionSize, unit: VectorUnit) -> bool:
    return not size.packed and unit.element_bytes * size.columns >= _LONG_ROW


def _conflict_factor(rows: int, row_bytes: int) -> float:
    """Return the slowdown where more rows of A fall on one set of the L1 cache than it has ways."""
    sets = _SET_STRIDE // math.gcd(row_bytes, _SET_STRIDE)
    excess = rows / sets - _WAYS
    return 1.0 + max(0.0, excess) / 20


def seconds(size: ContractionSize, vectors: int, unit: VectorUnit, moved_bytes: int) -> float:
    """Time with the best tile of `vectors` vectors: arithmetic or memory, whichever is longer."""
    best = cycles(size, *_best_tile(size, vectors, unit), unit)
    moving = moving_seconds(moved_bytes, unit)
    is_far = _reads_far_rows(size, unit)
    moving *= _STRIDED_B_MOVING_FACTOR if is_far else _unaligned_factor(size, unit)
    return max(best / unit.fma_rate, moving)


@lru_cache(maxsize=4096)
def _best_tile(size: ContractionSize, vectors: int, unit: VectorUnit) -> tuple[int, int]:
    """Return the best tile; kept, since several passes ask for every layout of a group."""
    tiles = feasible_tiles(unit, size.constants, (vectors,))
    return min(tiles, key=lambda tile: mean_cycles(size, *tile, unit))


def ranked_vectors(size: ContractionSize, unit: VectorUnit) -> list[int]:
    """Return the vectors per tile, the fastest first."""

    def compared(vectors: int) -> float:
        return mean_cycles(size, *_best_tile(size, vectors, unit), unit)

    return sorted(VECTORS, key=compared)


def schedules(
    size: ContractionSize, vectors: Sequence[int], unit: VectorUnit, b_bytes: int, level: int
) -> Iterator[TileSchedule]:
    """Return tiles and loop orders of one level, the most promising first by the model of `cycles`.

    Level 0 has the best tiles, level 1 more of them and the other loop order, level 2 still more,
    and twice the unrolling.
    """
    tiles = [*feasible_tiles(unit, size.constants, tuple(vectors))]
    tiles.sort(key=lambda tile: mean_cycles(size, *tile, unit))
    outside = _columns_outside(b_bytes, unit)
    for factor in (1, 2) if level < LEVELS else ():
        for columns_outside in (outside, not outside):
            other = columns_outside != outside
            coarsest = 2 if factor > 1 else int(other)
            for place, (rows, count) in enumerate(tiles):
                if level == max(coarsest, _level_of(place)):
                    steps = max(_FEWEST_UNROLLED, _UNROLLED_PRODUCTS // (rows * count))
                    yield TileSchedule(rows, count, factor * steps, columns_outside)


def supports_schedule(
    schedule: TileSchedule, size: ContractionSize, vectors: Sequence[int], unit: VectorUnit
) -> bool:
    """Return whether a kernel is made by it: any tile that fits the registers, unrolled within
    reason.
    """
    tile = (schedule.rows, schedule.vectors)
    fits = tile in feasible_tiles(unit, size.constants, tuple(vectors))
    return fits and 1 <= schedule.unroll <= _MOST_UNROLLED


def _level_of(place: int) -> int:
    """Return the coarsest level that has the tile of this rank."""
    return sum(place >= count for count in _PROMISING)
