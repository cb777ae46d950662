"""`if`, `case` and `while` of StableHLO as ops of `scf`."""

from collections.abc import Sequence

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.stablehlo import ReturnOp, StablehloOp
from braid.passes.stablehlo.node import StablehloNode

CONTROL_FLOW = {"stablehlo.case", "stablehlo.if", "stablehlo.while"}


def convert_control_flow(op: StablehloOp) -> None:
    """Replace `op`, one of `CONTROL_FLOW`, whose regions are converted already."""
    regions = [op.detach_region(region) for region in list(op.regions)]
    new = _loop(op, regions) if op.SHORT == "while" else _choice(op, regions)
    new.location = op.location
    Rewriter.replace_op(op, new)


def _choice(op: StablehloOp, regions: Sequence[Region]) -> Operation:
    builder = Builder(InsertPoint.before(op))
    for region in regions:
        block = _only_block(op, region)
        _end(block, scf.YieldOp(*_returned(op, block)))
    if op.SHORT == "if":
        condition = _element(builder, op.operands[0])
        return scf.IfOp(condition, op.result_types, regions[0], regions[1])
    return _case(builder, op, 0, regions)


def _case(builder: Builder, op: StablehloOp, number: int, regions: Sequence[Region]) -> scf.IfOp:
    """Branch `number` of `op`, or one of those behind it; the last one takes all other numbers."""
    index = op.operands[0]
    dtype = to_numpy(element_type_of(index))
    expected = builder.insert(ConstantOp.of(np.array(number, dtype))).results[0]
    is_it = builder.insert(elementwise("eq", index, expected)).results[0]
    condition = _element(builder, is_it)
    if len(regions) == 2:
        return scf.IfOp(condition, op.result_types, regions[0], regions[1])
    block = Block()
    nested = _case(Builder(InsertPoint.at_end(block)), op, number + 1, regions[1:])
    block.add_ops([nested, scf.YieldOp(*nested.results)])
    return scf.IfOp(condition, op.result_types, regions[0], Region(block))


def _loop(op: StablehloOp, regions: Sequence[Region]) -> Operation:
    before, after = regions
    block = _only_block(op, before)
    (condition,) = _returned(op, block)
    assert block.last_op is not None, "checked with the values that it returns"
    element = _element(Builder(InsertPoint.before(block.last_op)), condition)
    _end(block, scf.ConditionOp(element, *block.args))
    body = _only_block(op, after)
    _end(body, scf.YieldOp(*_returned(op, body)))
    return scf.WhileOp(list(op.operands), op.result_types, before, after)


def _element(builder: Builder, condition: SSAValue) -> SSAValue:
    return builder.insert(tensor.ExtractOp(condition, [], i1)).results[0]


def _only_block(op: StablehloOp, region: Region) -> Block:
    if len(region.blocks) != 1 or not isinstance(region.block.last_op, ReturnOp):
        node = StablehloNode(op, Builder(InsertPoint.before(op)))
        node.fail("expected regions of one block that ends in stablehlo.return")
    return region.block


def _returned(op: StablehloOp, block: Block) -> list[SSAValue]:
    assert isinstance(block.last_op, ReturnOp), f"'{op.name}' was checked"
    return list(block.last_op.operands)


def _end(block: Block, new: Operation) -> None:
    assert block.last_op is not None, "checked before"
    new.location = block.last_op.location
    Rewriter.replace_op(block.last_op, new)
