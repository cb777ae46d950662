"""Parts of a fused group: what they read outside, and the group that computes one."""

from collections.abc import Sequence

import numpy as np
from xdsl.builder import Builder
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.rewriter import InsertPoint

from braid.analysis.tiles.boxes import Box, hull, sizes, whole, within
from braid.analysis.tiles.op_tiles import emit_tile
from braid.analysis.tiles.tiles import GroupTile, group_tile
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import dense_is_splat, to_numpy
from braid.dialects.braid.movement import SliceOp
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.passes.split.tile import Part, Tile


def fused_tile(op: FusedOp, part: Part) -> Tile | None:
    """The part of each operand of a group; None where a member cannot be cut, or in two dims."""
    tile = _group_tile(op, part)
    if tile is None:
        return None
    needed: dict[int, Part] = {}
    for argument, box in _argument_boxes(tile).items():
        shape = shape_of(argument)
        cut = [dim for dim, range in enumerate(box) if range != (0, shape[dim])]
        if len(cut) > 1:
            return None
        for dim in cut:
            needed[argument.index] = Part(dim, *box[dim])
    return Tile(needed)


def fused_part(op: FusedOp, part: Part, operands: Sequence[SSAValue]) -> FusedOp:
    """The group that computes `part` of the result of `op` from the parts of its operands."""
    tile = _group_tile(op, part)
    assert tile is not None, "only what has a tile is split"
    block = Block(arg_types=[operand.type for operand in operands])
    result = _Writer(tile, block).write()
    builder = Builder(InsertPoint.at_end(block))
    builder.insert(YieldOp(result))
    return FusedOp(operands, [result.type], block, dict(op.attributes))


def _group_tile(op: FusedOp, part: Part) -> GroupTile | None:
    """The tile of the members; None for groups with layouts, or with more than one result."""
    block = op.body.block
    members = [o for o in block.ops if not isinstance(o, ConstantOp | YieldOp)]
    (result, *others) = op.terminator.arguments
    values = [*block.args, *(value for member in members for value in member.results)]
    if others or result.owner not in members:
        return None
    if not all(layout_of(value.type).is_row_major for value in values):
        return None
    box = list(whole(shape_of(result)))
    box[part.dim] = (part.start, part.size)
    return group_tile(members, result, tuple(box))


def _argument_boxes(tile: GroupTile) -> dict[BlockArgument, Box]:
    """What is read of every block argument, all readers together."""
    found: dict[BlockArgument, Box] = {}
    for value, box in tile.inputs:
        if isinstance(value, BlockArgument):
            found[value] = hull(found[value], box) if value in found else box
    return found


class _Writer:
    """Writes the members of a tile into a block whose arguments are the parts of the operands."""

    def __init__(self, tile: GroupTile, block: Block) -> None:
        self.tile = tile
        self.block = block
        self.builder = Builder(InsertPoint.at_end(block))
        self.boxes: dict[SSAValue, Box] = {**tile.boxes, **_argument_boxes(tile)}
        self.values: dict[SSAValue, SSAValue] = {}

    def write(self) -> SSAValue:
        """Inserts all members; returns the part of the result."""
        for op in self.tile.ops:
            boxes = self.tile.ops[op].operands
            operands = [
                self._operand(op.operands[index], box)
                for index, box in enumerate(boxes)
                if box is not None
            ]
            box = self.tile.boxes[op.results[0]]
            made = emit_tile(self.builder, op, self.tile.ops[op], box, operands)
            self.values[op.results[0]] = made
        return self.values[self.tile.result]

    def _operand(self, value: SSAValue, box: Box) -> SSAValue:
        if isinstance(value.owner, ConstantOp):
            constant = value.owner
            if dense_is_splat(constant.value):
                return self._splat(constant, sizes(box))
            known, made = whole(shape_of(value)), self.builder.insert(constant.clone()).output
        elif isinstance(value, BlockArgument):
            known = self.boxes.get(value, whole(shape_of(value)))
            made = self.block.args[value.index]
        else:
            known, made = self.boxes[value], self.values[value]
        if box == known:
            return made
        part = within(box, known)
        return self.builder.insert(SliceOp.get(made, [a for a, _ in part], sizes(part))).output

    def _splat(self, constant: ConstantOp, shape: Sequence[int]) -> SSAValue:
        """One number in the shape of a part."""
        array = np.full(
            shape, constant.value.get_values()[0], to_numpy(element_type_of(constant.output))
        )
        return self.builder.insert(ConstantOp.of(array)).output
