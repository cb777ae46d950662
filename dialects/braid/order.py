"""The decision `braid.order`: for each block of an op, its ops in the order in which they run."""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerType, UnitAttr, i64
from xdsl.ir import Attribute, Block, Operation
from xdsl.traits import IsTerminator, RecursiveMemoryEffect, is_side_effect_free

from braid.dialects.braid.attribute_names import KEY_NODE
from braid.dialects.braid.launch import AwaitOp, LaunchOp


def blocks_of(op: Operation) -> list[Block]:
    """Return the blocks that `op` owns, of all its regions."""
    return [block for region in op.regions for block in region.blocks]


def ordered_ops(block: Block) -> list[Operation]:
    """Return the ops of `block` that have a position: all but the terminator."""
    return [op for op in block.ops if not op.has_trait(IsTerminator)]


def has_fixed_place(op: Operation) -> bool:
    """Return whether `op` has side effects, and may not change places with other such ops.

    A launch writes only its results, and ops that must follow it read its token.
    """
    if isinstance(op, LaunchOp | AwaitOp) or is_side_effect_free(op):
        return False
    if not op.has_trait(RecursiveMemoryEffect):
        return True
    return any(has_fixed_place(inner) for block in blocks_of(op) for inner in ordered_ops(block))


def set_ordered_ops(block: Block, ops: Sequence[Operation]) -> None:
    """Replace the ops of `block` that have a position by `ops`, some of which may be new."""
    for op in ordered_ops(block):
        op.detach()
    terminator = block.last_op
    if terminator is None:
        block.add_ops(ops)
    else:
        block.insert_ops_before(list(ops), terminator)


def order_attribute(orders: Sequence[Sequence[int]]) -> Attribute:
    """Return the attribute for the orders of all blocks of an op."""
    return ArrayAttr([DenseArrayBase.from_list(i64, list(order)) for order in orders])


def plain_orders(attribute: Attribute) -> list[tuple[int, ...]] | None:
    """Return the orders that `attribute` holds, None where it has another form."""
    if not isinstance(attribute, ArrayAttr):
        return None
    orders: list[tuple[int, ...]] = []
    for entry in cast(ArrayAttr[Attribute], attribute).data:
        if not isinstance(entry, DenseArrayBase):
            return None
        numbers = cast(DenseArrayBase[IntegerType], entry)
        if numbers.elt_type != i64:
            return None
        orders.append(numbers.get_values())
    return orders


def mark_key_node(op: Operation) -> None:
    """Mark `op` as a key node of its block."""
    op.attributes[KEY_NODE] = UnitAttr()
