"""Kernels of low-precision matmuls and convolutions, by the instructions of the machine."""

from collections.abc import Callable
from functools import partial

from braid.analysis.nests.contraction import Contraction
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction import tiling
from braid.lowering.cpu.kernels.contraction.arithmetic import (
    BytePairArithmetic,
    LowPrecisionArithmetic,
    PairArithmetic,
)
from braid.lowering.cpu.kernels.contraction.kernel import ContractionKernel
from braid.lowering.cpu.kernels.contraction.microkernel import Tile
from braid.lowering.cpu.kernels.contraction.shuffled import Positions, ShuffledContraction
from braid.lowering.cpu.kernels.contraction.staged import RowBlock, StagedContraction
from braid.lowering.cpu.kernels.contraction.widened import WidenedContraction, takes_pairs
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.targets.kernels.kernel_family import Kernel

_ROWS = 64
"""Rows of a block, where they need not read B once: A and a block of B's columns are in cache."""


def takes_nest(
    nest: Contraction | None,
    arithmetic: LowPrecisionArithmetic,
    positions: Positions,
    block: int,
) -> bool:
    """Return whether the arithmetic can read A of a nest, with `block` columns at a time."""
    if nest is None:
        return False
    if isinstance(arithmetic, BytePairArithmetic):
        return positions.fit(nest, block)
    return not isinstance(arithmetic, PairArithmetic) or takes_pairs(nest)


def low_precision_kernel(
    group: FusedOp,
    symbol: str,
    unit: VectorUnit,
    nest: Contraction,
    schedule: tiling.TileSchedule,
    arithmetic: LowPrecisionArithmetic,
    positions: Positions,
) -> Kernel:
    """Return a kernel of one tile per grid iteration, or of a block of rows that is staged once."""
    tile, outside = schedule.tile, schedule.columns_outside
    fixed = (nest, tile, unit.lanes)

    if isinstance(arithmetic, BytePairArithmetic):
        staged = partial(ShuffledContraction, *fixed, arithmetic=arithmetic, positions=positions)
    elif isinstance(arithmetic, PairArithmetic):
        staged = partial(WidenedContraction, *fixed, arithmetic=arithmetic)
    else:
        kernel = ContractionKernel(*fixed, outside, arithmetic)
        return grid_kernel(group, symbol, unit, kernel.grid, kernel.iteration, nest.in_place)

    def of_rows(block: RowBlock) -> StagedContraction:
        return staged(block=block)

    kernel = of_rows(row_block(of_rows, nest, tile, unit, outside))
    body, scratch = kernel.iteration, kernel.scratch_bytes
    return grid_kernel(group, symbol, unit, kernel.grid, body, nest.in_place, scratch)


def row_block(
    staged: Callable[[RowBlock], StagedContraction],
    nest: Contraction,
    tile: Tile,
    unit: VectorUnit,
    outside: bool,
) -> RowBlock:
    """Return the rows that fit a part of a core's cache; with `outside`, B is read once for all
    rows, else `_ROWS` suffice.
    """
    extent = nest.row.extent
    available = unit.cache_bytes // (2 if outside else 4)
    wanted = extent * nest.outer[-1].extent if outside and nest.outer else extent
    wanted = wanted if outside else min(wanted, _ROWS)

    def fits(block: RowBlock) -> bool:
        return staged(block).scratch_bytes <= available

    rows = min(extent, -(-wanted // tile.rows) * tile.rows)
    while rows > tile.rows and not fits(RowBlock(1, rows)):
        rows = max(tile.rows, (rows // 2) // tile.rows * tile.rows)
    block = RowBlock(1, rows)
    if rows < extent or not nest.outer or nest.outer[-1].strides[1]:
        return block
    most = min(nest.outer[-1].extent, -(-max(wanted, _ROWS) // extent))
    for lines in range(2, most + 1):
        if not fits(RowBlock(lines, rows)):
            break
        block = RowBlock(lines, rows)
    return block
