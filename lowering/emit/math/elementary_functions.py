"""Elementary functions on vectors of f32, as polynomials: errors of a few units in 1e-7.

Coefficients and where they are from: `coefficients`.
"""

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, IntegerType, i32
from xdsl.dialects.llvm import CallIntrinsicOp

from braid.lowering.emit.compare import at_least, choose, clamp, compare
from braid.lowering.emit.emitter import Emitter, Value
from braid.lowering.emit.math import coefficients
from braid.lowering.emit.math.vector_math import VectorMath

_INFINITY = float("inf")
_EXP_HIGHEST = 88.72283173
"""The largest x whose exp is finite; below `EXP_LOWEST` it is 0."""
_EXP_UNDERFLOWS, _EXP_OVERFLOWS = -104.0, 89.0
"""The x from which on scaling, which makes subnormal numbers too, gives 0 and infinity."""
_HALF_PI, _HALF_PI_LOW, _ = coefficients.HALF_PI_F32
"""π/2 as f32, and its rounding error."""
_CURRENT_ROUNDING = 4
"""The rounding mode that the processor is set to, usually to nearest."""


class Functions(VectorMath):
    """The functions, written through one emitter."""

    def __init__(self, e: Emitter) -> None:
        super().__init__(e, Float32Type())

    def exp(self, x: Value) -> Value:
        """Return e to the power of x: 2^n times a polynomial in the rest, |rest| ≤ ln 2 / 2."""
        if self.e.unit.scaling is not None:
            return self._exp_inside(clamp(self.e, x, _EXP_UNDERFLOWS, _EXP_OVERFLOWS))
        value = self._exp_inside(clamp(self.e, x, coefficients.EXP_LOWEST, _EXP_HIGHEST))
        above = compare(self.e, "ogt", x, self.number(_EXP_HIGHEST))
        value = choose(self.e, above, self.number(_INFINITY), value)
        return self._flushed(x, value)

    def exp_of_differences(self, x: Value) -> Value:
        """Return `exp` of numbers of which none is above 0, as differences to a maximum are."""
        if self.e.unit.scaling is not None:
            return self._exp_inside(at_least(self.e, x, self.number(_EXP_UNDERFLOWS)))
        lowest = self.number(coefficients.EXP_LOWEST)
        return self._flushed(x, self._exp_inside(at_least(self.e, x, lowest)))

    def _exp_inside(self, x: Value) -> Value:
        """Return `exp` where its result is a normal number, or one that scaling makes 0 or
        infinite.
        """
        exponent = self.rounded(self.mul(x, self.number(coefficients.LOG2_E)))
        rest = self.fma(exponent, self.number(-coefficients.LN2_HIGH), x)
        rest = self.fma(exponent, self.number(-coefficients.LN2_LOW), rest)
        mantissa = self.polynomial((*coefficients.EXP, 1.0, 1.0), rest)
        return self._scaled(mantissa, exponent)

    def _flushed(self, x: Value, value: Value) -> Value:
        below = compare(self.e, "olt", x, self.number(coefficients.EXP_LOWEST))
        return choose(self.e, below, self.number(0.0), value)

    def log(self, x: Value) -> Value:
        """Return the natural logarithm: exponent · ln 2 + a polynomial in mantissa - 1."""
        e = self.e
        tiny = compare(e, "olt", x, self.number(2.0**-126))
        scaled = choose(e, tiny, self.mul(x, self.number(2.0**23)), x)
        bits = self.bits(scaled)
        biased = self.do(arith.ShRUIOp(bits, self.integer(23)))
        exponent = self.converted(
            arith.SIToFPOp, self.do(arith.SubiOp(biased, self.integer(126))), Float32Type()
        )
        exponent = choose(e, tiny, self.sub(exponent, self.number(23.0)), exponent)
        fraction = self.do(arith.AndIOp(bits, self.integer(0x007FFFFF)))
        half = self.do(arith.OrIOp(fraction, self.integer(0x3F000000)))
        mantissa = self.float_of(half)
        low = compare(e, "olt", mantissa, self.number(0.5**0.5))
        exponent = choose(e, low, self.sub(exponent, self.number(1.0)), exponent)
        mantissa = choose(e, low, self.add(mantissa, mantissa), mantissa)
        value = self._log_near_one(self.sub(mantissa, self.number(1.0)), exponent)
        zero = self.number(0.0)
        value = choose(e, compare(e, "oeq", x, self.number(_INFINITY)), x, value)
        value = choose(e, compare(e, "oeq", x, zero), self.number(-_INFINITY), value)
        return choose(e, compare(e, "uge", x, zero), self._or_nan(x, value), self._nan())

    def tanh(self, x: Value) -> Value:
        """Return tanh x by an odd rational function; where that is larger than 1, tanh is 1
        in f32.
        """
        limit = coefficients.TANH_IS_ONE_FROM
        inside = clamp(self.e, x, -limit, limit)
        square = self.mul(inside, inside)
        numerator = self.mul(inside, self.polynomial(coefficients.TANH_NUMERATOR, square))
        denominator = self.polynomial(coefficients.TANH_DENOMINATOR, square)
        return clamp(self.e, self.div(numerator, denominator), -1.0, 1.0)

    def erf(self, x: Value) -> Value:
        """Return erf x by an odd rational function on [-4, 4]; outside of it erf is ±1 in f32."""
        inside = clamp(self.e, x, -coefficients.ERF_IS_ONE_FROM, coefficients.ERF_IS_ONE_FROM)
        square = self.mul(inside, inside)
        numerator = self.mul(inside, self.polynomial(coefficients.ERF_NUMERATOR, square))
        return self.div(numerator, self.polynomial(coefficients.ERF_DENOMINATOR, square))

    def atan(self, x: Value) -> Value:
        """Return atan x by an odd polynomial on [-1, 1]; beyond it as π/2 - atan(1/x)."""
        size = self.size(x)
        beyond = self.compare("ogt", size, self.number(1.0))
        near = self.choose(beyond, self.div(self.number(-1.0), size), size)
        low = self.choose(beyond, self.number(_HALF_PI_LOW), self.number(0.0))
        square = self.mul(near, near)
        power = self.polynomial(coefficients.ATAN, square)
        value = self.add(near, self.fma(self.mul(near, square), power, low))
        return self.signed(self.choose(beyond, self.add(value, self._half_pi), value), x)

    def asin(self, x: Value) -> Value:
        """Return asin x by an odd polynomial on [-½, ½]; beyond it as π/2 - 2 asin √((1 - |x|) /
        2).
        """
        value, beyond = self._asin_of_size(self.size(x), -0.5 * _HALF_PI_LOW)
        far = self.fma(value, self.number(-2.0), self._half_pi)
        return self.signed(self.choose(beyond, far, value), x)

    def acos(self, x: Value) -> Value:
        """Return π/2 - asin x; beyond ½ 2 asin √((1 - x) / 2), below -½ π minus that of -x."""
        value, beyond = self._asin_of_size(self.size(x), 0.0)
        value = self.signed(value, x)
        negative = self.compare("olt", x, self.number(0.0))
        start = self.choose(negative, self.number(2.0 * _HALF_PI), self.number(0.0))
        near = self.sub(self._half_pi, self.sub(value, self.number(_HALF_PI_LOW)))
        return self.choose(beyond, self.fma(value, self.number(2.0), start), near)

    @property
    def _half_pi(self) -> Value:
        return self.number(_HALF_PI)

    def _asin_of_size(self, size: Value, low: float) -> tuple[Value, Value]:
        """Return asin of `size`, and whether that is above ½; there `low` + asin √((1 -
        size) / 2).
        """
        beyond = self.compare("ogt", size, self.number(0.5))
        halved = self.fma(size, self.number(-0.5), self.number(0.5))
        square = self.choose(beyond, halved, self.mul(size, size))
        near = self.choose(beyond, self.root(halved), size)
        power = self.polynomial(coefficients.ASIN, square)
        added = self.choose(beyond, self.number(low), self.number(0.0))
        return self.add(near, self.fma(self.mul(near, square), power, added)), beyond

    def _log_near_one(self, rest: Value, exponent: Value) -> Value:
        square = self.mul(rest, rest)
        cubic = self.mul(self.mul(self.polynomial(coefficients.LOG, rest), square), rest)
        cubic = self.fma(exponent, self.number(coefficients.LN2_LOW), cubic)
        cubic = self.fma(square, self.number(-0.5), cubic)
        return self.fma(exponent, self.number(coefficients.LN2_HIGH), self.add(rest, cubic))

    def _or_nan(self, x: Value, value: Value) -> Value:
        """Return `value`, or x where x is not a number."""
        return choose(self.e, compare(self.e, "uno", x, x), x, value)

    def _nan(self) -> Value:
        return self.number(float("nan"))

    def _scaled(self, value: Value, exponent: Value) -> Value:
        """Return value · 2^exponent, for values around 1 and normal results where nothing
        scales.
        """
        e, scaling = self.e, self.e.unit.scaling
        if scaling is not None:
            lanes = IntegerType(max(e.lanes, 8))
            all_lanes, rounding = e.constant(-1, lanes), e.constant(_CURRENT_ROUNDING, i32)
            arguments = [value, exponent, value, all_lanes]
            if e.lanes == 16:  # only this width says how it rounds
                arguments.append(rounding)
            return self.do(CallIntrinsicOp(scaling, arguments, [value.type]))
        # Added to the value's own exponent: 2^128 is not representable, though 0.99 · 2^128 is.
        integer = e.convert(arith.FPToSIOp, exponent, i32)
        shifted = self.do(arith.ShLIOp(integer, self.integer(23)))
        bits = self.do(arith.AddiOp(self.bits(value), shifted))
        return self.float_of(bits)
