"""Elementary functions on vectors of f32, as polynomials: errors of a few units in 1e-7.

Approximations of exp, log and tanh: Cephes library by S. Moshier (expf.c, logf.c, tanhf.c).
Approximation of erf: the rational one of Eigen and XLA (`generic_fast_erf_float`).
"""

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, IntegerType
from xdsl.ir import Operation

from braid.lowering.cpu.kernels.emit.compare import choose, clamp, compare
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Value

_INFINITY = float("inf")
_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
"""Their sum is ln 2; the first has few bits, so that its products with exponents are exact."""

_EXP_LOWEST, _EXP_HIGHEST = -87.33654475, 88.37626266
"""Below, exp is 0 (results below the normal numbers are flushed); above, it is infinite."""
_EXP = (
    1.9875691500e-4,
    1.3981999507e-3,
    8.3334519073e-3,
    4.1665795894e-2,
    1.6666665459e-1,
    5.0000001201e-1,
)
_LOG = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
_TANH = (
    -5.70498872745e-3,
    2.06390887954e-2,
    -5.37397155531e-2,
    1.33314422036e-1,
    -3.33332819422e-1,
)
_TANH_POLYNOMIAL_BELOW = 0.625
_ERF_NUMERATOR = (
    -2.72614225801306e-10,
    2.77068142495902e-08,
    -2.10102402082508e-06,
    -5.69250639462346e-05,
    -7.34990630326855e-04,
    -2.95459980854025e-03,
    -1.60960333262415e-02,
)
_ERF_DENOMINATOR = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)
_ERF_IS_ONE_FROM = 4.0


class Functions:
    """The functions, written through one emitter."""

    def __init__(self, e: Emitter) -> None:
        self.e = e
        self._f32 = e.vector_type(Float32Type())
        self._i32 = e.vector_type(IntegerType(32))

    def exp(self, x: Value) -> Value:
        """e to the power of x: 2^n times a polynomial in the rest, |rest| ≤ ln 2 / 2."""
        inside = clamp(self.e, x, _EXP_LOWEST, _EXP_HIGHEST)
        exponent = self._do(math.RoundEvenOp(self._mul(inside, self._number(_LOG2_E))))
        rest = self._fma(exponent, self._number(-_LN2_HIGH), inside)
        rest = self._fma(exponent, self._number(-_LN2_LOW), rest)
        series = self._fma(self._polynomial(_EXP, rest), self._mul(rest, rest), rest)
        mantissa = self._add(series, self._number(1.0))
        value = self._mul(mantissa, self._power_of_two(exponent))
        above = compare(self.e, "ogt", x, self._number(_EXP_HIGHEST))
        below = compare(self.e, "olt", x, self._number(_EXP_LOWEST))
        value = choose(self.e, above, self._number(_INFINITY), value)
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
        """Odd polynomial near 0, and 1 - 2 / (exp(2|x|) + 1) with the sign of x elsewhere."""
        square = self._mul(x, x)
        near = self._fma(self._mul(self._polynomial(_TANH, square), square), x, x)
        size = self._do(math.AbsFOp(x))
        one, two = self._number(1.0), self._number(2.0)
        quotient = self._do(arith.DivfOp(two, self._add(self.exp(self._add(size, size)), one)))
        far = self._do(math.CopySignOp(self._sub(one, quotient), x))
        is_near = compare(self.e, "olt", size, self._number(_TANH_POLYNOMIAL_BELOW))
        return choose(self.e, is_near, near, far)

    def erf(self, x: Value) -> Value:
        """Odd rational function on [-4, 4]; outside of it erf is ±1 in f32."""
        inside = clamp(self.e, x, -_ERF_IS_ONE_FROM, _ERF_IS_ONE_FROM)
        square = self._mul(inside, inside)
        numerator = self._mul(inside, self._polynomial(_ERF_NUMERATOR, square))
        return self._do(arith.DivfOp(numerator, self._polynomial(_ERF_DENOMINATOR, square)))

    def _log_near_one(self, rest: Value, exponent: Value) -> Value:
        square = self._mul(rest, rest)
        cubic = self._mul(self._mul(self._polynomial(_LOG, rest), square), rest)
        cubic = self._fma(exponent, self._number(_LN2_LOW), cubic)
        cubic = self._fma(square, self._number(-0.5), cubic)
        return self._fma(exponent, self._number(_LN2_HIGH), self._add(rest, cubic))

    def _or_nan(self, x: Value, value: Value) -> Value:
        """`value`, or x where x is not a number."""
        return choose(self.e, compare(self.e, "uno", x, x), x, value)

    def _nan(self) -> Value:
        return self._number(float("nan"))

    def _power_of_two(self, exponent: Value) -> Value:
        integer = self.e.convert(arith.FPToSIOp, exponent, IntegerType(32))
        biased = self._do(arith.AddiOp(integer, self._integer(127)))
        bits = self._do(arith.ShLIOp(biased, self._integer(23)))
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
        return self._do(arith.AddfOp(a, b))

    def _sub(self, a: Value, b: Value) -> Value:
        return self._do(arith.SubfOp(a, b))

    def _mul(self, a: Value, b: Value) -> Value:
        return self._do(arith.MulfOp(a, b))

    def _fma(self, a: Value, b: Value, c: Value) -> Value:
        return self.e.fma(a, b, c)
