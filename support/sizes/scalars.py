"""Sizes that are computed through floats: `floor(f32(s) * 1.5)`, exact to the bit.

A scalar is a tree of IEEE operations on sizes and numbers, each rounded to f32 or f64 as models
write them; `Rounded` makes an integer of one. To everything else it is an atom like a symbol: two
of the same definition are the same.

Operations of f32 are computed in f64 and rounded once more, which is exact for sums, products,
quotients and square roots (Figueroa, "When is double rounding innocuous?", SIGNUM 1995).
"""

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from braid.support.sizes.expression import (
    MOST_DEPTH,
    Atom,
    Extent,
    Order,
    SizeError,
    of_atom,
    order_of,
    refuse,
)

ROUNDINGS = ("floor", "ceil", "round", "trunc")
"""`round` goes to the nearest integer, between two to the even one."""
OPERATIONS = {"add": 2, "sub": 2, "mul": 2, "div": 2, "sqrt": 1} | dict.fromkeys(ROUNDINGS, 1)
"""The operations, and the number of their operands."""


@dataclass(frozen=True)
class Scalar:
    """A float of 32 or 64 bits: a number, a size, or an operation on others.

    `operation` is one of `OPERATIONS`, `of_size` (of `size`), `number` (the f64 with these `bits`),
    or `convert` (from the other width).
    """

    width: int
    operation: str
    operands: tuple["Scalar", ...] = ()
    size: Extent = 0
    bits: int = 0

    @cached_property
    def order(self) -> Order:
        """Return the key by which scalars are sorted."""
        operands = tuple(operand.order for operand in self.operands)
        return self.operation, self.width, self.bits, order_of(self.size), operands

    @cached_property
    def depth(self) -> int:
        """Return how deeply operations are nested, without those of sizes."""
        return 1 + max((operand.depth for operand in self.operands), default=0)


@dataclass(frozen=True, eq=False)
class Rounded(Atom):
    """The integer to which `rounding` rounds a scalar; it has no value if that does not fit 64
    bits."""

    rounding: str
    scalar: Scalar

    def __post_init__(self) -> None:
        self._finish((4, self.rounding, self.scalar.order), self.scalar.depth)

    @property
    def children(self) -> tuple[Extent, ...]:
        """The sizes on which floats depend, from left to right."""
        return tuple(_sizes(self.scalar))

    def with_children(self, children: tuple[Extent, ...]) -> Extent:
        """Return the rounded scalar of other sizes."""
        left = list(children)
        return rounded(self.rounding, _with_sizes(self.scalar, left))


def of_size(size: Extent, width: int) -> Scalar:
    """Return a size as a float, rounded to the nearest."""
    if isinstance(size, int):
        return number(float_of(size, width), width)
    return Scalar(width, "of_size", size=size)


def number(value: float, width: int) -> Scalar:
    """Return a number, rounded to the nearest of the width."""
    value = math.nan if math.isnan(value) else to_width(value, width)
    return Scalar(width, "number", bits=bits_of(value))


def apply(operation: str, *operands: Scalar) -> Scalar:
    """Return an operation on scalars of one width, folded if all of them are numbers.

    Raises `SizeError` for an unknown operation, or if widths differ.
    """
    widths = {operand.width for operand in operands}
    if OPERATIONS.get(operation) != len(operands) or len(widths) != 1:
        raise SizeError(f"there is no '{operation}' of {len(operands)} floats of bits {widths}")
    (width,) = widths
    if max(operand.depth for operand in operands) >= MOST_DEPTH:
        refuse()
    if all(operand.operation == "number" for operand in operands):
        return number(compute(operation, width, [value_of(o.bits) for o in operands]), width)
    return Scalar(width, operation, operands)


def convert(scalar: Scalar, width: int) -> Scalar:
    """Return a scalar of the other width, or itself."""
    if scalar.width == width:
        return scalar
    if scalar.operation == "number":
        return number(value_of(scalar.bits), width)
    return Scalar(width, "convert", (scalar,))


def rounded(rounding: str, scalar: Scalar) -> Extent:
    """Return the integer that one of `ROUNDINGS` makes of a scalar.

    Raises `SizeError` where that is a number without an integer of 64 bits.
    """
    if scalar.operation == "number":
        return to_integer(rounding, value_of(scalar.bits))
    if scalar.operation in ROUNDINGS:
        rounding, scalar = scalar.operation, scalar.operands[0]
    return of_atom(Rounded(rounding, scalar))


def evaluate_scalar(scalar: Scalar, sizes: Callable[[Extent], int]) -> float:
    """Return the value of a scalar, given the values of its sizes."""
    if scalar.operation == "number":
        return value_of(scalar.bits)
    if scalar.operation == "of_size":
        return float_of(sizes(scalar.size), scalar.width)
    operands = [evaluate_scalar(operand, sizes) for operand in scalar.operands]
    if scalar.operation == "convert":
        return to_width(operands[0], scalar.width)
    return compute(scalar.operation, scalar.width, operands)


# ---- Arithmetic ----


def compute(operation: str, width: int, operands: Sequence[float]) -> float:
    """Return the result of one operation, rounded to a width."""
    a, b = operands[0], operands[-1]
    match operation:
        case "add":
            value = a + b
        case "sub":
            value = a - b
        case "mul":
            value = a * b
        case "div":
            value = a / b if b else _by_zero(a, b)
        case "sqrt":
            value = math.sqrt(a) if a >= 0 else (a if a == 0 else math.nan)
        case rounding:
            value = whole_of(rounding, a)
    return to_width(value, width)


def to_integer(rounding: str, value: float) -> int:
    """Return the integer that a float is rounded to.

    Raises `SizeError` if that does not fit into 64 bits.
    """
    whole = whole_of(rounding, value)
    if not -(2.0**63) <= whole < 2.0**63:
        raise SizeError(f"the float {value!r} of a size is no integer of 64 bits")
    return int(whole)


def float_of(value: int, width: int) -> float:
    """Return the float of a width that is closest to an integer, the even one of two."""
    digits = 24 if width == 32 else 53
    excess = max(abs(value).bit_length() - digits, 0)
    whole, rest = divmod(abs(value), 1 << excess)
    half = 1 << excess >> 1
    if excess and (rest > half or (rest == half and whole & 1)):
        whole += 1
    found = math.inf if whole.bit_length() + excess > 1024 else math.ldexp(whole, excess)
    return to_width(math.copysign(found, value), width)


def to_width(value: float, width: int) -> float:
    """Return a float of 64 bits rounded to a width."""
    if width == 64 or not math.isfinite(value):
        return value
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def bits_of(value: float) -> int:
    """Return the bits of an f64 as an integer with a sign."""
    return struct.unpack("<q", struct.pack("<d", value))[0]


def value_of(bits: int) -> float:
    """Return the f64 of these bits."""
    return struct.unpack("<d", struct.pack("<q", bits))[0]


def _by_zero(a: float, b: float) -> float:
    if math.isnan(a) or a == 0:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1, b)


def whole_of(rounding: str, value: float) -> float:
    """Return the float that a float is rounded to, with its sign where that is zero."""
    if not abs(value) < 2.0**52:  # it is whole, infinite or no number
        return value
    functions = {"floor": math.floor, "ceil": math.ceil, "round": round, "trunc": math.trunc}
    return math.copysign(functions[rounding](value), value)


# ---- Sizes inside ----


def _sizes(scalar: Scalar) -> list[Extent]:
    if scalar.operation == "of_size":
        return [scalar.size]
    return [size for operand in scalar.operands for size in _sizes(operand)]


def _with_sizes(scalar: Scalar, left: list[Extent]) -> Scalar:
    """Return a scalar with other sizes, which are taken from the front of a list."""
    if scalar.operation == "of_size":
        return of_size(left.pop(0), scalar.width)
    operands = [_with_sizes(operand, left) for operand in scalar.operands]
    match scalar.operation:
        case "number":
            return scalar
        case "convert":
            return convert(operands[0], scalar.width)
        case operation:
            return apply(operation, *operands)
