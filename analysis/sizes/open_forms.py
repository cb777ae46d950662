"""Groups bound at likely sizes, and back: which types their ops have where sizes are open.

What is decided of a group with open dims, such as which kernel is best, is decided for a copy of it
with likely numbers in place of sizes. The ops of the copy say in `braid.open_types` which types
they have elsewhere, and so do copies of these ops in groups that a pass tries.
"""

from collections.abc import Mapping
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from braid.analysis.sizes.binding import OTHER_OP, Binding
from braid.dialects.braid.attribute_names import OPEN_TYPES
from braid.dialects.braid.attributes import layout_of, with_layout
from braid.dialects.braid.base import AnyTensor, extents_of
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.sized_ops import has_sizes
from braid.support.sizes.expression import symbols_of


def note_open_types(op: Operation) -> None:
    """Write `braid.open_types` on an op with a tensor of open dims, or with sizes of its own."""
    types = [*op.operand_types, *op.result_types]
    shapes = [type.get_shape() for type in types if isinstance(type, TensorType)]
    if has_sizes(op) or any(DYNAMIC in shape for shape in shapes):
        op.attributes[OPEN_TYPES] = ArrayAttr(types)


def symbols_in(group: FusedOp) -> set[str]:
    """Return the names of the symbols in the types of a group."""
    inside = (result for op in group.body.block.ops for result in op.results)
    values: list[SSAValue] = [*group.body.block.args, *inside]
    tensors = (value for value in values if isinstance(value.type, TensorType))
    return {name for value in tensors for name in symbols_of(*extents_of(value))}


def bound_group(group: FusedOp, values: Mapping[str, int]) -> FusedOp:
    """Return a copy of `group`, on operands of its own, with numbers in place of its symbols.

    Its ops say which types they had. Raises BraidError where they are impossible at these numbers.
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


def open_form(group: FusedOp) -> FusedOp | None:
    """Return the group that `group` is bound of, on operands of its own.

    None where it cannot be said: an op of it is another one there. Layouts are those of `group`.
    """
    if any(op.attributes.get(OPEN_TYPES) == OTHER_OP for op in group.body.block.ops):
        return None
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
    outside = (*operands.args, *copy.results)
    for value, inner in zip(outside, (*block.args, *copy.terminator.arguments), strict=True):
        Rewriter.replace_value_with_new_type(value, inner.type)
    return copy


def _open(value: SSAValue, type: Attribute) -> None:
    """Give a tensor its open type, in the layout that it has."""
    if isinstance(type, TensorType) and DYNAMIC in type.get_shape():
        new = with_layout(cast(AnyTensor, type), layout_of(value.type))
        if new != value.type:
            Rewriter.replace_value_with_new_type(value, new)
