"""The code of one tile as a small model: the group's ops on the tile's shapes."""

from dataclasses import dataclass

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from braid.analysis.tiles.boxes import Box, is_contiguous, sizes, within
from braid.analysis.tiles.op_tiles import emit_tile
from braid.analysis.tiles.tiles import GroupTile, is_splat
from braid.dialects.braid.base import TensorOp, element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.movement import SliceOp, TransposeOp


@dataclass(frozen=True)
class Port:
    """What a tile reads or writes outside: `box` of `value`, inside with its dims permuted.

    Dim i inside is dim `permutation[i]` outside; without a permutation nothing is copied if the
    box is contiguous. `number` is that of the box among those of the tile, the result's is -1.
    """

    value: SSAValue
    box: Box
    number: int
    permutation: tuple[int, ...] | None = None

    @property
    def is_copied(self) -> bool:
        """Whether the tile works on a copy."""
        return self.permutation is not None or not is_contiguous(self.box, shape_of(self.value))

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


def tile_program(tile: GroupTile) -> TileProgram:
    """The program of a tile. Transposes of what is read, and of the result, become permutations
    of the copies that they would be of."""
    return _Writer(tile).write()


class _Writer:
    """Writes the function `@tile`."""

    def __init__(self, tile: GroupTile) -> None:
        self.tile = tile
        self.block = Block()
        self.builder = Builder(InsertPoint.at_end(self.block))
        self.inputs: dict[Port, SSAValue] = {}
        self.values: dict[SSAValue, SSAValue] = {}

    def write(self) -> TileProgram:
        """Emits all ops of the tile, in order."""
        last = self.tile.result.owner
        turned = last if isinstance(last, TransposeOp) and last.input in self.tile.boxes else None
        for op in self.tile.ops:
            if op is not turned:
                self.values[op.results[0]] = self._emit(op)
        box = self.tile.boxes[self.tile.result]
        if turned is None:
            value, permutation = self.values[self.tile.result], None
        else:
            value = self._operand(turned, 0)
            permutation = tuple(int(i) for i in np.argsort(turned.permutation.get_values()))
        self.builder.insert(func.ReturnOp(value))
        output = Port(self.tile.result, box, -1, permutation)
        types = ([argument.type for argument in self.block.args], [value.type])
        function = func.FuncOp("tile", types, Region(self.block))
        return TileProgram(ModuleOp([function]), tuple(self.inputs), output)

    def _emit(self, op: TensorOp) -> SSAValue:
        tile = self.tile.ops[op]
        if isinstance(op, TransposeOp) and self._is_input(op.input):
            box = tile.operands[0]
            assert box is not None
            return self._input(op.input, box, op.permutation.get_values())
        read = [index for index, box in enumerate(tile.operands) if box is not None]
        operands = [self._operand(op, index) for index in read]
        return emit_tile(self.builder, op, tile, self.tile.boxes[op.results[0]], operands)

    def _operand(self, op: TensorOp, index: int) -> SSAValue:
        """The part of its operand that the tile of `op` reads."""
        value, box = op.operands[index], self.tile.ops[op].operands[index]
        assert box is not None
        if is_splat(value):
            return self._splat(value, box)
        if self._is_input(value):
            return self._input(value, box)
        known = self.tile.boxes[value]
        if box == known:
            return self.values[value]
        part = within(box, known)
        starts, extents = [start for start, _ in part], sizes(part)
        return self.builder.insert(SliceOp.get(self.values[value], starts, extents)).output

    def _is_input(self, value: SSAValue) -> bool:
        return value not in self.tile.boxes and not is_splat(value)

    def _input(
        self, value: SSAValue, box: Box, permutation: tuple[int, ...] | None = None
    ) -> SSAValue:
        port = Port(value, box, self.tile.inputs.index((value, box)), permutation)
        if port not in self.inputs:
            self.inputs[port] = self.block.insert_arg(port.type, len(self.block.args))
        return self.inputs[port]

    def _splat(self, value: SSAValue, box: Box) -> SSAValue:
        assert isinstance(value.owner, ConstantOp)
        number = value.owner.value.get_values()[0]
        array = np.full(sizes(box), number, to_numpy(element_type_of(value)))
        return self.builder.insert(ConstantOp.of(array)).output
