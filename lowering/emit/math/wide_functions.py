"""Elementary functions on vectors of f32 that are computed in f64 and rounded once.

Where polynomials in f32 would lose more than they save: differences of powers and logarithms of
numbers near 1, and powers, whose errors grow with the exponents. Coefficients:
`coefficients`.
"""

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, Float64Type

from braid.lowering.common.emitted_dialects import math
from braid.lowering.emit.compare import at_most, clamp
from braid.lowering.emit.emitter import Emitter, Value
from braid.lowering.emit.math import coefficients
from braid.lowering.emit.math.double_functions import MANTISSA_BITS, mantissa_and_exponent
from braid.lowering.emit.math.vector_math import VectorMath

_INFINITY = float("inf")
_OVERFLOWS = 200.0
"""e to the power of this is infinite in f32, of its negative 0; in f64 both are normal numbers."""
_LINEAR_BELOW = 2.0**-14
"""Smaller numbers are their own sinh, asinh and atanh in f32."""
_WHOLE = 1.5 * 2.0**52
"""Adding it to a small integer leaves the integer in the lowest bits."""


class WideFunctions:
    """The functions, written through one emitter."""

    def __init__(self, e: Emitter) -> None:
        self.e = e
        self._single, self._double = VectorMath(e, Float32Type()), VectorMath(e, Float64Type())

    def sinh(self, x: Value) -> Value:
        """Return (e^|x| - e^-|x|) / 2 with the sign of x."""
        return self._odd(x, self._half_of_powers(x, arith.SubfOp))

    def cosh(self, x: Value) -> Value:
        """Return (e^|x| + e^-|x|) / 2."""
        return self._narrow(self._half_of_powers(x, arith.AddfOp))

    def asinh(self, x: Value) -> Value:
        """Return log(|x| + √(x² + 1)) with the sign of x."""
        d = self._double
        size = self._wide(self._single.size(x))
        root = d.root(d.fma(size, size, d.number(1.0)))
        return self._odd(x, self._log(d.add(size, root)))

    def acosh(self, x: Value) -> Value:
        """Return log(x + √(x² - 1)); NaN below 1."""
        d = self._double
        wide = self._wide(x)
        value = self._log(d.add(wide, d.root(d.fma(wide, wide, d.number(-1.0)))))
        defined = self._single.compare("oge", x, self._single.number(1.0))
        return self._single.choose(defined, self._narrow(value), self._single.number(float("nan")))

    def atanh(self, x: Value) -> Value:
        """Return log((1 + |x|) / (1 - |x|)) / 2 with the sign of x."""
        d, one = self._double, self._double.number(1.0)
        size = self._wide(self._single.size(x))
        logarithm = self._log(d.div(d.add(one, size), d.sub(one, size)))
        return self._odd(x, d.mul(logarithm, d.number(0.5)))

    def pow(self, x: Value, y: Value) -> Value:
        """Return e^(y · log |x|), negative for a negative x and an odd y; the edges as in
        IEEE 754.
        """
        f, d = self._single, self._double
        zero, one = f.number(0.0), f.number(1.0)
        exponent = d.mul(self._wide(y), self._log(self._wide(f.size(x))))
        value = self._narrow(self._exp(clamp(self.e, exponent, -_OVERFLOWS, _OVERFLOWS)))
        whole, half = self._is_whole(y), self._is_whole(f.mul(y, f.number(0.5)))
        odd = f.both(whole, f.invert(half))
        value = f.choose(odd, f.signed(value, x), value)
        undefined = f.both(f.compare("olt", x, zero), f.invert(whole))
        finite = f.compare("ogt", x, f.number(-_INFINITY))
        undefined = f.both(undefined, finite)
        value = f.choose(undefined, f.number(float("nan")), value)
        # 1 to any power is 1, -1 to an infinite power is 1, and any number to the power of 0 is 1.
        endless = f.compare("oeq", f.size(y), f.number(_INFINITY))
        minus_one = f.both(f.compare("oeq", f.size(x), one), endless)
        value = f.choose(minus_one, one, value)
        value = f.choose(f.compare("oeq", y, zero), one, value)
        return f.choose(f.compare("oeq", x, one), one, value)

    def _half_of_powers(self, x: Value, op: type[arith.AddfOp | arith.SubfOp]) -> Value:
        d = self._double
        size = self._wide(self._single.size(x))
        power = self._exp(at_most(self.e, size, d.number(_OVERFLOWS)))
        both = self.e.apply(op, power, d.div(d.number(1.0), power))
        return d.mul(both, d.number(0.5))

    def _odd(self, x: Value, value: Value) -> Value:
        """Return `value` with the sign of x, or x itself where that is small."""
        f = self._single
        small = f.compare("olt", f.size(x), f.number(_LINEAR_BELOW))
        return f.choose(small, x, f.signed(self._narrow(value), x))

    def _exp(self, x: Value) -> Value:
        """Return e to the power of f64, |x| ≤ `_OVERFLOWS`, or NaN."""
        d = self._double
        exponent = d.rounded(d.mul(x, d.number(coefficients.LOG2_E)))
        rest = d.fma(exponent, d.number(-coefficients.LN2), x)
        mantissa = d.bits(d.polynomial(coefficients.EXP_F64, rest))
        shifted = d.integers(arith.ShLIOp, d.bits(d.add(exponent, d.number(_WHOLE))), MANTISSA_BITS)
        value = d.float_of(d.integers(arith.AddiOp, mantissa, shifted))
        return d.choose(d.compare("uno", x, x), x, value)

    def _log(self, x: Value) -> Value:
        """Return the natural logarithm of f64 that are not below its normal numbers, or zero."""
        d, zero = self._double, self._double.number(0.0)
        mantissa, exponent = mantissa_and_exponent(d, x)
        one = d.number(1.0)
        s = d.div(d.sub(mantissa, one), d.add(mantissa, one))
        square = d.mul(s, s)
        tail = d.fma(d.mul(s, square), d.polynomial(coefficients.LOG_F64, square), d.add(s, s))
        value = d.fma(exponent, d.number(coefficients.LN2), tail)
        value = d.choose(d.compare("oeq", x, d.number(_INFINITY)), x, value)
        value = d.choose(d.compare("oeq", x, zero), d.number(-_INFINITY), value)
        return d.choose(d.compare("oge", x, zero), value, d.number(float("nan")))

    def _is_whole(self, x: Value) -> Value:
        return self._single.compare("oeq", self._single.do(math.FloorOp(x)), x)

    def _wide(self, x: Value) -> Value:
        return self._single.converted(arith.ExtFOp, x, Float64Type())

    def _narrow(self, x: Value) -> Value:
        return self._double.converted(arith.TruncFOp, x, Float32Type())
