"""`apply-order`: puts the ops of every block into the order decided."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.attribute_names import KEY_NODE, ORDER
from braid.dialects.braid.order import (
    blocks_of,
    has_fixed_place,
    ordered_ops,
    plain_orders,
    set_ordered_ops,
)
from braid.support.errors import BraidError, Note

HINT = "run search-order, or remove the attribute"


def require_complete(owner: Operation, orders: Sequence[Sequence[int]] | None) -> None:
    """Raise BraidError unless `orders` has each op of each block once."""
    blocks = blocks_of(owner)
    if orders is None or len(orders) != len(blocks):
        raise _error(
            owner, f"{ORDER} is not an array of one array<i64> for each of {len(blocks)} blocks"
        )
    for block, order in zip(blocks, orders, strict=True):
        count = len(ordered_ops(block))
        if sorted(order) != list(range(count)):
            raise _error(
                owner, f"{ORDER} is {list(order)}, expected each of the {count} positions once"
            )


def require_dominance(owner: Operation, ordered: Sequence[Operation]) -> None:
    """Raise BraidError where an op would run before one that makes a value it reads."""
    position = {op: place for place, op in enumerate(ordered)}
    for place, op in enumerate(ordered):
        for value in _read(op):
            maker = value.owner
            if isinstance(maker, Operation) and position.get(maker, -1) > place:
                raise _error(
                    owner,
                    f"{ORDER} puts '{op.name}' before '{maker.name}', which makes its operand",
                    [Note("the op that would run too early", source_location(op))],
                )


def require_effects(owner: Operation, block: Block, ordered: Sequence[Operation]) -> None:
    """Raise BraidError where ops with side effects would change places."""
    position = {op: place for place, op in enumerate(ordered)}
    effects = [op for op in ordered_ops(block) if has_fixed_place(op)]
    for first, second in itertools.pairwise(effects):
        if position[first] > position[second]:
            raise _error(
                owner,
                f"{ORDER} puts '{second.name}' before '{first.name}'; both have side effects",
            )


def _read(op: Operation) -> list[SSAValue]:
    return [operand for inner in op.walk() for operand in inner.operands]


def _error(owner: Operation, message: str, notes: Sequence[Note] = ()) -> BraidError:
    return BraidError(message, location=source_location(owner), hint=HINT, notes=notes)


@dataclass(frozen=True)
class ApplyOrderPass(ModulePass):
    """Puts the ops of every block that has one into the order in `braid.order`.

    In: `braid.order`, as `search-order` writes it. Out: the ops in that order, without it and
    without `braid.key_node`. Raises BraidError, before any op is moved, for an order that is not
    complete, in which an op runs before one that it needs, or which swaps side effects.

    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {braid.order = [array<i64: 1, 0>]}
    ```
    """

    name = "apply-order"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Check all orders, then permute."""
        moves: list[tuple[Block, list[Operation]]] = []
        owners = [owner for owner in op.walk() if ORDER in owner.attributes]
        for owner in owners:
            orders = plain_orders(owner.attributes[ORDER])
            require_complete(owner, orders)
            for block, order in zip(blocks_of(owner), orders or (), strict=True):
                ops = ordered_ops(block)
                ordered = [ops[place] for place in order]
                require_dominance(owner, ordered)
                require_effects(owner, block, ordered)
                moves.append((block, ordered))
        for block, ordered in moves:
            set_ordered_ops(block, ordered)
        for owner in op.walk():
            owner.attributes.pop(KEY_NODE, None)
            owner.attributes.pop(ORDER, None)
