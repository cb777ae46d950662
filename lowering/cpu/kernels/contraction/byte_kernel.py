"""The kernel of a product of bytes, by what the machine multiplies them with."""

from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction import tiling
from braid.lowering.cpu.kernels.contraction.arithmetic import ByteArithmetic, PairArithmetic
from braid.lowering.cpu.kernels.contraction.kernel import ContractionKernel
from braid.lowering.cpu.kernels.contraction.microkernel import Tile
from braid.lowering.cpu.kernels.contraction.problem import Contraction
from braid.lowering.cpu.kernels.contraction.widened import (
    RowBlock,
    WidenedContraction,
    WidenedPiece,
    takes_pairs,
)
from braid.lowering.cpu.kernels.emit.kernel_function import grid_kernel
from braid.lowering.cpu.kernels.emit.machine import VectorUnit
from braid.targets.kernels.kernel_family import Kernel, Schedule

_ROWS = 64
"""Rows of a block, where they need not read B once: A and a block of B's columns are in cache."""

_ITERATIONS = 8
"""Of a grid, at least: threads share them."""


def takes_problem(problem: Contraction | None, arithmetic: ByteArithmetic) -> bool:
    """Whether there is a problem whose A the arithmetic can read."""
    if problem is None:
        return False
    return not isinstance(arithmetic, PairArithmetic) or takes_pairs(problem)


def byte_kernel(
    group: FusedOp,
    symbol: str,
    unit: VectorUnit,
    problem: Contraction,
    schedule: Schedule,
    arithmetic: ByteArithmetic,
) -> Kernel:
    """One tile per grid iteration, or a block of rows whose bytes are widened once."""
    tile, outside = tiling.tile_of(schedule), bool(schedule["columns_outside"])
    if not isinstance(arithmetic, PairArithmetic):
        kernel = ContractionKernel(problem, tile, unit.lanes, outside, arithmetic)
        return grid_kernel(group, symbol, unit, kernel.grid, kernel.iteration, problem.in_place)
    block = row_block(problem, tile, unit, outside)
    widened = WidenedContraction(
        problem, tile, unit.lanes, block, _parts(problem, tile, unit, block), arithmetic
    )
    body, scratch = widened.iteration, widened.scratch_bytes
    return grid_kernel(group, symbol, unit, widened.grid, body, problem.in_place, scratch)


def row_block(problem: Contraction, tile: Tile, unit: VectorUnit, outside: bool) -> RowBlock:
    """As many rows as fit a part of a core's cache; with `outside`, B is read once for them all,
    else `_ROWS` do."""
    extent = problem.row.extent
    room = unit.cache_bytes // (2 if outside else 4)
    wanted = extent * problem.outer[-1].extent if outside and problem.outer else extent
    wanted = wanted if outside else min(wanted, _ROWS)

    def fits(block: RowBlock) -> bool:
        return WidenedPiece.of(problem, block).scratch_bytes <= room

    rows = min(extent, -(-wanted // tile.rows) * tile.rows)
    while rows > tile.rows and not fits(RowBlock(1, rows)):
        rows = max(tile.rows, (rows // 2) // tile.rows * tile.rows)
    block = RowBlock(1, rows)
    if rows < extent or not problem.outer or problem.outer[-1].strides[1]:
        return block
    most = min(problem.outer[-1].extent, -(-max(wanted, _ROWS) // extent))
    for lines in range(2, most + 1):
        if not fits(RowBlock(lines, rows)):
            break
        block = RowBlock(lines, rows)
    return block


def _parts(problem: Contraction, tile: Tile, unit: VectorUnit, block: RowBlock) -> int:
    """Into how many parts the columns are divided."""
    columns = -(-problem.columns // (tile.vectors * unit.lanes))
    blocks = -(-problem.rows // (block.rows * block.lines))
    return min(columns, -(-_ITERATIONS // blocks))
