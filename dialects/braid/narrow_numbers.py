"""Numbers of 8 bits and less that are stored but not computed with: decoding and encoding them.

A number takes the low bits of a byte. Ops on such numbers decode them to f32 or i32 first and
encode the result, all by ordinary ops.
"""

from dataclasses import dataclass
from typing import Any, Protocol, cast

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness, i32
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import TensorOp, element_type_of, extents_of
from braid.dialects.braid.dtypes import (
    f32,
    i64,
    is_float,
    is_stored_only,
    is_unsigned,
    to_numpy,
)
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.relayout import Array

_BYTE = IntegerType(8, Signedness.UNSIGNED)
_F32_BIAS, _F32_MANTISSA = 127, 23


class Emitter(Protocol):
    """What inserts ops and constants: a builder of a model, or an op that is replaced."""

    def emit(self, op: TensorOp, /) -> SSAValue:
        """Insert an op of one result, and return its value."""
        ...

    def constant(self, array: Array, /) -> SSAValue:
        """Return a constant."""
        ...


def decoded(b: Emitter, x: SSAValue) -> SSAValue:
    """Return `x` in a type that is computed with: narrow floats as f32, narrow integers as i32."""
    element_type = element_type_of(x)
    if not is_stored_only(element_type):
        return x
    codes = _converted(b, _bits(b, x, _BYTE), i64)
    if is_float(element_type):
        bytes_ = np.arange(256).astype(np.uint8)
        mask = np.uint8(2 ** cast(Any, ml_dtypes.finfo(to_numpy(element_type))).bits - 1)
        numbers = (bytes_ & mask).view(to_numpy(element_type)).astype(np.float32)
        return b.emit(GatherOp.get(b.constant(numbers), codes, 0))
    codes = _converted(b, codes, i32)
    if is_unsigned(element_type):
        return codes
    distance = _scalar(b, 32 - _width(element_type), codes)
    return _apply(b, "shift_right", _apply(b, "shift_left", codes, distance), distance)


def encoded(
    b: Emitter,
    x: SSAValue,
    element_type: Attribute,
    *,
    saturate: bool = True,
    rounding: str = "nearest",
) -> SSAValue:
    """Return `x`, in a type that is computed with, as the narrow `element_type`.

    Integers keep their low bits. Floats are rounded to the nearest, ties to even; too large ones
    become the largest number with `saturate`, else infinity, or NaN if the type has no infinity.
    `rounding` (`up`, `down`, `nearest`) is for powers of two alone.
    """
    if is_float(element_type):
        wide, dtype = _converted(b, x, f32), to_numpy(element_type)
        if dtype == ml_dtypes.float8_e8m0fnu:
            codes = _power_of_two_codes(b, wide, rounding)
        else:
            codes = _float_codes(b, wide, _Format.of(dtype), saturate)
    else:
        whole = _converted(b, x, i32)
        codes = _apply(b, "and", whole, _scalar(b, 2 ** _width(element_type) - 1, whole))
    return _bits(b, _converted(b, codes, _BYTE), element_type)


def _converted(b: Emitter, x: SSAValue, element_type: Attribute) -> SSAValue:
    if element_type_of(x) == element_type:
        return x
    return b.emit(elementwise("cast", x, element_type=element_type))


def _apply(b: Emitter, name: str, *operands: SSAValue) -> SSAValue:
    return b.emit(elementwise(name, *operands))


def _scalar(b: Emitter, number: float, like: SSAValue) -> SSAValue:
    """Return a number in the element type of `like`, with its rank and extents of 1."""
    dtype = to_numpy(element_type_of(like))
    return b.constant(np.full([1] * len(extents_of(like)), number, dtype))


def _width(element_type: Attribute) -> int:
    return cast(IntegerType, element_type).width.data


def _bits(b: Emitter, x: SSAValue, element_type: Attribute) -> SSAValue:
    return b.emit(elementwise("bitcast", x, element_type=element_type))


@dataclass(frozen=True)
class _Format:
    """A float format. `overflow` and `nan` are codes; so is the bit `sign`."""

    mantissa: int
    least_exponent: int
    largest: float
    overflow: int
    nan: int
    sign: int
    has_negative_zero: bool

    @staticmethod
    def of(dtype: np.dtype[Any]) -> "_Format":
        info = cast(Any, ml_dtypes.finfo(dtype))

        def code(number: float) -> int:
            return int(np.array(number, np.float32).astype(dtype).view(np.uint8))

        return _Format(
            mantissa=int(info.nmant),
            least_exponent=int(info.minexp),
            largest=float(info.max),
            overflow=code(np.inf),
            nan=code(np.nan),
            sign=1 << (int(info.bits) - 1),
            has_negative_zero=code(-0.0) != 0,
        )


def _float_codes(b: Emitter, x: SSAValue, form: _Format, saturate: bool) -> SSAValue:
    """Return the codes of f32 numbers, as i32.

    The magnitude is rounded to a multiple of the distance between neighbours at its exponent,
    after which its bits are those of the code but for the bias of the exponent.
    """
    magnitude = _apply(b, "abs", x)
    if saturate:
        magnitude = _apply(b, "minimum", magnitude, _scalar(b, form.largest, x))
    rounded = _rounded(b, magnitude, form)
    bits = _bits(b, rounded, i32)
    shift = _scalar(b, _F32_MANTISSA - form.mantissa, bits)
    offset = (form.least_exponent + _F32_BIAS - 1) << form.mantissa
    normal = _apply(b, "sub", _apply(b, "shift_right", bits, shift), _scalar(b, offset, bits))
    per_unit = _scalar(b, 2.0 ** (form.mantissa - form.least_exponent), x)
    is_subnormal = _apply(b, "lt", rounded, _scalar(b, 2.0**form.least_exponent, x))
    small = _apply(b, "select", is_subnormal, rounded, _scalar(b, 0, x))
    subnormal = _converted(b, _apply(b, "mul", small, per_unit), i32)
    codes = _apply(b, "select", is_subnormal, subnormal, normal)
    too_large = _apply(b, "gt", rounded, _scalar(b, form.largest, x))
    codes = _apply(b, "select", too_large, _scalar(b, form.overflow & ~form.sign, bits), codes)
    is_negative = _apply(b, "lt", _bits(b, x, i32), _scalar(b, 0, bits))
    if not form.has_negative_zero:
        is_negative = _apply(b, "and", is_negative, _apply(b, "ne", codes, _scalar(b, 0, bits)))
    signed = _apply(b, "or", codes, _scalar(b, form.sign, bits))
    codes = _apply(b, "select", is_negative, signed, codes)
    is_nan = _apply(b, "isnan", x)
    if not form.has_negative_zero:
        is_nan = _apply(b, "or", is_nan, too_large)
    return _apply(b, "select", is_nan, _scalar(b, form.nan, bits), codes)


def _rounded(b: Emitter, magnitude: SSAValue, form: _Format) -> SSAValue:
    """Return `magnitude` rounded to the format's precision; powers of two scale without error."""
    bits = _bits(b, magnitude, i32)
    exponent = _apply(b, "shift_right", bits, _scalar(b, _F32_MANTISSA, bits))
    least = _scalar(b, form.least_exponent + _F32_BIAS, bits)
    distance = _apply(
        b, "sub", _apply(b, "maximum", exponent, least), _scalar(b, form.mantissa, bits)
    )
    unit = _bits(b, _apply(b, "shift_left", distance, _scalar(b, _F32_MANTISSA, bits)), f32)
    return _apply(b, "mul", _apply(b, "round", _apply(b, "div", magnitude, unit)), unit)


def _power_of_two_codes(b: Emitter, x: SSAValue, rounding: str) -> SSAValue:
    """Return the exponents of f32 numbers with f32's bias, 0 to 254, or 255 for NaN; as i32.

    A code of 0 is 2^-127, which as an f32 is the subnormal number with the highest bit set.
    """
    bits = _bits(b, _apply(b, "abs", x), i32)
    exponent = _apply(b, "shift_right", bits, _scalar(b, _F32_MANTISSA, bits))
    mantissa = _apply(b, "and", bits, _scalar(b, 2**_F32_MANTISSA - 1, bits))
    half = 2 ** (_F32_MANTISSA - 1)
    is_subnormal = _apply(b, "eq", exponent, _scalar(b, 0, bits))
    above = {"up": 0, "down": 2**_F32_MANTISSA, "nearest": half - 1}[rounding]
    above_subnormal = {"up": half, "down": 2**_F32_MANTISSA, "nearest": half + half // 2}[rounding]
    least, least_subnormal = _scalar(b, above, bits), _scalar(b, above_subnormal, bits)
    limit = _apply(b, "select", is_subnormal, least_subnormal, least)
    carry = _converted(b, _apply(b, "gt", mantissa, limit), i32)
    codes = _apply(b, "minimum", _apply(b, "add", exponent, carry), _scalar(b, 254, bits))
    return _apply(b, "select", _apply(b, "isnan", x), _scalar(b, 255, bits), codes)
