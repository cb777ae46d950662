"""One op as a group, to ask kernel families about it."""

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.ir import Attribute, Block, Operation, SSAValue

from braid.dialects.braid.regions import FusedOp, YieldOp


def single_op_group(
    op: Operation,
    types: Mapping[SSAValue, Attribute] = MappingProxyType({}),
    attributes: Mapping[str, Attribute] = MappingProxyType({}),
) -> FusedOp:
    """Return a group of a copy of `op`, whose arguments are what it reads, each value once.

    They have the `types` given here, or else their own; `attributes` replace those of the op.
    """
    read = list(dict.fromkeys(op.operands))
    arguments = [types.get(value, value.type) for value in read]
    body, outside = Block(arg_types=arguments), Block(arg_types=arguments)
    copy = op.clone(dict(zip(read, body.args, strict=True)))
    copy.attributes.update(attributes)
    body.add_ops([copy, YieldOp(*copy.results)])
    group = FusedOp(outside.args, [result.type for result in copy.results], body)
    outside.add_op(group)
    return group
