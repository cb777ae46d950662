"""Elementary functions on vectors of f64: errors of about a unit in the last place.

Taylor series of arguments that are reduced to where few terms are exact: exp and tanh by multiples
of ln 2, log by powers of two, sin and cos by quarters of a turn (Cody and Waite, 1980).
"""

from collections.abc import Sequence
from math import factorial

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float64Type, i1
from xdsl.ir import Operation

from braid.lowering.common.emitted_dialects import math, vector
from braid.lowering.emit.compare import at_least, at_most, clamp
from braid.lowering.emit.emitter import Emitter, Value
from braid.lowering.emit.math import coefficients
from braid.lowering.emit.math.vector_math import VectorMath

_INFINITY = float("inf")
_UNDERFLOWS, _OVERFLOWS = -746.0, 710.0
"""The x from which on exp is 0, and infinite."""
_ONE_FROM = 22.0
"""The x from which on tanh is 1."""
_WHOLE = 1.5 * 2.0**52
"""Adding it to a small integer leaves the integer in the lowest bits."""
_BIAS, MANTISSA_BITS = 1023, 52
_ABOVE_ROOT_HALF = 0x3FF0000000000000 - 0x3FE6A09E667F3BCD
"""Added to the bits of √½ it gives those of 1."""
_LEAST_NORMAL = 2.0**-1022
_LARGEST = 2.0**20
"""The largest angle that is reduced so; others are left to the C library."""

_POWERS = tuple(1 / factorial(n) for n in range(14, 1, -1))
"""(e^x - 1 - x) / x²."""
_LOGARITHM = tuple(2 / (2 * n + 1) for n in range(12, 0, -1))
"""(log((1 + s) / (1 - s)) - 2 s) / s³, in s²."""
_SINE = tuple((-1) ** n / factorial(2 * n + 1) for n in range(8, 0, -1))
"""(sin x - x) / x³, in x²."""
_COSINE = tuple((-1) ** n / factorial(2 * n) for n in range(8, 1, -1))
"""(cos x - 1 + x²/2) / x⁴, in x²."""


def mantissa_and_exponent(d: VectorMath, x: Value) -> tuple[Value, Value]:
    """Return normal f64 as mantissas between √½ and √2, and exponents of two."""
    bits = d.bits(x)
    biased = d.integers(arith.AddiOp, bits, _ABOVE_ROOT_HALF)
    biased = d.integers(arith.ShRUIOp, biased, MANTISSA_BITS)
    power = d.integers(arith.SubiOp, biased, _BIAS)
    power = d.integers(arith.ShLIOp, power, MANTISSA_BITS)
    mantissa = d.float_of(d.integers(arith.SubiOp, bits, power))
    # There is no instruction of AVX2 for integers of 64 bits as floats.
    counted = d.integers(arith.OrIOp, biased, (_BIAS + MANTISSA_BITS) << MANTISSA_BITS)
    return mantissa, d.sub(d.float_of(counted), d.number(2.0**MANTISSA_BITS + _BIAS))


class DoubleFunctions(VectorMath):
    """The functions, written through one emitter."""

    def __init__(self, e: Emitter) -> None:
        super().__init__(e, Float64Type())

    def exp(self, x: Value) -> Value:
        """Return e to the power of x: 2^n · e^rest."""
        exponent, power = self._reduced_power(clamp(self.e, x, _UNDERFLOWS, _OVERFLOWS))
        return self._scaled(power, exponent)

    def exp_of_differences(self, x: Value) -> Value:
        """Return `exp` of numbers of which none is above 0, as differences to a maximum are."""
        exponent, power = self._reduced_power(at_least(self.e, x, self.number(_UNDERFLOWS)))
        return self._scaled(power, exponent)

    def tanh(self, x: Value) -> Value:
        """Return m / (m + 2) with m = e^2|x| - 1, and the sign of x."""
        size = at_most(self.e, self.size(x), self.number(_ONE_FROM))
        exponent, power = self._reduced_power(self.add(size, size))
        scale = self._power_of_two(exponent)
        m = self.fma(scale, power, self.sub(scale, self.number(1.0)))
        return self.signed(self.div(m, self.add(m, self.number(2.0))), x)

    def log(self, x: Value) -> Value:
        """Return n · ln 2 + 2 artanh s with s = (m - 1) / (m + 1), m the mantissa between √½ and
        √2.
        """
        one, zero = self.number(1.0), self.number(0.0)
        tiny = self.compare("olt", x, self.number(_LEAST_NORMAL))
        scaled = self.choose(tiny, self.mul(x, self.number(2.0**MANTISSA_BITS)), x)
        mantissa, exponent = mantissa_and_exponent(self, scaled)
        lifted = self.sub(exponent, self.number(float(MANTISSA_BITS)))
        exponent = self.choose(tiny, lifted, exponent)
        rest = self.sub(mantissa, one)
        s = self.div(rest, self.add(mantissa, one))
        square, half = self.mul(s, s), self.mul(self.mul(rest, rest), self.number(0.5))
        # 2 s = rest - s · rest, whose first term is exact.
        series = self.fma(square, self.polynomial(_LOGARITHM, square), half)
        low = self.fma(exponent, self.number(coefficients.LN2_F64[1]), self.mul(s, series))
        value = self.sub(rest, self.sub(half, low))
        value = self.fma(exponent, self.number(coefficients.LN2_F64[0]), value)
        value = self.choose(self.compare("oeq", x, self.number(_INFINITY)), x, value)
        value = self.choose(self.compare("oeq", x, zero), self.number(-_INFINITY), value)
        return self.choose(self.compare("oge", x, zero), value, self.number(float("nan")))

    def sin(self, x: Value) -> Value:
        """See `_wave`."""
        return self._wave(x, 0, math.SinOp)

    def cos(self, x: Value) -> Value:
        """See `_wave`."""
        return self._wave(x, 1, math.CosOp)

    def _reduced_power(self, x: Value) -> tuple[Value, Value]:
        """Return n and e^rest - 1 with x = n · ln 2 + rest."""
        exponent = self.rounded(self.mul(x, self.number(coefficients.LOG2_E)))
        rest, low = self._without(x, exponent, coefficients.LN2_F64)
        series = self.polynomial(_POWERS, rest)
        return exponent, self.add(rest, self.fma(self.mul(rest, rest), series, low))

    def _without(self, x: Value, count: Value, parts: Sequence[float]) -> tuple[Value, Value]:
        """Return x less `count` times the sum of `parts`, and the rounding error of that
        difference.

        Products with all parts but the last are exact, and so is the first difference.
        """
        rest = self.fma(count, self.number(-parts[0]), x)
        low: Value | None = None
        for part in map(self.number, (-part for part in parts[1:])):
            before, rest = rest, self.fma(count, part, rest)
            lost = self.fma(count, part, self.sub(before, rest))
            low = lost if low is None else self.add(low, lost)
        assert low is not None
        return rest, low

    def _scaled(self, power: Value, exponent: Value) -> Value:
        """Return (power + 1) · 2^exponent, by two factors: results below the normal numbers too."""
        first = self.rounded(self.mul(exponent, self.number(0.5)))
        value = self.mul(self.add(power, self.number(1.0)), self._power_of_two(first))
        return self.mul(value, self._power_of_two(self.sub(exponent, first)))

    def _power_of_two(self, exponent: Value) -> Value:
        """Return powers of two for whole numbers whose power is a normal number."""
        shifted = self.integers(arith.ShLIOp, self._whole(exponent), MANTISSA_BITS)
        return self.float_of(self.integers(arith.AddiOp, shifted, _BIAS << MANTISSA_BITS))

    def _whole(self, x: Value) -> Value:
        """Return integers whose low bits are those of a small integral float."""
        return self.bits(self.add(x, self.number(_WHOLE)))

    def _wave(self, x: Value, quarter: int, exactly: type[Operation]) -> Value:
        """Return sin x, or sin of |x| and a `quarter` turn; `exactly` where angles are large or
        NaN.
        """
        size = self.size(x)
        count = self.rounded(self.mul(size, self.number(1 / coefficients.HALF_PI)))
        rest, low = self._without(size, count, coefficients.HALF_PI_F64)
        square = self.mul(rest, rest)
        sine = self.odd(_SINE, rest, square)
        near = self.fma(square, self.number(-0.5), self.number(1.0))
        cosine = self.fma(self.mul(square, square), self.polynomial(_COSINE, square), near)
        sine, cosine = self.fma(low, cosine, sine), self.sub(cosine, self.mul(low, sine))
        quarters = self.integers(arith.AddiOp, self._whole(count), quarter)
        one = self.integer(1)
        is_odd = self.compare("eq", self.integers(arith.AndIOp, quarters, one), one)
        turned = self.integers(arith.ShLIOp, quarters, 62)
        if not quarter:
            turned = self.integers(arith.XOrIOp, turned, self.bits(x))
        sign = self.integers(arith.AndIOp, turned, 1 << 63)
        value = self.bits(self.choose(is_odd, cosine, sine))
        value = self.float_of(self.integers(arith.XOrIOp, value, sign))
        large = self.compare("ugt", size, self.number(_LARGEST))
        some = {"kind": vector.CombiningKindAttr(vector.CombiningKindFlag.OR)}
        some_large = self.e.make(vector.ReductionOp, [large], i1, some)

        def others() -> Sequence[Value]:
            return [self.choose(large, self.e.apply(exactly, x), value)]

        return self.e.replaced(some_large, [value], others)[0]
