"""Control flow of other dialects, regions of one block with a terminator, as ops of `scf`."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.builder import Builder
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from braid.dialects.braid.base import AnyTensor, element_type_of, fits, shape_of, tensor_type
from braid.dialects.braid.movement import ReshapeOp
from braid.dialects.braid.sizes import extents_of_type
from braid.passes.conversion.replacement import Replacement

Node = Replacement[Any]


def if_else(node: Node, condition: SSAValue, inputs: Sequence[SSAValue] = ()) -> Sequence[SSAValue]:
    """Return one of the two regions of the op, whose arguments are `inputs`."""
    _require_regions(node, 2)
    element = bool_in(node, condition, node.op)
    then, otherwise = branches(node, inputs)
    return node.insert(scf.IfOp(element, node.op.result_types, then, otherwise))


def branches(node: Node, inputs: Sequence[SSAValue] = ()) -> list[Region]:
    """Return the regions of the op, whose arguments are `inputs`, as those of an `scf.if`."""
    for region in node.op.regions:
        block = _block_of(node, region, [value.type for value in inputs])
        _end(block, scf.YieldOp(*_returned(node, block, node.op.result_types)))
        for argument, value in zip(list(block.args), inputs, strict=True):
            argument.replace_all_uses_with(value)
            block.erase_arg(argument)
    return [node.op.detach_region(region) for region in list(node.op.regions)]


def while_loop(node: Node) -> Sequence[SSAValue]:
    """Return the second region of the op as long as the first one returns true."""
    _require_regions(node, 2)
    types = node.op.operand_types
    condition, body = (_block_of(node, region, types) for region in node.op.regions)
    values = _returned(node, condition)
    if len(values) != 1:
        node.fail(f"its condition returns {len(values)} values, expected one")
    element = bool_in(node, values[0], _last(condition))
    _end(condition, scf.ConditionOp(element, *condition.args))
    _end(body, scf.YieldOp(*_returned(node, body, types)))
    before, after = (node.op.detach_region(region) for region in list(node.op.regions))
    return node.insert(scf.WhileOp(list(node.op.operands), types, before, after))


def counted_loop(
    node: Node,
    count: int,
    carried: Sequence[SSAValue],
    body: Callable[[SSAValue, Sequence[SSAValue]], Sequence[SSAValue]],
) -> Sequence[SSAValue]:
    """Insert a loop of `count` iterations, and return its final values.

    The body takes the iteration's number, an i64 of rank 0, and the carried values, and returns the
    next ones, of the same types.
    """
    block = Block(arg_types=[IndexType(), *(value.type for value in carried)])
    with node.inside(block):
        number = node.insert(arith.IndexCastOp(block.args[0], i64))[0]
        place = node.insert(tensor.FromElementsOp(number, result_type=tensor_type(i64, [])))[0]
        node.insert(scf.YieldOp(*body(place, block.args[1:])))
    first, limit, step = (
        node.insert(arith.ConstantOp(IntegerAttr(value, IndexType())))[0] for value in (0, count, 1)
    )
    return node.insert(scf.ForOp(first, limit, step, list(carried), block))


def bool_in(node: Node, value: SSAValue, before: Operation) -> SSAValue:
    """Return the bool in a tensor of one element, taken out before an op."""
    if element_type_of(value) != i1 or {*shape_of(value)} - {1}:
        node.fail(f"its condition has type {value.type}, expected one bool")
    builder = Builder(InsertPoint.before(before))
    if shape_of(value):
        value = builder.insert(ReshapeOp.get(value, [])).results[0]
    return builder.insert(tensor.ExtractOp(value, [], i1)).results[0]


def _require_regions(node: Node, count: int) -> None:
    if len(node.op.regions) != count:
        node.fail(f"expected {count} regions, got {len(node.op.regions)}")


def _block_of(node: Node, region: Region, argument_types: Sequence[Attribute]) -> Block:
    blocks = list(region.blocks)
    last = blocks[0].last_op if len(blocks) == 1 else None
    if last is None or not last.has_trait(IsTerminator):
        node.fail("expected regions of one block that ends in a terminator")
    actual = [argument.type for argument in blocks[0].args]
    if not _fit(actual, argument_types):
        node.fail(f"a region takes {_listed(actual)}, expected {_listed(argument_types)}")
    for argument, type in zip(blocks[0].args, argument_types, strict=True):
        if argument.type != type:
            Rewriter.replace_value_with_new_type(argument, type)
    return blocks[0]


def _returned(
    node: Node, block: Block, types: Sequence[Attribute] | None = None
) -> Sequence[SSAValue]:
    """Return the operands of a block's terminator, which must fit `types`, if these are given."""
    values = _last(block).operands
    actual = [value.type for value in values]
    if types is not None and not _fit(actual, types):
        node.fail(f"a region returns {_listed(actual)}, expected {_listed(types)}")
    return list(values)


def _fit(left: Sequence[Attribute], right: Sequence[Attribute]) -> bool:
    """Return whether types may be equal, at some sizes of open dims."""
    return len(left) == len(right) and all(map(_may_equal, left, right))


def _may_equal(left: Attribute, right: Attribute) -> bool:
    if not isinstance(left, TensorType) or not isinstance(right, TensorType):
        return left == right
    a, b = cast(AnyTensor, left), cast(AnyTensor, right)
    return a.element_type == b.element_type and fits(extents_of_type(a), extents_of_type(b))


def _listed(types: Sequence[Attribute]) -> str:
    return f"({', '.join(map(str, types))})"


def _last(block: Block) -> Operation:
    assert block.last_op is not None, "it was checked for a terminator"
    return block.last_op


def _end(block: Block, new: Operation) -> None:
    new.location = _last(block).location
    Rewriter.replace_op(_last(block), new)
