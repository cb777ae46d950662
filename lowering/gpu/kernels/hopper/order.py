"""Which tiles a block computes, and in which order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith

from braid.lowering.gpu.kernels.contraction.code import Code, Value

_GROUP = 8
"""Tiles along rows that are computed before the next one along columns: they share B in caches."""

Tile = tuple[Value, Value, Value]
"""Batch, first row and first column."""


@dataclass(frozen=True)
class Order:
    """Tiles of `rows` by `columns` of a product, by so many blocks, each a tile after another."""

    batches: int
    row_tiles: int
    column_tiles: int
    rows: int
    columns: int
    most_blocks: int

    @property
    def tiles(self) -> int:
        """How many there are."""
        return self.batches * self.row_tiles * self.column_tiles

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return min(self.tiles, self.most_blocks)

    def loop(
        self,
        code: Code,
        carried: Sequence[Value],
        body: Callable[[Code, Tile, Sequence[Value]], Sequence[Value]],
    ) -> None:
        """`body` for each tile of the block."""

        def turn(own: Code, number: Value, values: Sequence[Value]) -> Sequence[Value]:
            return body(own, self._tile(own, number), values)

        code.loop(code.block(), code.number(self.tiles), code.number(self.blocks), carried, turn)

    def _tile(self, code: Code, number: Value) -> Tile:
        """The tile of a number: along columns outside of groups of rows."""
        plane = self.row_tiles * self.column_tiles
        batch, inside = code.div(number, plane), code.rem(number, plane)
        group = code.div(inside, _GROUP * self.column_tiles)
        first = code.mul(group, _GROUP)
        within = code.rem(inside, _GROUP * self.column_tiles)
        left = code.insert(arith.SubiOp(code.number(self.row_tiles), first))
        size = code.least(left, _GROUP)
        row = code.add(first, code.insert(arith.RemUIOp(within, size)))
        column = code.insert(arith.DivUIOp(within, size))
        return batch, code.mul(row, self.rows), code.mul(column, self.columns)
