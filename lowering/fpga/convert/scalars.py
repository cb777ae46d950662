"""Scalar bodies of elementwise ops as ops on lanes, in as many bits as their limits need."""

from collections.abc import Sequence
from itertools import product
from typing import cast

import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Attribute

from braid.dialects.braid.scalar import Apply, Argument, Literal, Scalar
from braid.lowering.fpga.convert.values import BodyBuilder, Known, Value
from braid.support.errors import UnsupportedError

_NUMPY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
}
_BITWISE = {"and", "or", "xor"}
OPERATIONS = {*_NUMPY, "cast", "bitcast", "neg"}
"""Elementwise operations of integers that stages have."""


def type_limits(kind: Attribute) -> tuple[int, int]:
    """Return the least and the largest number of an integer type.

    Raises UnsupportedError for another type, or one for which stages have no lanes.
    """
    integer = cast(IntegerType, kind)
    if not isinstance(kind, IntegerType) or integer.width.data < 8:
        raise UnsupportedError(
            f"lanes of {kind} on an FPGA",
            hint="stages compute with integers of 8 bits and more: quantize the model; "
            "'lower-floats-to-cpp' writes functions in f32 as HLS C++, which has no circuit",
        )
    bits = integer.width.data
    if integer.signedness.data == Signedness.UNSIGNED:
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def apply_scalar(builder: BodyBuilder, body: Scalar, arguments: Sequence[Value]) -> Value:
    """Return the value of a body. Raises UnsupportedError, naming an operation that stages do not
    have.
    """
    match body:
        case Argument():
            return arguments[body.index]
        case Literal():
            return Known(np.array([int(body.value)], np.int64))
        case Apply():
            operands = [apply_scalar(builder, inner, arguments) for inner in body.arguments]
            return _applied(builder, body, operands)
        case _:
            raise UnsupportedError("an index that is computed, on an FPGA")


def _applied(builder: BodyBuilder, body: Apply, operands: list[Value]) -> Value:
    name, limits = body.operation, type_limits(body.type)
    if name not in OPERATIONS:
        raise UnsupportedError(
            f"'{name}' on an FPGA", hint=f"stages have {', '.join(sorted(OPERATIONS))}"
        )
    if name == "neg":
        name, operands = "sub", [Known(np.zeros(1, np.int64)), *operands]
    if name in ("cast", "bitcast"):
        return _wrapped(builder, operands[0], limits)
    if all(isinstance(operand, Known) for operand in operands):
        numbers = _NUMPY[name](*(cast(Known, operand).numbers for operand in operands))
        return _wrapped(builder, Known(np.asarray(numbers, np.int64)), limits)
    if name == "shift_left":
        return _shifted_left(builder, operands, limits)
    if name == "shift_right" and not isinstance(operands[1], Known):
        raise UnsupportedError("a shift by a number that is not known, on an FPGA")
    exact = _limits(name, [operand.limits for operand in operands])
    return _wrapped(builder, builder.compute(name, operands, exact), limits)


def _shifted_left(builder: BodyBuilder, operands: list[Value], limits: tuple[int, int]) -> Value:
    amount = operands[1]
    if not isinstance(amount, Known):
        raise UnsupportedError("a shift by a number that is not known, on an FPGA")
    factor = Known(np.left_shift(np.int64(1), np.clip(amount.numbers, 0, 62)))
    exact = _limits("mul", [operands[0].limits, factor.limits])
    return _wrapped(builder, builder.compute("mul", [operands[0], factor], exact), limits)


def _limits(name: str, operands: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the limits of an operation's results: those at all ends, which suffices for monotone
    operations."""
    if name in _BITWISE:
        if name == "and":
            for low, high in operands:
                if low >= 0:
                    return 0, high
        bits = max(
            int(end if end >= 0 else ~end).bit_length() for limits in operands for end in limits
        )
        low = 0 if all(limits[0] >= 0 for limits in operands) else -(1 << bits)
        return low, (1 << bits) - 1
    ends = [_exact(name, *pair) for pair in product(*operands)]
    return min(ends), max(ends)


def _exact(name: str, left: int, right: int) -> int:
    match name:
        case "add":
            return left + right
        case "sub":
            return left - right
        case "mul":
            return left * right
        case "maximum":
            return max(left, right)
        case "minimum":
            return min(left, right)
        case _:
            return left >> right


def _wrapped(builder: BodyBuilder, value: Value, limits: tuple[int, int]) -> Value:
    """Return a value in the range of its type: unchanged if it always fits, else modulo 2^bits."""
    low, high = limits
    if low <= value.limits[0] and value.limits[1] <= high:
        return value
    size = high - low + 1
    if isinstance(value, Known):
        return Known((value.numbers - low) % size + low)
    return builder.compute("wrap_unsigned" if low == 0 else "wrap", [value], limits)
