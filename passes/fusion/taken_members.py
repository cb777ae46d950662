"""How much of a group that is computed by tiles a kernel of its device takes."""

from collections.abc import Callable, Iterable, Sequence

from xdsl.ir import Operation

from braid.dialects.braid.elementwise import ElementwiseOp
from braid.passes.fusion.fusion_rules import FusionRules
from braid.passes.fusion.generic_groups import Members, is_slower_than_parts, trial_group
from braid.targets.costs.cost_source import CostSource

PartsOf = Callable[[Members], Iterable[Members]]
"""Gives the groups that ops would be in if they were not computed by tiles."""


def taken_members(
    members: Sequence[Operation], rules: FusionRules, costs: CostSource, parts_of: PartsOf
) -> Sequence[Operation]:
    """As many of a group of tiles as some kernel of its device takes together: maybe none.

    All, or those behind its products, such as an attention without what makes its mask, or these
    without what moves the last product's result, such as the heads of an attention. Generic loops
    take none that they are slower with than kernels of the parts are, which `parts_of` gives.
    Groups without a product, and devices without kernel families, take any.
    """
    device = costs.of(members[-1])
    products = [op for op in members if rules.is_anchor(op)]
    if not products or device.backend.issue is not None or not device.kernels.matches.families:
        return members
    known = {result for op in products for result in op.results}
    behind: list[Operation] = []
    for op in members:
        if op in products or not known.isdisjoint(op.operands):
            behind.append(op)
            known.update(op.results)
    parts = [members] if len(behind) == len(members) else [members, behind]
    if kept := _without_moves(behind, products[-1]):
        parts.append(kept)
    none: Sequence[Operation] = ()
    return next((part for part in parts if _is_taken(part, costs, parts_of)), none)


def _without_moves(members: Sequence[Operation], product: Operation) -> Sequence[Operation]:
    """The first of `members`, up to the first op behind `product` that is not elementwise.

    None of them if there is no such op, or one of them is read behind it.
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
