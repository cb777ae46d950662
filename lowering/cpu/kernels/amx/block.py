"""Blocks of tile registers: their sizes, the contents of registers, and the addresses of their
rows."""

import math
from dataclasses import dataclass
from functools import cached_property

from braid.analysis.nests.contraction import Contraction
from braid.analysis.nests.dims import LoopDim
from braid.lowering.cpu.kernels.amx import instructions as amx
from braid.lowering.cpu.kernels.amx.instructions import TileProduct
from braid.lowering.emit.emitter import Index

ROW_BYTES = 64
"""The bytes of a row of a register."""


@dataclass(frozen=True)
class Block:
    """`row_tiles` × `column_tiles` sums of `rows` rows; products are over `steps` steps."""

    rows: int
    steps: int
    row_tiles: int
    column_tiles: int

    @property
    def products(self) -> int:
        """Tile products, for all steps of K."""
        return self.row_tiles * self.column_tiles

    @property
    def fits(self) -> bool:
        """Return whether registers hold the sums, the fewer operands, and one of the others."""
        held = min(self.row_tiles, self.column_tiles)
        return self.products + held + 1 <= amx.REGISTERS

    @property
    def sum_bytes(self) -> int:
        """Bytes of the sums in scratch memory."""
        return self.products * self.rows * ROW_BYTES


def innermost(nest: Contraction, group: int) -> tuple[tuple[LoopDim, ...], LoopDim]:
    """Return the reduction as loops around one over steps whose numbers of A are neighbours."""
    *outer, last = nest.reduction
    if last.strides[0] == group:
        return tuple(outer), last
    return nest.reduction, LoopDim(1, (group, 0))


def stores_sums(nest: Contraction) -> bool:
    """Return whether the result is the sums themselves, in rows of whole registers."""
    is_sums = nest.points.results == (nest.anchor,)
    return is_sums and nest.vector_steps[-1] == amx.COLUMNS and nest.columns % amx.COLUMNS == 0


@dataclass(frozen=True)
class RowTile:
    """Rows from `bases` of A, B, the leaves and C on; the first `known` are stored already."""

    bases: tuple[Index, ...]
    known: Index


@dataclass(frozen=True)
class Registers:
    """The registers of A and B; those of the sums come before them."""

    a: range
    b: range

    @staticmethod
    def of(block: Block) -> "Registers":
        """Return a block with all of the operand that needs fewer tiles, and the rest of the
        registers for the other.
        """
        first, least = block.products, min(block.row_tiles, block.column_tiles)
        most = max(block.row_tiles, block.column_tiles)
        held = range(first, first + least)
        passing = range(held.stop, min(amx.REGISTERS, held.stop + most))
        return Registers(*((held, passing) if block.row_tiles == least else (passing, held)))


@dataclass(frozen=True)
class BlockedProduct:
    """A contraction by blocks, one for each grid iteration.

    `nest.block_stride` is that of blocks of B as wide as `block`. `columns_outside` says that
    a block of B is used for all rows before the next one. `result_is_far` says that the second
    cache does not hold the result, whose lines are asked for then while a block is multiplied.
    """

    nest: Contraction
    block: Block
    columns_outside: bool
    product: TileProduct
    result_is_far: bool = False

    @property
    def grid_extents(self) -> tuple[int, ...]:
        """Outer dims that change B, and then blocks of columns and of tiles of rows."""
        inner = (self.row_groups, self.column_blocks)
        extents = (dim.extent for dim in self.batches)
        return (*extents, *(reversed(inner) if self.columns_outside else inner))

    @cached_property
    def stores_sums(self) -> bool:
        """Return whether the result is the sums themselves."""
        return stores_sums(self.nest)

    @property
    def row_groups(self) -> int:
        """Blocks of tiles of rows, for each batch."""
        return -(-self.tiles // self.block.row_tiles)

    @property
    def column_blocks(self) -> int:
        """Blocks of columns of B."""
        return -(-self.nest.columns // self.columns)

    @property
    def columns(self) -> int:
        """Columns of a block."""
        return self.block.column_tiles * amx.COLUMNS

    @cached_property
    def registers(self) -> Registers:
        """The tile registers that hold A and B of a block."""
        return Registers.of(self.block)

    @property
    def batches(self) -> tuple[LoopDim, ...]:
        """The leading outer dims that change B."""
        outer = self.nest.outer
        changing = [number for number, dim in enumerate(outer) if dim.strides[1]]
        return outer[: changing[-1] + 1] if changing else ()

    @property
    def lines(self) -> tuple[LoopDim, ...]:
        """The other outer dims."""
        return self.nest.outer[len(self.batches) :]

    @property
    def tiles_of_line(self) -> int:
        """Tiles of rows, for each index of the other outer dims."""
        return -(-self.nest.row.extent // self.block.rows)

    @property
    def tiles(self) -> int:
        """Tiles of rows, for each batch."""
        return self.tiles_of_line * math.prod(dim.extent for dim in self.lines)
