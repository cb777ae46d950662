"""Construction of a group from its ops."""

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from braid.dialects.braid.attribute_names import FUSION_GROUP
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.regions import FusedOp, YieldOp


def fused_group(members: Sequence[Operation]) -> tuple[FusedOp, Sequence[SSAValue]]:
    """Return a group of copies of the ordered `members`, and the values that its results replace.

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
    """Return the values that the group reads, each once, without constants, which move inside."""
    inside = {result for op in members for result in op.results}
    operands = dict.fromkeys(operand for op in members for operand in op.operands)
    return [o for o in operands if o not in inside and not isinstance(o.owner, ConstantOp)]


def _escaping(members: Sequence[Operation]) -> Sequence[SSAValue]:
    """Return the results that are used outside the group; those of the last op if none is used at
    all.
    """
    inside = set(members)
    results = [result for op in members for result in op.results]
    used = [r for r in results if any(use.operation not in inside for use in r.uses)]
    return used or list(members[-1].results)
