"""Groups bound at likely sizes, and back: which types their ops have where sizes are open.

Decisions about a group with open dims, such as the best kernel, are made on a copy of it with
likely numbers in place of sizes. The ops of the copy, and their copies in groups that a pass tries,
hold their original types in `braid.open_types`.
"""

from collections.abc import Mapping
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter

from braid.analysis.sizes.binding import Binding
from braid.dialects.braid.attribute_names import OPEN_OP, OPEN_TYPES
from braid.dialects.braid.attributes import layout_of, with_layout
from braid.dialects.braid.base import AnyTensor, extents_of, shape_of
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.sized_ops import SIZED_OPS, SizedOp, has_sizes
from braid.support.sizes.expression import symbols_of


def note_open_types(op: Operation) -> None:
    """Write `braid.open_types` on an op with a tensor of open dims, or with sizes of its own.

    The latter becomes another op where its sizes are numbers, and gets `braid.open_op` as well.
    """
    if not _has_open_types(op):
        return
    if isinstance(op, SizedOp):
        named = {**op.attributes, **op.properties}
        op.attributes[OPEN_OP] = ArrayAttr([StringAttr(op.name), DictionaryAttr(named)])
    op.attributes[OPEN_TYPES] = ArrayAttr([*op.operand_types, *op.result_types])


def has_open_sizes(op: Operation) -> bool:
    """Return whether `op`, or an op inside of it, has sizes that are known only at run time.

    This includes ops of a copy at likely sizes.
    """
    return any(OPEN_TYPES in each.attributes or _has_open_types(each) for each in op.walk())


def _has_open_types(op: Operation) -> bool:
    types = [*op.operand_types, *op.result_types]
    shapes = [type.get_shape() for type in types if isinstance(type, TensorType)]
    return has_sizes(op) or any(DYNAMIC in shape for shape in shapes)


def symbols_in(group: FusedOp) -> set[str]:
    """Return the names of the symbols in the types of a group."""
    inside = (result for op in group.body.block.ops for result in op.results)
    values: list[SSAValue] = [*group.body.block.args, *inside]
    tensors = (value for value in values if isinstance(value.type, TensorType))
    return {name for value in tensors for name in symbols_of(*extents_of(value))}


def bound_group(group: FusedOp, values: Mapping[str, int]) -> FusedOp:
    """Return a copy of `group`, on new operands, with numbers in place of its symbols.

    Its ops hold the types that they had. Raises BraidError where they are impossible at these
    numbers.
    """
    operands = Block(arg_types=group.operand_types)
    copy = group.clone(dict(zip(group.operands, operands.args, strict=True)))
    operands.add_op(copy)
    for op in copy.walk():
        note_open_types(op)
    binding = Binding.of(values)
    for argument in operands.args:
        Rewriter.replace_value_with_new_type(argument, binding.bound(argument.type))
    binding.bind_all(copy)
    binding.verify(copy)
    return copy


def is_bound(group: FusedOp) -> bool:
    """Return whether a group has numbers in place of sizes."""
    return any(OPEN_TYPES in op.attributes for op in group.body.block.ops)


def open_dims(value: SSAValue) -> tuple[bool, ...]:
    """Return which dims of a result of a bound op are open in its open form; elsewhere none."""
    closed = (False,) * len(shape_of(value))
    if not isinstance(value, OpResult):
        return closed
    held = value.op.attributes.get(OPEN_TYPES)
    if not isinstance(held, ArrayAttr):
        return closed
    type = cast("ArrayAttr[Attribute]", held).data[len(value.op.operands) + value.index]
    return tuple(extent == DYNAMIC for extent in cast(AnyTensor, type).get_shape())


def open_form(group: FusedOp) -> FusedOp:
    """Return the group that `group` is bound of, on operands of its own, in its layouts."""
    operands = Block(arg_types=group.operand_types)
    copy = group.clone(dict(zip(group.operands, operands.args, strict=True)))
    operands.add_op(copy)
    block = copy.body.block
    for op in block.ops:
        held = op.attributes.pop(OPEN_TYPES, None)
        if isinstance(held, ArrayAttr):
            for index, type in enumerate(cast("ArrayAttr[Attribute]", held).data):
                inner = index - len(op.operands)
                _open(op.operands[index] if inner < 0 else op.results[inner], type)
        if OPEN_OP in op.attributes:
            Rewriter.replace_op(op, _op_with_sizes(op))
    outside = (*operands.args, *copy.results)
    for value, inner in zip(outside, (*block.args, *copy.terminator.arguments), strict=True):
        Rewriter.replace_value_with_new_type(value, inner.type)
    return copy


def _op_with_sizes(op: Operation) -> Operation:
    """Return the op that `op` stands for at likely sizes, on its operands."""
    name, attributes = cast("ArrayAttr[Attribute]", op.attributes[OPEN_OP]).data
    kind = next(own for own in SIZED_OPS if own.name == cast(StringAttr, name).data)
    return kind.create(
        operands=op.operands,
        result_types=op.result_types,
        attributes=cast(DictionaryAttr, attributes).data,
    )


def _open(value: SSAValue, type: Attribute) -> None:
    """Give a tensor its open type, in the layout that it has."""
    if isinstance(type, TensorType) and DYNAMIC in type.get_shape():
        new = with_layout(cast(AnyTensor, type), layout_of(value.type))
        if new != value.type:
            Rewriter.replace_value_with_new_type(value, new)
