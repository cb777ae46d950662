"""Recognize ops that compute the same: all is equal but results' identity and stable names."""

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import Commutative

from braid.dialects.braid.attribute_names import NAME

_Numbers = dict[SSAValue | Block, int]


def op_key(op: Operation) -> tuple[object, ...]:
    """Return a hashable key that two ops have in common exactly where they compute the same.

    Values and blocks inside the op's regions are numbered in the order of their definition, so
    that equal regions have equal keys; values from outside count by identity. The key is valid
    as long as the operands live.
    """
    return _key(op, {})


def _key(op: Operation, numbers: _Numbers) -> tuple[object, ...]:
    operands = [numbers.get(operand, id(operand)) for operand in op.operands]
    if len(operands) > 1 and op.has_trait(Commutative, value_if_unregistered=False):
        operands.sort()
    attributes = op.attributes
    if NAME in attributes:
        attributes = {k: v for k, v in attributes.items() if k != NAME}
    return (
        op.op_name.data if isinstance(op, UnregisteredOp) else op.name,
        tuple(operands),
        frozenset(op.properties.items()),
        frozenset(attributes.items()),
        tuple(result.type for result in op.results),
        tuple(numbers.get(block, id(block)) for block in op.successors),
        tuple(_region_key(region, numbers) for region in op.regions),
    )


def _region_key(region: Region, numbers: _Numbers) -> tuple[object, ...]:
    for block in region.blocks:
        numbers[block] = _next_number(numbers)
    return tuple(_block_key(block, numbers) for block in region.blocks)


def _block_key(block: Block, numbers: _Numbers) -> tuple[object, ...]:
    for arg in block.args:
        numbers[arg] = _next_number(numbers)
    keys: list[object] = [tuple(arg.type for arg in block.args)]
    for op in block.ops:
        keys.append(_key(op, numbers))
        for result in op.results:
            numbers[result] = _next_number(numbers)
    return tuple(keys)


def _next_number(numbers: _Numbers) -> int:
    """Return the next negative number, which is not the identity of a value from outside."""
    return -1 - len(numbers)
