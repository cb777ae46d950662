"""Which blocks of tile registers a contraction is computed with, and how long that takes. No IR.

Cycles are those of a core, measured on Emerald Rapids (2.9 GHz, all operands in the first cache).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from braid.lowering.cpu.kernels.amx import instructions as amx
from braid.lowering.cpu.kernels.amx.kernel import Block, innermost
from braid.lowering.cpu.kernels.contraction.problem import Contraction
from braid.lowering.cpu.kernels.emit.machine import VectorUnit
from braid.lowering.cpu.kernels.groups.traffic import moving_seconds
from braid.targets.kernels.kernel_family import LEVELS, Schedule

_FEWEST_PRODUCT_CYCLES = 9.3
"""Of a product of tiles: it takes a cycle per row of A, but no fewer."""

_A_ROW_CYCLES, _B_ROW_CYCLES = 0.5, 0.8
"""Per row of a register that is loaded: of A from the first cache, of B from the second."""

_SPLIT_FACTOR = 2.5
"""How much longer that takes where rows lie across two lines of the cache."""

_CONFLICT_FACTOR, _SET_STRIDE = 3.0, 4096
"""How much longer it takes where all rows fall on the same set of the first cache."""

_STORE_CYCLES = 31.0
"""Of storing the sums of a tile."""

_EPILOGUE_CYCLES, _ROW_CYCLES = 7.0, 6.0
"""Of reading a vector of sums, a usual epilogue, and storing the result; around each row."""

_BLOCK_CYCLES, _COORDINATE_CYCLES = 60.0, 25.0
"""Around a block: zeroing and the latency of the last products; coordinates of a tile of rows."""

_CALL_CYCLES = 330.0
"""Of configuring registers and giving them back."""

_CYCLES_PER_MULTIPLY_ADD = 0.5
"""Of vectors, by which a machine's rate is known: cores with AMX do two a cycle."""

_LINE_BYTES = 64

BLOCK_COLUMNS = (1, 2, 3, 4)
"""Tiles of columns in a block of B."""

_PROMISING = (2, 8, 24)
"""How many blocks the levels of the schedule space have."""


@dataclass(frozen=True)
class AmxSize:
    """What the time of a contraction depends on; the depth counts steps.

    `lines` of `rows` rows each, `loops` of `depth` steps that are neighbours in A, `a_row` bytes
    between rows.
    """

    batches: int
    lines: int
    rows: int
    columns: int
    loops: int
    depth: int
    a_row: int

    @property
    def a_bytes(self) -> int:
        """Of A, at most: windows overlap."""
        return self.batches * self.lines * self.rows * self.depth * amx.STEP_BYTES

    @staticmethod
    def of(problem: Contraction, group: int) -> "AmxSize":
        """By a problem whose steps have `group` elements."""
        outer, last = innermost(problem, group)
        batches = math.prod(dim.extent for dim in problem.outer if dim.strides[1])
        return AmxSize(
            batches=batches,
            lines=problem.rows // problem.row.extent // batches,
            rows=problem.row.extent,
            columns=problem.columns,
            loops=math.prod(dim.extent for dim in outer),
            depth=last.extent,
            a_row=problem.row.strides[0] * amx.STEP_BYTES // group,
        )


def blocks(size: AmxSize, column_tiles: int) -> list[Block]:
    """All that registers have room for, the fastest first."""
    found = [
        Block(rows, steps, row_tiles, column_tiles)
        for rows in _row_counts(size.rows)
        for steps in _divisors(size.depth)
        for row_tiles in range(1, amx.REGISTERS)
    ]
    return sorted((b for b in found if b.fits), key=lambda block: cycles(size, block))


def cycles(size: AmxSize, block: Block) -> float:
    """Of a core, for all of the contraction."""
    chunks = size.loops * size.depth // block.steps
    tiles = size.lines * -(-size.rows // block.rows)
    columns = -(-size.columns // amx.COLUMNS)
    full, rest = divmod(columns, block.column_tiles)

    def group(row_tiles: int, column_tiles: int) -> float:
        if row_tiles == 0 or column_tiles == 0:
            return 0.0
        products = row_tiles * column_tiles
        loads = row_tiles * block.rows * _A_ROW_CYCLES * _load_factor(size.a_row)
        loads += column_tiles * block.steps * _B_ROW_CYCLES
        multiplying = products * max(block.rows, _FEWEST_PRODUCT_CYCLES)
        epilogue = column_tiles * _EPILOGUE_CYCLES + _ROW_CYCLES
        storing = products * _STORE_CYCLES + row_tiles * block.rows * epilogue
        around = _BLOCK_CYCLES + row_tiles * _COORDINATE_CYCLES
        return chunks * max(multiplying, loads) + storing + around

    whole, left = divmod(tiles, block.row_tiles)
    total = 0.0
    for count, column_tiles in ((full, block.column_tiles), (1, rest)):
        each = whole * group(block.row_tiles, column_tiles) + group(left, column_tiles)
        total += count * each
    return size.batches * total + _CALL_CYCLES


def seconds(size: AmxSize, column_tiles: int, unit: VectorUnit, moved_bytes: int) -> float:
    """Time of the best block, or of memory where that is slower."""
    best = cycles(size, blocks(size, column_tiles)[0])
    return max(best / (unit.fma_rate * _CYCLES_PER_MULTIPLY_ADD), moving_seconds(moved_bytes, unit))


def schedules(
    size: AmxSize, column_tiles: int, unit: VectorUnit, b_bytes: int, level: int
) -> Iterator[Schedule]:
    """Blocks and loop orders of one level, the most promising first.

    Level 1 has the other loop order too, and levels from 1 on more blocks.
    """
    outside = int(b_bytes > unit.cache_bytes // 2 or size.a_bytes <= unit.cache_bytes // 2)
    for columns_outside in (outside, 1 - outside) if level < LEVELS else ():
        coarsest = int(columns_outside != outside)
        for place, block in enumerate(blocks(size, column_tiles)):
            if level == max(coarsest, sum(place >= count for count in _PROMISING)):
                yield {
                    "rows": block.rows,
                    "steps": block.steps,
                    "row_tiles": block.row_tiles,
                    "column_tiles": block.column_tiles,
                    "columns_outside": columns_outside,
                }


def block_of(schedule: Schedule, size: AmxSize) -> Block:
    """The block that a schedule names, with as many rows and steps of it as there are.

    A schedule may be of the same group with other strides, of which fewer steps are neighbours.
    """
    return Block(
        min(schedule["rows"], size.rows),
        math.gcd(schedule["steps"], size.depth),
        schedule["row_tiles"],
        schedule["column_tiles"],
    )


def takes(schedule: Schedule, size: AmxSize, column_tiles: int) -> bool:
    """Whether a kernel is made by it: a block that fits, of whole chunks and rows that exist."""
    names = ["column_tiles", "columns_outside", "row_tiles", "rows", "steps"]
    if sorted(schedule) != names or min(schedule[name] for name in names[2:]) < 1:
        return False
    block = block_of(schedule, size)
    exists = (block.rows, block.steps) == (schedule["rows"], schedule["steps"])
    small = block.rows <= amx.ROWS and block.steps <= amx.STEPS
    as_wide = block.column_tiles == column_tiles and schedule["columns_outside"] in (0, 1)
    return exists and small and as_wide and block.fits


def _row_counts(extent: int) -> list[int]:
    """Rows of a tile: as even as can be, and all that there are."""
    tiles = -(-extent // amx.ROWS)
    return sorted({-(-extent // tiles), min(extent, amx.ROWS)})


def _divisors(extent: int) -> list[int]:
    """Those that are steps of a tile, the largest two."""
    known = [number for number in range(1, amx.STEPS + 1) if extent % number == 0]
    return known[-2:]


def _load_factor(a_row: int) -> float:
    """How much longer rows of A take to load than those that begin with lines of the cache."""
    factor = _CONFLICT_FACTOR if a_row % _SET_STRIDE == 0 else 1.0
    return factor * (_SPLIT_FACTOR if a_row % _LINE_BYTES else 1.0)
