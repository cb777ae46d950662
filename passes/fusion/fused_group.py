"""Ops as one group, and which of them a kernel of their device takes."""

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from braid.dialects.braid.attribute_names import FUSION_GROUP
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.passes.fusion.fusion_rules import FusionRules
from braid.targets.costs.cost_source import CostSource


def fused_group(members: Sequence[Operation]) -> tuple[FusedOp, Sequence[SSAValue]]:
    """A group of copies of `members`, which are in order, and what its results stand for.

    Constants move inside. The group is in no block yet.
    """
    operands, escaping = _outside_operands(members), _escaping(members)
    body = Block(arg_types=[operand.type for operand in operands])
    mapping: dict[SSAValue, SSAValue] = dict(zip(operands, body.args, strict=True))
    for op in members:
        for operand in op.operands:
            if isinstance(operand.owner, ConstantOp) and operand not in mapping:
                constant = operand.owner.clone()
                body.add_op(constant)
                mapping[operand] = constant.output
        copy = op.clone(value_mapper=mapping)
        copy.attributes.pop(FUSION_GROUP, None)
        body.add_op(copy)
        mapping.update(zip(op.results, copy.results, strict=True))
    body.add_op(YieldOp(*(mapping[value] for value in escaping)))
    return FusedOp(operands, [value.type for value in escaping], body), escaping


def _outside_operands(members: Sequence[Operation]) -> list[SSAValue]:
    """What the group reads, each value once; constants are not among them: they move inside."""
    inside = {result for op in members for result in op.results}
    operands = dict.fromkeys(operand for op in members for operand in op.operands)
    return [o for o in operands if o not in inside and not isinstance(o.owner, ConstantOp)]


def _escaping(members: Sequence[Operation]) -> Sequence[SSAValue]:
    """Results that are used outside the group; those of the last op if none is used at all."""
    inside = set(members)
    results = [result for op in members for result in op.results]
    used = [r for r in results if any(use.operation not in inside for use in r.uses)]
    return used or list(members[-1].results)


def taken_members(
    members: Sequence[Operation], rules: FusionRules, costs: CostSource
) -> Sequence[Operation]:
    """As many of a group of tiles as some kernel of its device takes together: maybe none.

    All, or those behind its products, such as an attention without what makes its mask, or these
    without what moves the last product's result, such as the heads of an attention. Groups without
    a product, and devices without kernel families, take any.
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
    return next((part for part in parts if _is_taken(part, costs)), none)


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


def _is_taken(members: Sequence[Operation], costs: CostSource) -> bool:
    group, _ = fused_group(members)
    Rewriter.insert_op(group, InsertPoint.before(members[-1]))
    taken = costs.of(group).kernels.matches.any_takes(group)
    Rewriter.erase_op(group)
    return taken
