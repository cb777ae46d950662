"""The elementwise ops after a tile, applied while the tile is in registers."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import BlockArgument, SSAValue

from braid.lowering.cpu.kernels.emit.buffer import Buffer
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Index, Value
from braid.lowering.cpu.kernels.pointwise import Leaf, Pointwise

Accumulators = list[list[Value]]
"""Per row, the vectors of the tile."""


@dataclass(frozen=True)
class Epilogue:
    """What happens to the values of `anchor` before they are stored.

    `row_strides` has one entry per leaf of `points` and one for the results; `column_strides`
    has one per leaf, 1 or 0.
    """

    anchor: SSAValue
    points: Pointwise
    row_strides: tuple[int, ...]
    column_strides: tuple[int, ...]


@dataclass(frozen=True)
class TileStore:
    """Where a tile goes: row 0 of leaf i is at `bases[i]`, of the results at `bases[-1]`.

    `masks` has one entry per vector of the tile: None, or the columns that exist.
    """

    epilogue: Epilogue
    e: Emitter
    buffers: Sequence[Buffer]
    bases: Sequence[Index]
    first_column: Index
    masks: Sequence[Value | None]
    _loaded: dict[tuple[int, int, int], Value] = field(
        default_factory=dict[tuple[int, int, int], Value]
    )

    def store(self, tile: Accumulators) -> None:
        """Applies the epilogue to every vector and writes the results."""
        points = self.epilogue.points
        outputs = self.buffers[-len(points.results) :]
        for row, vectors in enumerate(tile):
            for vector, accumulator in enumerate(vectors):
                known = {self.epilogue.anchor: accumulator}
                values = points.evaluate(self.e, self._leaf_at(row, vector), known)
                offset = self._offset(-1, row, self._column(vector))
                for buffer, value in zip(outputs, values, strict=True):
                    buffer.store(self.e, value, offset, self.masks[vector])

    def _leaf_at(self, row: int, vector: int) -> Leaf:
        return lambda argument: self._leaf(argument, row, vector)

    def _leaf(self, argument: BlockArgument, row: int, vector: int) -> Value:
        """The operand at a row and a vector of columns, loaded once where it is repeated."""
        number = self.epilogue.points.leaves.index(argument)
        row_stride = self.epilogue.row_strides[number]
        stride = self.epilogue.column_strides[number]
        key = (number, row if row_stride else 0, vector if stride else 0)
        if key not in self._loaded:
            buffer = self.buffers[argument.index]
            offset = self._offset(number, row, self.e.mul(self._column(vector), stride))
            self._loaded[key] = (
                buffer.load(self.e, offset, self.masks[vector])
                if stride
                else buffer.splat(self.e, offset)
            )
        return self._loaded[key]

    def _column(self, vector: int) -> Index:
        return self.e.add(self.first_column, vector * self.e.lanes)

    def _offset(self, tensor: int, row: int, column: Index) -> Index:
        base = self.e.add(self.bases[tensor], column)
        return self.e.add(base, row * self.epilogue.row_strides[tensor])
