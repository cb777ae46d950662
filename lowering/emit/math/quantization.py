"""Quantizing, dequantizing and requantizing vectors: see the ops for what they mean."""

from collections.abc import Sequence
from functools import partial

from xdsl.dialects import arith
from xdsl.dialects.builtin import f64, i32, i64
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.constants import ConstantOp, splat_value
from braid.dialects.braid.dtypes import f32, is_unsigned
from braid.dialects.braid.quantization import (
    DequantizeOp,
    QuantizationOp,
    QuantizeOp,
    RequantizeOp,
    limits_of,
)
from braid.lowering.common.element_types import signless
from braid.lowering.common.emitted_dialects import math, vector
from braid.lowering.emit.compare import at_least, at_most, choose, clamp, compare
from braid.lowering.emit.emitter import Emitter, Value
from braid.lowering.emit.math.elementwise_table import Emit, conversion
from braid.lowering.emit.register_transpose import low_words


def quantization_emitter(op: QuantizationOp) -> Emit | None:
    """Return how an op between integers and real numbers is written, None for other ops."""
    kind = op.result_type().element_type
    if isinstance(op, QuantizeOp):
        return partial(_quantize, kind)
    if isinstance(op, DequantizeOp):
        return partial(_dequantize, element_type_of(op.operands[0]))
    if isinstance(op, RequantizeOp):
        return partial(_requantize, kind, op.rounding.data == "half_even", _shrinks(op))
    return None


_UNITS = 1.5 * 2.0**52
"""A sum with it has no fraction; the last bits of its encoding are the other addend, rounded."""

_EXPONENT_BIAS, _MANTISSA_BITS = 1023, 52


def _converted(e: Emitter, value: Value, source: Attribute, target: Attribute) -> Value:
    if signless(source) == signless(target):
        return value
    op = conversion(source, target)
    assert op is not None, f"no conversion of {source} to {target}"
    return e.convert(op, value, target)


def _quantize(kind: Attribute, e: Emitter, a: Sequence[Value]) -> Value:
    x, scale, zero = a
    rounded = e.insert(math.RoundEvenOp(e.insert(arith.DivfOp(x, scale))))
    value = e.insert(arith.AddfOp(rounded, _converted(e, zero, kind, f32)))
    limited = clamp(e, value, *limits_of(kind))
    # The conversion of NaN means nothing.
    is_nan = compare(e, "uno", limited, limited)
    number = choose(e, is_nan, e.constant(0.0, limited.type), limited)
    return _converted(e, e.convert(arith.FPToSIOp, number, i32), i32, kind)


def _dequantize(kind: Attribute, e: Emitter, a: Sequence[Value]) -> Value:
    q, scale, zero = a
    wide = [_converted(e, value, kind, i32) for value in (q, zero)]
    centered = e.insert(arith.SubiOp(wide[0], wide[1]))
    return e.insert(arith.MulfOp(_converted(e, centered, i32, f32), scale))


def _requantize(
    kind: Attribute, half_even: bool, shrinks: bool, e: Emitter, a: Sequence[Value]
) -> Value:
    if half_even and e.unit.has_fma:
        return _requantize_by_fma(kind, shrinks, e, a)
    x, multiplier, shift = (_converted(e, value, i32, i64) for value in a[:3])
    zero = _converted(e, a[3], kind, i64)
    one = e.constant(1, e.vector_type(i64))
    product = e.insert(arith.MuliOp(x, multiplier))
    half = e.insert(arith.ShLIOp(one, e.insert(arith.SubiOp(shift, one))))
    if half_even:
        below_half = e.insert(arith.SubiOp(half, one))
        odd = e.insert(arith.AndIOp(e.insert(arith.ShRSIOp(product, shift)), one))
        half = e.insert(arith.AddiOp(below_half, odd))
    rounded = e.insert(arith.ShRSIOp(e.insert(arith.AddiOp(product, half)), shift))
    value = clamp(e, e.insert(arith.AddiOp(rounded, zero)), *limits_of(kind))
    return _converted(e, value, i64, kind)


def _requantize_by_fma(kind: Attribute, shrinks: bool, e: Emitter, a: Sequence[Value]) -> Value:
    """Return the product in f64, rounded once, halves to even, by a multiply-add with `_UNITS`:
    exact for all operands.

    If it `shrinks`, rounded values fit i32, and are clamped there.
    """
    x, multiplier = (_converted(e, value, i32, f64) for value in a[:2])
    bias = e.constant(_EXPONENT_BIAS, e.vector_type(i64))
    exponent = e.insert(arith.SubiOp(bias, _converted(e, a[2], i32, i64)))
    bits = e.insert(arith.ShLIOp(exponent, e.constant(_MANTISSA_BITS, exponent.type)))
    power = e.insert(vector.BitcastOp(bits, e.vector_type(f64)))
    units = e.constant(_UNITS, power.type)
    value = e.fma(x, e.insert(arith.MulfOp(multiplier, power)), units)
    zero, limits = _converted(e, a[3], kind, i32), limits_of(kind)
    if not shrinks:
        base = e.insert(arith.SubfOp(units, _converted(e, zero, i32, f64)))
        bounds = (e.insert(arith.AddfOp(base, e.constant(n, base.type))) for n in limits)
        value = _limited(e, value, *bounds)
    number = low_words(e, value)
    if shrinks:
        bounds = (e.insert(arith.SubiOp(e.constant(n, zero.type), zero)) for n in limits)
        number = _limited(e, number, *bounds)
    result = e.insert(arith.AddiOp(number, zero))
    return e.narrow(result, kind) if is_unsigned(kind) else _converted(e, result, i32, kind)


def _limited(e: Emitter, value: Value, low: Value, high: Value) -> Value:
    return at_most(e, at_least(e, value, low), high)


def _shrinks(op: RequantizeOp) -> bool:
    """Return whether the result is smaller than the operand, as far as is known."""
    multiplier, shift = (_number(value) for value in op.operands[1:3])
    return multiplier is not None and shift is not None and abs(multiplier) < 1 << (shift - 1)


def _number(value: SSAValue) -> int | None:
    """Return the one that all elements are, where it is known."""
    number = splat_value(value.owner) if isinstance(value.owner, ConstantOp) else None
    return None if number is None else int(number)
