"""Ranges of integers (least, largest), with None for no bound, and of floats computed from them."""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from braid.support.sizes.expression import Extent
from braid.support.sizes.scalars import (
    Rounded,
    Scalar,
    compute,
    float_of,
    to_width,
    value_of,
    whole_of,
)

Range: TypeAlias = tuple[int | None, int | None]
_FloatRange: TypeAlias = tuple[float, float]
_ANY: _FloatRange = (-math.inf, math.inf)


def product_range(factors: Sequence[Range]) -> Range:
    """Return the range of a product of one factor or more."""
    found = factors[0]
    for factor in factors[1:]:
        ends = [_times(a, b) for a in _ends(found) for b in _ends(factor)]
        found = _from_ends(ends)
    return found


def quotient_range(numerator: Range, divisor: Range) -> Range:
    """Return the range of quotients, rounded down; of positive divisors alone."""
    (low, high), (least, largest) = numerator, divisor
    if least is None or least < 1:
        return None, None
    if largest is not None:
        largest = max(largest, least)  # what is known may exclude each other
    if low is not None:
        low = low // least if low < 0 else 0 if largest is None else low // largest
    if high is not None:
        high = high // least if high >= 0 else -1 if largest is None else high // largest
    return low, high


def rounded_range(atom: Rounded, sizes: Callable[[Extent], Range]) -> Range:
    """Return the range of a size that is computed through floats."""
    low, high = _scalar_range(atom.scalar, sizes)
    ends = [whole_of(atom.rounding, end) if math.isfinite(end) else end for end in (low, high)]
    return _from_ends([int(end) if math.isfinite(end) else end for end in ends])


def _scalar_range(scalar: Scalar, sizes: Callable[[Extent], Range]) -> _FloatRange:
    """Return the range of a float; rounding keeps the order of numbers, and so the ends of ranges.

    It may be infinite or no number besides, which gives no size.
    """
    width = scalar.width
    match scalar.operation:
        case "number":
            value = value_of(scalar.bits)
            return _ANY if math.isnan(value) else (value, value)
        case "of_size":
            low, high = sizes(scalar.size)
            return (
                -math.inf if low is None else float_of(low, width),
                math.inf if high is None else float_of(high, width),
            )
        case _:
            pass
    operands = [_scalar_range(operand, sizes) for operand in scalar.operands]
    (low, high), *others = operands
    match scalar.operation:
        case "convert":
            ends = [to_width(low, width), to_width(high, width)]
        case "add" | "sub" | "mul" | "div" as operation:
            (other,) = others
            if operation == "div" and other[0] <= 0 <= other[1]:
                return _ANY
            ends = [compute(operation, width, (a, b)) for a in (low, high) for b in other]
        case "sqrt" if low < 0:
            return _ANY
        case operation:
            ends = [compute(operation, width, (low,)), compute(operation, width, (high,))]
    return _ANY if any(map(math.isnan, ends)) else (min(ends), max(ends))


def _ends(range: Range) -> tuple[float, float]:
    low, high = range
    return -math.inf if low is None else low, math.inf if high is None else high


def _times(a: float, b: float) -> float:
    """Return the product of ends: integers, or infinite; nothing of infinitely many is nothing."""
    return 0 if a == 0 or b == 0 else a * b


def _from_ends(ends: Sequence[float]) -> Range:
    low, high = min(ends), max(ends)
    return (
        None if low == -math.inf else int(low),
        None if high == math.inf else int(high),
    )
