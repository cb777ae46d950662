"""The largest part of a tiled group that one kernel of its device supports."""

from collections.abc import Callable, Iterable, Sequence

from xdsl.ir import Operation

from braid.dialects.braid.elementwise import ElementwiseOp
from braid.passes.fusion.fusion_rules import FusionRules
from braid.passes.fusion.generic_groups import Members, is_slower_than_parts, trial_group
from braid.targets.costs.cost_source import CostSource

PartsOf = Callable[[Members], Iterable[Members]]
"""Returns the groups that ops would form if they were not tiled."""


def taken_members(
    members: Sequence[Operation], rules: FusionRules, costs: CostSource, parts_of: PartsOf
) -> Sequence[Operation]:
    """Return the ops of a tiled group that one kernel of its device computes; maybe none.

    Tried in this order are all members; the matmuls and what depends on them, such as an attention
    without the ops that compute its mask; and these up to the first op that moves the last
    matmul's result, such as an attention without the transposition that joins its heads. Members
    that only generic loops support count if these are no slower than the kernels of `parts_of`.
    All members are returned for a group without a matmul or convolution, and for a device without
    kernel families.
    """
    device = costs.of(members[-1])
    products = [op for op in members if rules.is_anchor(op)]
    if not products or device.backend.issue is not None or not device.kernels.matches.families:
        return members
    known = {result for op in products for result in op.results}
    dependent: list[Operation] = []
    for op in members:
        if op in products or not known.isdisjoint(op.operands):
            dependent.append(op)
            known.update(op.results)
    parts = [members] if len(dependent) == len(members) else [members, dependent]
    if kept := _without_moves(dependent, products[-1]):
        parts.append(kept)
    none: Sequence[Operation] = ()
    return next((part for part in parts if _is_taken(part, costs, parts_of)), none)


def _without_moves(members: Sequence[Operation], product: Operation) -> Sequence[Operation]:
    """Return `members` before the first op after `product` that is not elementwise.

    Return none if there is no such op, or if a later op reads more than their last result.
    """
    start = members.index(product) + 1
    moves = (n for n, op in enumerate(members) if n >= start and not isinstance(op, ElementwiseOp))
    kept = members[: next(moves, 0)]
    rest = set(members) - set(kept)
    inner = kept[:-1]
    escapes = any(use.operation in rest for op in inner for v in op.results for use in v.uses)
    return [] if escapes else kept


def _is_taken(members: Sequence[Operation], costs: CostSource, parts_of: PartsOf) -> bool:
    with trial_group(members) as group:
        taken = costs.of(group).kernels.matches.any_takes(group)
    return taken and not is_slower_than_parts(members, lambda: parts_of(members), costs)
