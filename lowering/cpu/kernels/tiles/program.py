"""The code of one tile as a small model: the group's ops on the tile's shapes."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.rewriter import Rewriter

from braid.analysis.nests.dims import row_major_strides
from braid.analysis.storage.strided_storage import Strides
from braid.analysis.tiles.op_tiles import TileWriter
from braid.analysis.tiles.tiles import GroupTile, is_splat
from braid.dialects.braid.base import DecomposableOp, TensorOp, element_type_of
from braid.dialects.braid.boxes import Box, sizes
from braid.dialects.braid.movement import TransposeOp


@dataclass(frozen=True)
class Port:
    """A tensor that a tile reads or writes: `box` of `value`, whose dims the tile permutes.

    Dim i inside is dim `permutation[i]` outside; without a permutation nothing is copied if the
    box is contiguous. `number` is the index of the box among those of the tile; the result's is -1.
    `strides` are those of the whole `value`, in elements.
    """

    value: SSAValue
    box: Box
    number: int
    strides: Strides
    permutation: tuple[int, ...] | None = None

    @property
    def is_copied(self) -> bool:
        """Return whether the tile works on a copy of the box."""
        return self.permutation is not None or not self._is_contiguous

    @property
    def _is_contiguous(self) -> bool:
        """Return whether the elements of the box are contiguous."""
        extents = sizes(self.box)
        dims = zip(extents, self.strides, row_major_strides(extents), strict=True)
        return all(extent == 1 or stride == dense for extent, stride, dense in dims)

    @property
    def order(self) -> tuple[int, ...]:
        """The permutation, spelled out."""
        return self.permutation or tuple(range(len(self.box)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape inside."""
        extents = sizes(self.box)
        return tuple(extents[dim] for dim in self.order)

    @property
    def type(self) -> TensorType[Attribute]:
        """The type inside."""
        return TensorType(element_type_of(self.value), self.shape)


@dataclass(frozen=True)
class TileProgram:
    """`module` holds `@tile`, a function from the parts `inputs` to the part `output`."""

    module: ModuleOp
    inputs: tuple[Port, ...]
    output: Port


def tile_program(tile: GroupTile, strides: Mapping[SSAValue, Strides]) -> TileProgram:
    """Return the program of a tile whose inputs and result lie outside with `strides`.

    Transposes of operands and of the result become permutations in the copies of tiles.
    """
    return _Writer(tile, strides).write()


class _Writer(TileWriter):
    """Writes the function `@tile`."""

    def __init__(self, tile: GroupTile, strides: Mapping[SSAValue, Strides]) -> None:
        super().__init__(tile, Block())
        self.strides = strides
        self.inputs: dict[Port, SSAValue] = {}

    def write(self) -> TileProgram:
        """Emit all ops of the tile, in order."""
        last = self.tile.result.owner
        turned = last if isinstance(last, TransposeOp) and last.input in self.tile.boxes else None
        for op in self.tile.ops:
            if op is not turned:
                self.values[op.results[0]] = self.emit(op)
        box = self.tile.boxes[self.tile.result]
        if turned is None:
            value, permutation = self.values[self.tile.result], None
        else:
            value = self.operand(turned, 0)
            permutation = tuple(int(i) for i in np.argsort(turned.permutation.get_values()))
        self.builder.insert(func.ReturnOp(value))
        output = Port(self.tile.result, box, -1, self.strides[self.tile.result], permutation)
        types = ([argument.type for argument in self.block.args], [value.type])
        function = func.FuncOp("tile", types, Region(self.block))
        return TileProgram(ModuleOp([function]), tuple(self.inputs), output)

    def emit(self, op: TensorOp) -> SSAValue:
        """Emit the members; transposes of inputs become copies, and ops that others replace are
        left out.
        """
        box = self.tile.ops[op].operands[0]
        if isinstance(op, TransposeOp) and self._is_input(op.input):
            assert box is not None
            return self.outside(op.input, box, op.permutation.get_values())
        value = super().emit(op)
        if not isinstance(value.owner, DecomposableOp):
            return value
        (made,) = value.owner.decompose(self.builder)
        Rewriter.erase_op(value.owner)
        return made

    def outside(
        self, value: SSAValue, box: Box, permutation: tuple[int, ...] | None = None
    ) -> SSAValue:
        """Return the argument of the function for a value from outside of the tile."""
        number = self.tile.inputs.index((value, box))
        port = Port(value, box, number, self.strides[value], permutation)
        if port not in self.inputs:
            self.inputs[port] = self.block.insert_arg(port.type, len(self.block.args))
        return self.inputs[port]

    def _is_input(self, value: SSAValue) -> bool:
        return value not in self.tile.boxes and not is_splat(value)
