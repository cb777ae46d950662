"""When two ops compute the same: all but their results' identity and their stable names."""

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import Commutative

from braid.dialects.braid.names import NAME_ATTRIBUTE

Correspondence = dict[SSAValue | Block, SSAValue | Block]
"""From the values and blocks inside one op to those inside the other."""


def op_key(op: Operation) -> tuple[object, ...]:
    """A hashable key; ops without regions compute the same exactly where their keys are equal."""
    operands = [id(operand) for operand in op.operands]
    if len(operands) > 1 and op.has_trait(Commutative, value_if_unregistered=False):
        operands.sort()
    return (
        _op_name(op),
        tuple(operands),
        frozenset(op.properties.items()),
        _attributes(op),
        tuple(result.type for result in op.results),
        tuple(len(region.blocks) for region in op.regions),
    )


def same_regions(a: Operation, b: Operation) -> bool:
    """Whether the regions of two ops with equal keys compute the same."""
    correspondence: Correspondence = {}
    return _regions(a, b, correspondence)


def _regions(a: Operation, b: Operation, correspondence: Correspondence) -> bool:
    return len(a.regions) == len(b.regions) and all(
        _region(x, y, correspondence) for x, y in zip(a.regions, b.regions, strict=True)
    )


def _region(a: Region, b: Region, correspondence: Correspondence) -> bool:
    if len(a.blocks) != len(b.blocks):
        return False
    correspondence.update(zip(a.blocks, b.blocks, strict=True))
    return all(_block(x, y, correspondence) for x, y in zip(a.blocks, b.blocks, strict=True))


def _block(a: Block, b: Block, correspondence: Correspondence) -> bool:
    if [arg.type for arg in a.args] != [arg.type for arg in b.args]:
        return False
    correspondence.update(zip(a.args, b.args, strict=True))
    x, y = a.first_op, b.first_op
    while x is not None and y is not None:
        if not _op(x, y, correspondence):
            return False
        correspondence.update(zip(x.results, y.results, strict=True))
        x, y = x.next_op, y.next_op
    return x is None and y is None


def _op(a: Operation, b: Operation, correspondence: Correspondence) -> bool:
    return (
        _op_name(a) == _op_name(b)
        and a.properties == b.properties
        and _attributes(a) == _attributes(b)
        and [r.type for r in a.results] == [r.type for r in b.results]
        and [correspondence.get(v, v) for v in a.operands] == list(b.operands)
        and [correspondence.get(s, s) for s in a.successors] == list(b.successors)
        and _regions(a, b, correspondence)
    )


def _op_name(op: Operation) -> str:
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def _attributes(op: Operation) -> frozenset[tuple[str, Attribute]]:
    return frozenset(item for item in op.attributes.items() if item[0] != NAME_ATTRIBUTE)
