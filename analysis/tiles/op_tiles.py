"""Tiles of ops and of groups, and the ops that compute them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.builder import Builder
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from braid.analysis.tiles.tiles import GroupTile, group_tile, is_splat
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import TensorOp, element_type_of, shape_of
from braid.dialects.braid.boxes import Box, hull, sizes, whole, within
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.movement import BroadcastOp, ConcatOp, PadOp, SliceOp
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.dialects.braid.tiling import IterationDim, Tile


def iteration_domain(op: Operation) -> list[IterationDim]:
    """Return the dims along which parts of an op, or of a group with one result, can be
    computed.
    """
    if isinstance(op, FusedOp):
        shapes = [shape_of(result) for result in op.results]
        return [IterationDim(extent) for extent in shapes[0]] if len(shapes) == 1 else []
    return op.iteration_domain() if isinstance(op, TensorOp) and op.results else []


def op_tile(op: Operation, box: Box) -> Tile | None:
    """Return how a box of the iteration domain is computed; None where it cannot be."""
    if isinstance(op, TensorOp):
        return op.tile(box)
    if not isinstance(op, FusedOp) or (tile := _tile_of_group(op, box)) is None:
        return None
    known = _argument_boxes(tile)
    return Tile(tuple(known.get(argument) for argument in op.body.block.args))


def tiled(op: Operation, tile: Tile, box: Box, operands: Sequence[SSAValue]) -> Operation:
    """Return the op that computes `tile`, which is that of `box`; not inserted.

    `operands` are the slices of those that are read.
    """
    if isinstance(op, TensorOp):
        return op.tiled(tile, box, operands)
    assert isinstance(op, FusedOp)
    members = _tile_of_group(op, box)
    assert members is not None, "only values with a tile are cut"
    read = [a for a, part in zip(op.body.block.args, tile.operands, strict=True) if part]
    block = Block(arg_types=[operand.type for operand in operands])
    writer = _GroupWriter(members, block, dict(zip(read, block.args, strict=True)))
    for member in members.ops:
        writer.values[member.results[0]] = writer.emit(member)
    result = writer.values[members.result]
    writer.builder.insert(YieldOp(result))
    part = FusedOp(operands, [result.type], block, dict(op.attributes))
    part.location = op.location
    return part


def _tile_of_group(op: FusedOp, box: Box) -> GroupTile | None:
    """Return the tile of the members; None for groups with layouts, or with more than one
    result.
    """
    block = op.body.block
    members = [o for o in block.ops if not isinstance(o, ConstantOp | YieldOp)]
    (result, *others) = op.terminator.arguments
    values = [*block.args, *(value for member in members for value in member.results)]
    if others or result.owner not in members:
        return None
    if not all(layout_of(value.type).is_row_major for value in values):
        return None
    return group_tile(members, result, box)


def _argument_boxes(tile: GroupTile) -> dict[SSAValue, Box]:
    """Return the parts of every block argument that all readers together read."""
    found: dict[SSAValue, Box] = {}
    for value, box in tile.inputs:
        if isinstance(value, BlockArgument):
            found[value] = hull(found[value], box) if value in found else box
    return found


class TileWriter(ABC):
    """Inserts the members of a tile; a subclass maps parts of outside values to values of the
    tile."""

    def __init__(self, tile: GroupTile, block: Block) -> None:
        self.tile = tile
        self.block = block
        self.builder = Builder(InsertPoint.at_end(block))
        self.values: dict[SSAValue, SSAValue] = {}

    @abstractmethod
    def outside(self, value: SSAValue, box: Box) -> SSAValue:
        """Return a part of a value that no member computes, and that is not a splat."""

    def emit(self, op: TensorOp) -> SSAValue:
        """Insert the op that computes the tile of `op`; a piece that is not changed needs none."""
        tile, box = self.tile.ops[op], self.tile.boxes[op.results[0]]
        read = [index for index, part in enumerate(tile.operands) if part is not None]
        operands = [self.operand(op, index) for index in read]
        if _is_operand(op, operands, sizes(box)):
            return operands[0]
        return self.builder.insert(op.tiled(tile, box, operands)).results[0]

    def operand(self, op: TensorOp, index: int) -> SSAValue:
        """Return the part of its operand that the tile of `op` reads."""
        value, box = op.operands[index], self.tile.ops[op].operands[index]
        assert box is not None
        if is_splat(value):
            assert isinstance(value.owner, ConstantOp)
            number, dtype = value.owner.value.get_values()[0], to_numpy(element_type_of(value))
            return self.builder.insert(ConstantOp.of(np.full(sizes(box), number, dtype))).output
        if value not in self.tile.boxes:
            return self.outside(value, box)
        return self.part(self.values[value], within(box, self.tile.boxes[value]))

    def part(self, value: SSAValue, box: Box) -> SSAValue:
        """Return a box of an inserted value."""
        if box == whole(shape_of(value)):
            return value
        return self.builder.insert(SliceOp.get(value, [a for a, _ in box], sizes(box))).output


def _is_operand(op: TensorOp, operands: Sequence[SSAValue], shape: Sequence[int]) -> bool:
    """Return whether the tile is its operand as it is: a piece, a part that is read without
    gaps.
    """
    moves = isinstance(op, BroadcastOp | ConcatOp | PadOp) or (
        isinstance(op, SliceOp) and set(op.strides.get_values()) <= {1}
    )
    return moves and len(operands) == 1 and shape_of(operands[0]) == tuple(shape)


class _GroupWriter(TileWriter):
    """Writes the part of a group; `arguments` replace the values that the group reads."""

    def __init__(
        self, tile: GroupTile, block: Block, arguments: Mapping[SSAValue, SSAValue]
    ) -> None:
        super().__init__(tile, block)
        self.arguments = arguments
        self.boxes = _argument_boxes(tile)

    def outside(self, value: SSAValue, box: Box) -> SSAValue:
        """Return a part of an argument, or of a constant."""
        if isinstance(value.owner, ConstantOp):
            return self.part(self.builder.insert(value.owner.clone()).output, box)
        return self.part(self.arguments[value], within(box, self.boxes[value]))
