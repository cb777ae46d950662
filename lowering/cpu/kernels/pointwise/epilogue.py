"""The elementwise ops after a tile, applied while the tile is in registers."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from xdsl.ir import BlockArgument, SSAValue

from braid.analysis.nests.pointwise import Pointwise
from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.emit.buffer import LINE_BYTES, Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.math.points import Leaf, evaluate
from braid.support.sizes.expression import Extent

Accumulators = list[list[Value]]
"""The vectors of a tile, by rows."""


@dataclass(frozen=True)
class Epilogue:
    """The ops on the values of `anchor` before they are stored.

    `row_strides` and `vector_steps` have one entry per leaf of `points` and one for the results:
    the elements to the next row, and to the next vector of columns; 0 for broadcast tensors.
    """

    anchor: SSAValue
    points: Pointwise
    row_strides: tuple[Index, ...]
    vector_steps: tuple[Extent, ...]


def tile_masks(e: Emitter, extent: int, number: Index, vectors: int) -> list[Value | None]:
    """Return for each vector of tile `number` along a dim the mask of the dim's `extent` elements
    that exist.

    It is None if all tiles are whole.
    """
    block = vectors * e.lanes
    if extent % block == 0:
        return [None] * vectors
    left = e.sub(extent, e.mul(number, block))
    return [e.mask(e.sub(left, vector * e.lanes)) for vector in range(vectors)]


@dataclass(frozen=True)
class TileStore:
    """A store of a tile: row 0 of leaf i is at `bases[i]`, of the results at `bases[-1]`.

    `masks` has one entry per vector of the tile: None, or the columns that exist.
    """

    epilogue: Epilogue
    e: Emitter
    buffers: Sequence[Buffer]
    bases: Sequence[Index]
    first_vector: Index
    masks: Sequence[Value | None]
    _loaded: dict[tuple[int, int, int], Value] = field(
        default_factory=dict[tuple[int, int, int], Value]
    )

    def store(self, tile: Accumulators) -> None:
        """Apply the epilogue to every vector and write the results."""
        points = self.epilogue.points
        outputs = self.buffers[-len(points.results) :]
        for row, vectors in enumerate(tile):
            for vector, accumulator in enumerate(vectors):
                known = {self.epilogue.anchor: accumulator}
                values = evaluate(self.e, points, self._leaf_at(row, vector), known)
                offset = self._offset(-1, row, vector)
                for buffer, value in zip(outputs, values, strict=True):
                    buffer.store(self.e, value, offset, self.masks[vector])

    def prefetch(self, rows: int) -> None:
        """Prefetch what `rows` rows read, where pieces of rows lie apart; processors prefetch
        contiguous memory themselves.
        """
        columns = len(self.masks) * self.e.lanes
        for number, leaf in enumerate(self.epilogue.points.leaves):
            step, row_stride = self.epilogue.vector_steps[number], self.epilogue.row_strides[number]
            if step == 0 or (isinstance(row_stride, int) and row_stride <= columns):
                continue
            buffer = self.buffers[leaf.index]
            bytes_apart = step * bytes_of(buffer.element_type)
            line = max(1, LINE_BYTES // bytes_apart) if isinstance(bytes_apart, int) else 1
            for row in range(rows):
                for vector in range(0, len(self.masks), line):
                    buffer.prefetch(self.e, self._offset(number, row, vector))

    def load_shared(self) -> None:
        """Load what all rows share, for `row`."""
        for number, argument in enumerate(self.epilogue.points.leaves):
            if self.epilogue.row_strides[number] == 0:
                for vector in range(len(self.masks)):
                    self._leaf(argument, 0, vector)

    def row(self, number: Index, masks: Sequence[Value | None]) -> "TileStore":
        """Return the tile from row `number` on with these masks, and the values loaded for all
        rows.
        """
        strides = self.epilogue.row_strides
        bases = [
            self.e.add(base, self.e.mul(number, stride))
            for base, stride in zip(self.bases, strides, strict=True)
        ]
        shared = {key: value for key, value in self._loaded.items() if strides[key[0]] == 0}
        return replace(self, bases=bases, masks=masks, _loaded=shared)

    def _leaf_at(self, row: int, vector: int) -> Leaf:
        return lambda argument: self._leaf(argument, row, vector)

    def _leaf(self, argument: BlockArgument, row: int, vector: int) -> Value:
        """Return the operand at a row and a vector of columns, loaded once where it is repeated."""
        number = self.epilogue.points.leaves.index(argument)
        row_stride = self.epilogue.row_strides[number]
        stride = self.epilogue.vector_steps[number]
        key = (number, row if row_stride != 0 else 0, vector if stride != 0 else 0)
        if key not in self._loaded:
            buffer = self.buffers[argument.index]
            offset = self._offset(number, row, vector)
            self._loaded[key] = (
                buffer.load(self.e, offset, self.masks[vector])
                if stride != 0
                else buffer.splat(self.e, offset)
            )
        return self._loaded[key]

    def _offset(self, tensor: int, row: int, vector: int) -> Index:
        step = self.epilogue.vector_steps[tensor]
        base = self.e.add(self.bases[tensor], self.e.mul(self.first_vector, step))
        base = self.e.add(base, self.e.mul(vector, step))
        return self.e.add(base, self.e.mul(row, self.epilogue.row_strides[tensor]))
