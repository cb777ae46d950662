"""Elementary functions on vectors of f32, as polynomials: errors of a few units in 1e-7.

Coefficients and where they are from: `elementary_coefficients`.
"""

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, IntegerType, i32
from xdsl.dialects.llvm import CallIntrinsicOp
from xdsl.ir import Operation

from braid.lowering.common import elementary_coefficients as coefficients
from braid.lowering.common.emitted_dialects import math
from braid.lowering.cpu.kernels.emit.compare import at_least, choose, clamp, compare
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Value

_INFINITY = float("inf")
_EXP_HIGHEST = 88.72283173
"""Above, exp is infinite; below `EXP_LOWEST` it is 0."""
_EXP_UNDERFLOWS, _EXP_OVERFLOWS = -104.0, 89.0
"""Where scaling, which makes subnormal numbers too, has 0 and infinity as results."""
_CURRENT_ROUNDING = 4
"""To the nearest, as the processor is set."""


class Functions:
    """The functions, written through one emitter."""

    def __init__(self, e: Emitter) -> None:
        self.e = e
        self._f32 = e.vector_type(Float32Type())
        self._i32 = e.vector_type(IntegerType(32))

    def exp(self, x: Value) -> Value:
        """e to the power of x: 2^n times a polynomial in the rest, |rest| ≤ ln 2 / 2."""
        if self.e.unit.scaling is not None:
            return self._exp_inside(clamp(self.e, x, _EXP_UNDERFLOWS, _EXP_OVERFLOWS))
        value = self._exp_inside(clamp(self.e, x, coefficients.EXP_LOWEST, _EXP_HIGHEST))
        above = compare(self.e, "ogt", x, self._number(_EXP_HIGHEST))
        value = choose(self.e, above, self._number(_INFINITY), value)
        return self._flushed(x, value)

    def exp_of_differences(self, x: Value) -> Value:
        """`exp` of numbers of which none is above 0, as differences to a maximum are."""
        if self.e.unit.scaling is not None:
            return self._exp_inside(at_least(self.e, x, self._number(_EXP_UNDERFLOWS)))
        lowest = self._number(coefficients.EXP_LOWEST)
        return self._flushed(x, self._exp_inside(at_least(self.e, x, lowest)))

    def _exp_inside(self, x: Value) -> Value:
        """`exp` where its result is a normal number, or one that scaling makes 0 or infinite."""
        exponent = self._do(math.RoundEvenOp(self._mul(x, self._number(coefficients.LOG2_E))))
        rest = self._fma(exponent, self._number(-coefficients.LN2_HIGH), x)
        rest = self._fma(exponent, self._number(-coefficients.LN2_LOW), rest)
        mantissa = self._polynomial((*coefficients.EXP, 1.0, 1.0), rest)
        return self._scaled(mantissa, exponent)

    def _flushed(self, x: Value, value: Value) -> Value:
        below = compare(self.e, "olt", x, self._number(coefficients.EXP_LOWEST))
        return choose(self.e, below, self._number(0.0), value)

    def log(self, x: Value) -> Value:
        """Natural logarithm: exponent · ln 2 + a polynomial in mantissa - 1."""
        e = self.e
        tiny = compare(e, "olt", x, self._number(2.0**-126))
        scaled = choose(e, tiny, self._mul(x, self._number(2.0**23)), x)
        bits = self._do(arith.BitcastOp(scaled, self._i32))
        biased = self._do(arith.ShRUIOp(bits, self._integer(23)))
        exponent = self._to_float(self._do(arith.SubiOp(biased, self._integer(126))))
        exponent = choose(e, tiny, self._sub(exponent, self._number(23.0)), exponent)
        fraction = self._do(arith.AndIOp(bits, self._integer(0x007FFFFF)))
        half = self._do(arith.OrIOp(fraction, self._integer(0x3F000000)))
        mantissa = self._do(arith.BitcastOp(half, self._f32))
        low = compare(e, "olt", mantissa, self._number(0.5**0.5))
        exponent = choose(e, low, self._sub(exponent, self._number(1.0)), exponent)
        mantissa = choose(e, low, self._add(mantissa, mantissa), mantissa)
        value = self._log_near_one(self._sub(mantissa, self._number(1.0)), exponent)
        zero = self._number(0.0)
        value = choose(e, compare(e, "oeq", x, self._number(_INFINITY)), x, value)
        value = choose(e, compare(e, "oeq", x, zero), self._number(-_INFINITY), value)
        return choose(e, compare(e, "uge", x, zero), self._or_nan(x, value), self._nan())

    def tanh(self, x: Value) -> Value:
        """Odd rational function; where it is larger than 1, tanh is 1 in f32."""
        limit = coefficients.TANH_IS_ONE_FROM
        inside = clamp(self.e, x, -limit, limit)
        square = self._mul(inside, inside)
        numerator = self._mul(inside, self._polynomial(coefficients.TANH_NUMERATOR, square))
        denominator = self._polynomial(coefficients.TANH_DENOMINATOR, square)
        return clamp(self.e, self._do(arith.DivfOp(numerator, denominator)), -1.0, 1.0)

    def erf(self, x: Value) -> Value:
        """Odd rational function on [-4, 4]; outside of it erf is ±1 in f32."""
        inside = clamp(self.e, x, -coefficients.ERF_IS_ONE_FROM, coefficients.ERF_IS_ONE_FROM)
        square = self._mul(inside, inside)
        numerator = self._mul(inside, self._polynomial(coefficients.ERF_NUMERATOR, square))
        return self._do(
            arith.DivfOp(numerator, self._polynomial(coefficients.ERF_DENOMINATOR, square))
        )

    def _log_near_one(self, rest: Value, exponent: Value) -> Value:
        square = self._mul(rest, rest)
        cubic = self._mul(self._mul(self._polynomial(coefficients.LOG, rest), square), rest)
        cubic = self._fma(exponent, self._number(coefficients.LN2_LOW), cubic)
        cubic = self._fma(square, self._number(-0.5), cubic)
        return self._fma(exponent, self._number(coefficients.LN2_HIGH), self._add(rest, cubic))

    def _or_nan(self, x: Value, value: Value) -> Value:
        """`value`, or x where x is not a number."""
        return choose(self.e, compare(self.e, "uno", x, x), x, value)

    def _nan(self) -> Value:
        return self._number(float("nan"))

    def _scaled(self, value: Value, exponent: Value) -> Value:
        """value · 2^exponent, for values around 1 and normal results where nothing scales."""
        e, scaling = self.e, self.e.unit.scaling
        if scaling is not None:
            lanes = IntegerType(max(e.lanes, 8))
            all_lanes, rounding = e.constant(-1, lanes), e.constant(_CURRENT_ROUNDING, i32)
            arguments = [value, exponent, value, all_lanes]
            if e.lanes == 16:  # only this width says how it rounds
                arguments.append(rounding)
            return self._do(CallIntrinsicOp(scaling, arguments, [value.type]))
        # Added to the value's own exponent: 2^128 would be no number, though 0.99 · 2^128 is one.
        integer = e.convert(arith.FPToSIOp, exponent, i32)
        shifted = self._do(arith.ShLIOp(integer, self._integer(23)))
        bits = self._do(arith.AddiOp(self._do(arith.BitcastOp(value, self._i32)), shifted))
        return self._do(arith.BitcastOp(bits, self._f32))

    def _polynomial(self, coefficients: Sequence[float], x: Value) -> Value:
        """Horner's rule; the coefficient of the highest power comes first."""
        value = self._number(coefficients[0])
        for coefficient in coefficients[1:]:
            value = self._fma(value, x, self._number(coefficient))
        return value

    def _number(self, value: float) -> Value:
        return self.e.constant(value, self._f32)

    def _integer(self, value: int) -> Value:
        return self.e.constant(value, self._i32)

    def _to_float(self, value: Value) -> Value:
        return self.e.convert(arith.SIToFPOp, value, Float32Type())

    def _do(self, op: Operation) -> Value:
        return self.e.insert(op)

    def _add(self, a: Value, b: Value) -> Value:
        return self.e.apply(arith.AddfOp, a, b)

    def _sub(self, a: Value, b: Value) -> Value:
        return self.e.apply(arith.SubfOp, a, b)

    def _mul(self, a: Value, b: Value) -> Value:
        return self.e.apply(arith.MulfOp, a, b)

    def _fma(self, a: Value, b: Value, c: Value) -> Value:
        return self.e.fma(a, b, c)
