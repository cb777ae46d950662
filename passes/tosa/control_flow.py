"""`tosa.cond_if` and `tosa.while_loop` as ops of `scf`."""

from xdsl.builder import Builder
from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from braid.dialects.tosa import CondIfOp, TosaOp, WhileLoopOp, YieldOp
from braid.passes.tosa.node import TosaNode


def convert_control_flow(op: TosaOp) -> None:
    """Replace `op`, whose regions are converted already, if it is control flow."""
    if isinstance(op, CondIfOp):
        _convert_if(op)
    elif isinstance(op, WhileLoopOp):
        _convert_loop(op)


def _convert_if(op: CondIfOp) -> None:
    builder = Builder(InsertPoint.before(op))
    condition = _element(builder, op.operands[0])
    then, otherwise = (op.detach_region(region) for region in list(op.regions))
    for region in (then, otherwise):
        block = _only_block(op, region)
        for argument, value in zip(list(block.args), op.operands[1:], strict=True):
            argument.replace_all_uses_with(value)
            block.erase_arg(argument)
        _replace_terminator(block, scf.YieldOp(*_yielded(op, block)))
    _replace(op, scf.IfOp(condition, op.result_types, then, otherwise))


def _convert_loop(op: WhileLoopOp) -> None:
    before, after = (op.detach_region(region) for region in list(op.regions))
    block = _only_block(op, before)
    builder = Builder(InsertPoint.before(_terminator(op, block)))
    condition = _element(builder, _yielded(op, block)[0])
    _replace_terminator(block, scf.ConditionOp(condition, *block.args))
    body = _only_block(op, after)
    _replace_terminator(body, scf.YieldOp(*_yielded(op, body)))
    _replace(op, scf.WhileOp(list(op.operands), op.result_types, before, after))


def _element(builder: Builder, condition: SSAValue) -> SSAValue:
    return builder.insert(tensor.ExtractOp(condition, [], i1)).results[0]


def _only_block(op: TosaOp, region: Region) -> Block:
    if len(region.blocks) != 1:
        _node(op).fail(f"expected regions of one block, got {len(region.blocks)}")
    return region.block


def _terminator(op: TosaOp, block: Block) -> YieldOp:
    last = block.last_op
    if not isinstance(last, YieldOp):
        _node(op).fail("expected regions that end in tosa.yield")
    return last


def _yielded(op: TosaOp, block: Block) -> list[SSAValue]:
    return list(_terminator(op, block).operands)


def _node(op: TosaOp) -> TosaNode:
    return TosaNode(op, Builder(InsertPoint.before(op)))


def _replace_terminator(block: Block, new: Operation) -> None:
    assert block.last_op is not None, "checked by its reader"
    new.location = block.last_op.location
    Rewriter.replace_op(block.last_op, new)


def _replace(op: TosaOp, new: Operation) -> None:
    new.location = op.location
    Rewriter.replace_op(op, new)
