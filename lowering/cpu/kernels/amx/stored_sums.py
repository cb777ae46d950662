"""The epilogue of a block, whose sums it reads from scratch memory by vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import i32

from braid.lowering.common.emitted_dialects import vector
from braid.lowering.cpu.kernels.amx import instructions as amx
from braid.lowering.cpu.kernels.amx.block import BlockedProduct, RowTile
from braid.lowering.cpu.kernels.pointwise.epilogue import Epilogue, TileStore, tile_masks
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value


@dataclass(frozen=True)
class StoredSums:
    """Sums of a block in scratch memory, from `begin` on, before their epilogue.

    Of each tile, the rows before its end in `ends` are stored.
    """

    kernel: BlockedProduct
    e: Emitter
    buffers: Sequence[Buffer]
    tiles: Sequence[RowTile]
    ends: Sequence[Index]
    begin: Index
    column_block: Index

    @cached_property
    def _stores(self) -> list[TileStore]:
        """Stores of row 0 of each tile, with the operands loaded that all of its rows share."""
        e, kernel, nest = self.e, self.kernel, self.kernel.nest
        width = kernel.block.column_tiles
        first = e.mul(self.column_block, width)
        masks = tile_masks(e, nest.columns, self.column_block, width)
        epilogue = Epilogue(nest.anchor, nest.points, nest.row.strides[2:], nest.vector_steps)
        found = [
            TileStore(epilogue, e, self.buffers[:-1], tile.bases[2:], first, masks)
            for tile in self.tiles
        ]
        for store in found:
            store.load_shared()
        return found

    def prepare(self) -> None:
        """Load values that rows share here, if that is outside of loops."""
        assert self._stores

    def store(self, first: Index, count: int) -> None:
        """Store `count` rows of each tile from row `first` on, where they exist and are not known.

        The last block of columns has fewer.
        """
        whole, rest = divmod(self.kernel.nest.columns, self.kernel.columns)
        self.e.branch(
            self.column_block if whole and rest else 0,
            whole,
            lambda: self._store(first, count, self.kernel.columns),
            lambda: self._store(first, count, rest),
        )

    def _store(self, first: Index, count: int, columns: int) -> None:
        e, block = self.e, self.kernel.block
        vectors = range(-(-columns // amx.COLUMNS))
        masks = [e.tail_mask(columns - number * amx.COLUMNS) for number in vectors]
        end = e.add(first, count)
        for place, (tile, last) in enumerate(zip(self.tiles, self.ends, strict=True)):

            def row(number: Index, place: int = place) -> None:
                line = e.add(number, place * block.rows)
                at = e.add(self.begin, e.mul(line, block.column_tiles * amx.COLUMNS))
                sums = [self._sums(e.add(at, n * amx.COLUMNS)) for n in vectors]
                self._stores[place].row(number, masks).store([sums])

            e.loop(e.maximum(first, tile.known), e.minimum(end, last), 1, row)

    def _sums(self, at: Index) -> Value:
        """Return a vector of the sums in scratch memory."""
        sums = self.buffers[-1].load(self.e, at)
        if self.kernel.product.is_float:
            return sums
        return self.e.insert(vector.BitcastOp(sums, self.e.vector_type(i32)))
