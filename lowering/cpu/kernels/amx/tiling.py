"""Choose the blocks of tile registers of a contraction, and estimate their time, without IR.

Cycles are those of a core, measured on Emerald Rapids (2.8 GHz).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from braid.analysis.nests.contraction import Contraction
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.lowering.cpu.kernels.amx import instructions as amx
from braid.lowering.cpu.kernels.amx.block import Block, innermost, stores_sums
from braid.lowering.cpu.kernels.groups.traffic import moving_seconds
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.targets.kernels.kernel_family import LEVELS
from braid.targets.kernels.schedules import Schedule

_FEWEST_PRODUCT_CYCLES = 9.3
"""The fewest cycles of a tile product: it takes a cycle per row of A, but no fewer than this."""

_LATENCY_CYCLES = 64.0
"""The cycles from one product to the next that adds to the same sums: 52, and more after loads that
wait."""

_ALL_STAYS, _NONE_STAYS = 32 << 10, 64 << 10
"""Bytes of a block of rows and one of columns. Up to the first number, the block that is used again
stays in the L1 cache (48 KiB in cores with AMX) completely; from the second on, not at all; in
between, a share of it."""

_NEAR_CYCLES, _A_FAR_CYCLES, _B_FAR_CYCLES = 0.5, 2.0, 1.5
"""The cycles per row of a register that is loaded: from the L1 cache, and of A and B from the L2
cache, whose rows lie apart and one after the other."""

_BEYOND_CYCLES = 6.4
"""The cycles per cache line that comes from beyond the L2 cache."""

_EXPOSED = 0.25
"""The share of the shorter one of two overlapping kinds of work that is not hidden."""

_SPLIT_FACTOR = 2.5
"""The factor on the cycles of loading where rows lie across two lines of the L1 cache."""

_CONFLICT_FACTOR, _SET_STRIDE = 3.0, 4096
"""The factor on the cycles of loading where all rows fall on the same set of the L1 cache, and the
bytes after which addresses do."""

_STORE_CYCLES, _RESULT_CYCLES = 2.0, 5.5
"""The cycles per row of a register that is stored: to scratch memory, and to a result in the L2
cache."""

_SCATTERED_CYCLES = 1.5
"""Additional cycles per row of a register if the L2 cache does not hold the result, and stores jump
from row to row."""

_EPILOGUE_CYCLES, _ROW_CYCLES = 7.0, 6.0
"""The cycles of reading a vector of sums, a usual epilogue, and storing the result; and those
around each row."""

_BLOCK_CYCLES, _COORDINATE_CYCLES = 60.0, 25.0
"""Around a block: zeroing and the latency of the last products; coordinates of a tile of rows."""

_CALL_CYCLES = 330.0
"""The cycles of configuring registers and giving them back."""

_CYCLES_PER_MULTIPLY_ADD = 0.5
"""The cycles of a vector multiply-add, by which a machine's rate is known: cores with AMX do two a
cycle."""

_LINE_BYTES = 64

BLOCK_COLUMNS = (1, 2, 3, 4)
"""Tiles of columns in a block of B."""

_PROMISING = (2, 16, 48)
"""The numbers of blocks with loop orders up to the end of each level of the schedule space."""


@dataclass(frozen=True)
class AmxSize:
    """The size of a contraction, on which its time depends; the depth counts steps.

    `lines` of `rows` rows each, `loops` of `depth` steps that are neighbours in A, `a_row` bytes
    between rows, `c_bytes` of results. `has_epilogue` says whether vectors read the sums.
    """

    batches: int
    lines: int
    rows: int
    columns: int
    loops: int
    depth: int
    a_row: int
    c_bytes: int
    has_epilogue: bool

    @property
    def row_bytes(self) -> int:
        """The bytes of a row of A, and of a column of B, that are multiplied for an element of
        C."""
        return self.loops * self.depth * amx.STEP_BYTES

    def result_is_far(self, cache_bytes: int) -> bool:
        """Return whether the L2 cache, of this many bytes, holds only a part of it."""
        return self.c_bytes > cache_bytes // 2

    @staticmethod
    def of(nest: Contraction, group: int) -> "AmxSize":
        """Return the blocks for a nest whose steps have `group` elements."""
        outer, last = innermost(nest, group)
        batches = math.prod(dim.extent for dim in nest.outer if dim.strides[1])
        return AmxSize(
            batches=batches,
            lines=nest.rows // nest.row.extent // batches,
            rows=nest.row.extent,
            columns=nest.columns,
            loops=math.prod(dim.extent for dim in outer),
            depth=last.extent,
            a_row=nest.row.strides[0] * amx.STEP_BYTES // group,
            c_bytes=sum(storage_bytes(result.type) for result in nest.points.results),
            has_epilogue=not stores_sums(nest),
        )


@dataclass(frozen=True)
class Nest:
    """A block, and whether one of columns is used for all rows before the next one."""

    block: Block
    columns_outside: bool


def nests(size: AmxSize, column_tiles: int, cache_bytes: int) -> list[Nest]:
    """Return all nests that registers suffice for, the fastest first; `cache_bytes` is the L2
    cache.
    """
    found = [
        Block(rows, steps, row_tiles, column_tiles)
        for rows in _row_counts(size.rows)
        for steps in _divisors(size.depth)
        for row_tiles in range(1, min(amx.REGISTERS, size.lines * -(-size.rows // rows) + 1))
    ]
    both = [Nest(b, outside) for b in found if b.fits for outside in (True, False)]
    return sorted(both, key=lambda nest: cycles(size, nest, cache_bytes))


def cycles(
    size: AmxSize, nest: Nest, cache_bytes: int, beyond_cycles: float = _BEYOND_CYCLES
) -> float:
    """Return the cycles of a core for the whole contraction; `beyond_cycles` are those of a cache
    line of weights.

    The outer block stays in the L1 cache for all inner blocks, if one block of each fits there.
    Weights come from beyond the second cache once: asked for a block ahead where columns are
    outside; otherwise the first group of rows waits for all of them, and every group where the
    second cache does not hold them. The epilogue of a block overlaps with the next one.
    """
    block, outside = nest.block, nest.columns_outside
    chunks = size.loops * size.depth // block.steps
    tiles = size.lines * -(-size.rows // block.rows)
    columns = -(-size.columns // amx.COLUMNS)
    full, rest = divmod(columns, block.column_tiles)
    whole, left = divmod(tiles, block.row_tiles)

    def group(row_tiles: int, column_tiles: int) -> float:
        if row_tiles == 0 or column_tiles == 0:
            return 0.0
        products = row_tiles * column_tiles
        a_rows, b_rows = row_tiles * block.rows, column_tiles * block.steps
        stays = _staying((a_rows + column_tiles * amx.COLUMNS) * size.row_bytes)
        a_stays = stays if not outside or whole + bool(left) == 1 else 0.0
        b_stays = stays if outside or full + bool(rest) == 1 else 0.0
        loads = a_rows * _a_cycles(size, a_stays)
        loads += b_rows * _between(_B_FAR_CYCLES, _NEAR_CYCLES, b_stays)
        multiplying = max(products * max(block.rows, _FEWEST_PRODUCT_CYCLES), _LATENCY_CYCLES)
        around = _BLOCK_CYCLES + row_tiles * _COORDINATE_CYCLES
        storing = _storing(size, a_rows, column_tiles)
        if outside and size.result_is_far(cache_bytes):
            storing += a_rows * column_tiles * _SCATTERED_CYCLES
        if size.has_epilogue:
            around += a_rows * column_tiles * _STORE_CYCLES
            return _side_by_side(chunks * max(multiplying, loads), storing) + around
        return chunks * max(multiplying, loads) + storing + around

    def all_columns(row_tiles: int) -> float:
        return full * group(row_tiles, block.column_tiles) + group(row_tiles, rest)

    waiting = columns * size.row_bytes * amx.COLUMNS / _LINE_BYTES * beyond_cycles
    each, last = all_columns(block.row_tiles), all_columns(left)
    if outside:
        total = _side_by_side(whole * each + last, waiting)
    elif columns * amx.COLUMNS * size.row_bytes > cache_bytes // 2:
        total = whole * _side_by_side(each, waiting) + (_side_by_side(last, waiting) if left else 0)
    else:
        first = each if whole else last
        total = whole * each + last - first + _side_by_side(first, waiting)
    return size.batches * total + _CALL_CYCLES


def seconds(size: AmxSize, column_tiles: int, unit: VectorUnit, moved_bytes: int) -> float:
    """Time of the best block, or of memory where that is slower.

    Cache lines from beyond the L2 cache count as memory's, as in other families.
    """
    best = nests(size, column_tiles, unit.cache_bytes)[0]
    needed = cycles(size, best, unit.cache_bytes, beyond_cycles=0.0)
    rate = unit.fma_rate * _CYCLES_PER_MULTIPLY_ADD
    return max(needed / rate, moving_seconds(moved_bytes, unit))


@dataclass(frozen=True)
class BlockSchedule(Schedule):
    """A block of tile registers, and the order of the loops over blocks.

    It has `row_tiles` by `column_tiles` sums, each of `rows` rows and 16 columns, and multiplies
    `steps` words of the depth at a time. With `columns_outside` the loop over columns is around
    that over rows.
    """

    rows: int
    steps: int
    row_tiles: int
    column_tiles: int
    columns_outside: bool


def schedules(
    size: AmxSize, column_tiles: int, unit: VectorUnit, level: int
) -> Iterator[BlockSchedule]:
    """Return blocks and loop orders of one level, the most promising first."""
    if level >= LEVELS:
        return
    for place, nest in enumerate(nests(size, column_tiles, unit.cache_bytes)):
        if level == sum(place >= count for count in _PROMISING):
            block = nest.block
            sizes = (block.rows, block.steps, block.row_tiles, block.column_tiles)
            yield BlockSchedule(*sizes, nest.columns_outside)


def block_of(schedule: BlockSchedule, size: AmxSize) -> Block:
    """Return the block that a schedule names, with as many rows and steps of it as there are.

    A schedule may come from the same group with other strides, where fewer steps are contiguous.
    """
    return Block(
        min(schedule.rows, size.rows),
        math.gcd(schedule.steps, size.depth),
        schedule.row_tiles,
        schedule.column_tiles,
    )


def supports_schedule(schedule: BlockSchedule, size: AmxSize, column_tiles: int) -> bool:
    """Return whether a kernel can be made by it: its block fits, and has whole chunks and existing
    rows.
    """
    if min(schedule.row_tiles, schedule.rows, schedule.steps) < 1:
        return False
    block = block_of(schedule, size)
    exists = (block.rows, block.steps) == (schedule.rows, schedule.steps)
    small = block.rows <= amx.ROWS and block.steps <= amx.STEPS
    return exists and small and block.column_tiles == column_tiles and block.fits


def _row_counts(extent: int) -> list[int]:
    """Return the rows of a tile: as even as possible, and the most."""
    tiles = -(-extent // amx.ROWS)
    return sorted({-(-extent // tiles), min(extent, amx.ROWS)})


def _divisors(extent: int) -> list[int]:
    """Return the two largest divisors of `extent` that are steps of a tile."""
    known = [number for number in range(1, amx.STEPS + 1) if extent % number == 0]
    return known[-2:]


def _staying(bytes: int) -> float:
    """Return the fraction of it that the L1 cache still holds when it is used again."""
    return min(1.0, max(0.0, (_NONE_STAYS - bytes) / (_NONE_STAYS - _ALL_STAYS)))


def _between(none: float, all: float, share: float) -> float:
    return none + share * (all - none)


def _a_cycles(size: AmxSize, stays: float) -> float:
    """Return the cycles per row of A that is loaded; more if rows begin in cache lines of the same
    sets.
    """
    factor = _CONFLICT_FACTOR if size.a_row % _SET_STRIDE == 0 else 1.0
    factor *= _SPLIT_FACTOR if size.a_row % _LINE_BYTES else 1.0
    return max(_NEAR_CYCLES * factor, _between(_A_FAR_CYCLES, _NEAR_CYCLES, stays))


def _side_by_side(one: float, other: float) -> float:
    """Return the cycles of two kinds of work that mostly overlap."""
    return max(one, other) + _EXPOSED * min(one, other)


def _storing(size: AmxSize, rows: int, column_tiles: int) -> float:
    """Return the cycles of storing the result of a block, with its epilogue."""
    if not size.has_epilogue:
        return rows * column_tiles * _RESULT_CYCLES
    vectors = rows * column_tiles
    return vectors * _EPILOGUE_CYCLES + rows * _ROW_CYCLES
