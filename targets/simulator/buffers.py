"""Find the buffers on the chip that the value of an op is made of, seen through addressing."""

from collections.abc import Iterator

from xdsl.ir import OpResult, SSAValue

from braid.analysis.storage.tensor_storage import is_addressing
from braid.analysis.structure.parameter_expressions import is_leaf
from braid.dialects.braid.movement import SliceOp

Buffer = tuple[SSAValue, SSAValue]
"""A value with its own buffer, and the part of it that is referred to, often all of it."""


def buffers_of(value: SSAValue, part: SSAValue | None = None) -> Iterator[Buffer]:
    """Yield the buffers that hold `value`.

    A concatenation is in the buffers of its pieces, and a slice in that of the whole. A part of a
    value from outside has its own buffer: it is loaded alone.
    """
    if comes_from_outside(value):
        yield value, value
    elif not isinstance(value, OpResult) or not is_addressing(value.op):
        yield value, value if part is None else part
    else:
        shown = value if part is None and isinstance(value.op, SliceOp) else part
        for operand in value.op.operands:
            yield from buffers_of(operand, shown)


def comes_from_outside(value: SSAValue) -> bool:
    """Return whether `value` is not an op's result: a parameter, constant, input, or a part
    of one.
    """
    if not isinstance(value, OpResult):
        return True
    if is_leaf(value.op):
        return True
    return is_addressing(value.op) and all(map(comes_from_outside, value.op.operands))
