"""Reading what `plan-memory` and what comes before it wrote on ops and kernels."""

from collections.abc import Iterable
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, IntegerType, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue

from braid.dialects.braid.attribute_names import IN_PLACE, OVERLAP, STRIDES
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.buffer import BufferAttr
from braid.dialects.braid.dtypes import bytes_of


def overwritable(kernel: Operation | None, result: int) -> dict[int, bool]:
    """Return the operands that `kernel` may write a result over; True: its beginning."""
    if kernel is None:
        return {}
    pairs = cast(Iterable[tuple[int, int]], _arrays(kernel, IN_PLACE))
    found = {operand: False for operand, made in pairs if made == result}
    overlap = kernel.attributes.get(OVERLAP)
    return found | ({overlap.value.data: True} if isinstance(overlap, IntegerAttr) else {})


def planned_strides(op: Operation, index: int) -> tuple[int, ...] | None:
    """Return the strides in elements of operand, or after these result, number `index`; None if
    dense.
    """
    attribute = op.attributes.get(STRIDES)
    if not isinstance(attribute, ArrayAttr):
        return None
    entry = cast(ArrayAttr[Attribute], attribute).data[index]
    return None if isinstance(entry, UnitAttr) else _integers(entry)


def pairs_of(op: Operation, name: str) -> dict[int, int]:
    """Return an array of pairs of integers, as a dictionary; by default empty."""
    return dict(cast(Iterable[tuple[int, int]], _arrays(op, name)))


def _arrays(op: Operation, name: str) -> list[tuple[int, ...]]:
    """Return an array of arrays of integers, by default empty."""
    attribute = op.attributes.get(name)
    if not isinstance(attribute, ArrayAttr):
        return []
    return [_integers(entry) for entry in cast(ArrayAttr[Attribute], attribute)]


def _integers(attribute: Attribute) -> tuple[int, ...]:
    return tuple(cast(DenseArrayBase[IntegerType], attribute).get_values())


def buffers_of(op: Operation, name: str) -> list[BufferAttr | None]:
    """Return an array of buffers, None for each value without one; by default empty."""
    attribute = op.attributes.get(name)
    if not isinstance(attribute, ArrayAttr):
        return []
    entries = cast(ArrayAttr[Attribute], attribute)
    return [entry if isinstance(entry, BufferAttr) else None for entry in entries]


def element_bytes(value: SSAValue) -> int:
    """Return the bytes of one element of a tensor."""
    return bytes_of(cast(AnyTensor, value.type).element_type)
