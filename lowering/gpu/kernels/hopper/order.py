"""Assign tiles of a product to blocks, and order those that a block computes one by one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.dialects import arith

from braid.lowering.gpu.contraction.code import Code, Value

_GROUP = 8
"""Tiles along rows that are computed before the next one along columns: they share B in caches."""


class Tile(NamedTuple):
    """The beginning of a tile, with the part of K that a block adds up, if not all."""

    batch: Value
    row: Value
    column: Value
    split: Value | None = None


@dataclass(frozen=True)
class Order:
    """The order in which at most `most_blocks` blocks compute the tiles of a product.

    A tile has `rows` by `columns` elements, and `splits` parts along K. A block computes one tile
    after another.
    """

    batches: int
    row_tiles: int
    column_tiles: int
    rows: int
    columns: int
    most_blocks: int
    splits: int = 1

    @property
    def tiles(self) -> int:
        """The tiles of the product, or their parts with split-K."""
        return self.batches * self.row_tiles * self.column_tiles * self.splits

    @property
    def blocks(self) -> int:
        """The blocks of the launch."""
        return min(self.tiles, self.most_blocks)

    def loop(
        self,
        code: Code,
        carried: Sequence[Value],
        body: Callable[[Code, Tile, Sequence[Value]], Sequence[Value]],
    ) -> None:
        """Emit `body` for each tile of the block."""

        def turn(own: Code, number: Value, values: Sequence[Value]) -> Sequence[Value]:
            return body(own, self._tile(own, number), values)

        code.loop(code.block(), code.number(self.tiles), code.number(self.blocks), carried, turn)

    def _tile(self, code: Code, number: Value) -> Tile:
        """Return the tile of a number.

        Parts along K vary fastest, then the rows of a group, then columns, then groups.
        """
        split = None
        if self.splits > 1:
            split, number = code.rem(number, self.splits), code.div(number, self.splits)
        plane = self.row_tiles * self.column_tiles
        batch, inside = code.div(number, plane), code.rem(number, plane)
        group = code.div(inside, _GROUP * self.column_tiles)
        first = code.mul(group, _GROUP)
        within = code.rem(inside, _GROUP * self.column_tiles)
        left = code.insert(arith.SubiOp(code.number(self.row_tiles), first))
        size = code.least(left, _GROUP)
        row = code.add(first, code.insert(arith.RemUIOp(within, size)))
        column = code.insert(arith.DivUIOp(within, size))
        return Tile(batch, code.mul(row, self.rows), code.mul(column, self.columns), split)
