"""Sine, cosine and tangent on vectors of f32, right for every finite angle.

Angles are reduced in f64 (Cody and Waite, 1980), those beyond 2^20 by as many digits of 2/π as
their exponents ask for, in integers (Payne and Hanek, 1983).
"""

from collections.abc import Sequence
from itertools import pairwise

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, Float64Type, i1, i32, i64

from braid.lowering.common.emitted_dialects import vector
from braid.lowering.emit.emitter import Emitter, Value
from braid.lowering.emit.math import coefficients
from braid.lowering.emit.math.vector_math import VectorMath

_LARGEST = 2.0**20
_LEAST_EXPONENT = 127 + 20
"""The largest angle that is reduced in f64, and the f32 exponent of larger ones."""
_TWO_OVER_PI = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBB
_DIGITS, _LEADING_ZEROS, _WORDS = 240, 5, 7
"""Binary digits of 2/π above, zeros put before them, and words of 32 bits that are kept of both.

With this many zeros an angle needs the digits from its exponent minus `_LEAST_EXPONENT` on.
"""


class Angles:
    """The functions, written through one emitter."""

    def __init__(self, e: Emitter) -> None:
        self.e = e
        self._single, self._double = VectorMath(e, Float32Type()), VectorMath(e, Float64Type())

    def sin(self, x: Value) -> Value:
        """Return sin x, which is odd: that of |x| with the sign of x."""
        value, sign = self._sine(x, 0)
        own = self._single.integers(arith.AndIOp, self._single.bits(x), 1 << 31)
        return self._turned(x, value, self._single.integers(arith.XOrIOp, sign, own))

    def cos(self, x: Value) -> Value:
        """Return the sine of a quarter of a turn more."""
        return self._turned(x, *self._sine(x, 1))

    def tan(self, x: Value) -> Value:
        """Return tan x as sine by cosine, in f64; after odd quarters as -cosine by sine."""
        f, d = self._single, self._double
        quarters, rest = self._reduced(f.size(x))
        square = d.mul(rest, rest)
        sine = d.odd(coefficients.SIN_F64, rest, square)
        cosine = d.polynomial(coefficients.COS_F64, square)
        odd = self._is_odd(quarters)
        quotient = d.div(d.choose(odd, cosine, sine), d.choose(odd, sine, cosine))
        sign = f.integers(arith.ShLIOp, quarters, 31)
        own = f.integers(arith.AndIOp, f.bits(x), 1 << 31)
        value = d.converted(arith.TruncFOp, quotient, Float32Type())
        return self._turned(x, value, f.integers(arith.XOrIOp, sign, own))

    def _sine(self, x: Value, more: int) -> tuple[Value, Value]:
        """Return sin(|x| + more · π/2), without its sign and that as a bit."""
        f = self._single
        quarters, rest = self._reduced(f.size(x))
        if more:
            quarters = f.integers(arith.AddiOp, quarters, more)
        rest = f.converted(arith.TruncFOp, rest, Float32Type())
        square = f.mul(rest, rest)
        sine = f.odd(coefficients.SIN, rest, square)
        cosine = f.polynomial(coefficients.COS, square)
        sign = f.integers(arith.AndIOp, f.integers(arith.ShLIOp, quarters, 30), 1 << 31)
        return f.choose(self._is_odd(quarters), cosine, sine), sign

    def _is_odd(self, quarters: Value) -> Value:
        f = self._single
        return f.compare("ne", f.integers(arith.AndIOp, quarters, 1), f.integer(0))

    def _turned(self, x: Value, value: Value, sign: Value) -> Value:
        """Return `value` with its sign turned where the bit is set; NaN for infinities and NaN."""
        f = self._single
        turned = f.float_of(f.integers(arith.XOrIOp, f.bits(value), sign))
        finite = f.compare("olt", f.size(x), f.number(float("inf")))
        return f.choose(finite, turned, f.number(float("nan")))

    def _reduced(self, size: Value) -> tuple[Value, Value]:
        """Return the quarters of a turn in angles that are not negative, and the rest as f64,
        |rest| ≤ π/4.
        """
        f, d = self._single, self._double
        angle = f.converted(arith.ExtFOp, size, Float64Type())
        count = d.rounded(d.mul(angle, d.number(1.0 / coefficients.HALF_PI)))
        rest = d.fma(count, d.number(-coefficients.HALF_PI_F64[0]), angle)
        rest = d.fma(count, d.number(-coefficients.HALF_PI_REST_F64), rest)
        quarters = d.converted(arith.FPToSIOp, count, i32)
        large = f.compare("ugt", size, f.number(_LARGEST))
        some = {"kind": vector.CombiningKindAttr(vector.CombiningKindFlag.OR)}
        some_large = self.e.make(vector.ReductionOp, [large], i1, some)

        def exact() -> Sequence[Value]:
            found = self._reduced_in_integers(f.bits(size))
            return [f.choose(large, *pair) for pair in zip(found, (quarters, rest), strict=True)]

        quarters, rest = self.e.replaced(some_large, (quarters, rest), exact)
        return quarters, rest

    def _reduced_in_integers(self, bits: Value) -> tuple[Value, Value]:
        """Reduce f32 above 2^20 by their bits: m · 2^n times 2/π, without multiples of 4."""
        f, d = self._single, self._double
        mantissa = f.integers(arith.AndIOp, bits, 0x007FFFFF)
        mantissa = self._wide(f.integers(arith.OrIOp, mantissa, 0x00800000))
        first = f.integers(arith.SubiOp, f.integers(arith.ShRUIOp, bits, 23), _LEAST_EXPONENT)
        high, middle, low = (
            d.integers(arith.MuliOp, mantissa, self._wide(word)) for word in self._digits(first)
        )
        product = d.integers(arith.ShLIOp, high, 32)
        product = d.integers(arith.AddiOp, product, middle)
        product = d.integers(arith.AddiOp, product, d.integers(arith.ShRUIOp, low, 32))
        # Two bits before the point and 62 after it; these as the nearest fraction, with a sign.
        nearest = d.integers(arith.AddiOp, product, 1 << 61)
        quarters = d.converted(arith.TruncIOp, d.integers(arith.ShRUIOp, nearest, 62), i32)
        fraction = d.integers(arith.ShLIOp, product, 2)
        upper = d.converted(arith.TruncIOp, d.integers(arith.ShRUIOp, fraction, 32), i32)
        lower = d.converted(arith.TruncIOp, d.integers(arith.ShRUIOp, fraction, 1), i32)
        lower = f.integers(arith.AndIOp, lower, 0x7FFFFFFF)
        upper, lower = (f.converted(arith.SIToFPOp, v, Float64Type()) for v in (upper, lower))
        small = d.mul(lower, d.number(coefficients.HALF_PI * 2.0**-63))
        return quarters, d.fma(upper, d.number(coefficients.HALF_PI * 2.0**-32), small)

    def _digits(self, first: Value) -> list[Value]:
        """Return three words of 2/π, from the digit `first` on, 0 ≤ first < 128."""
        f = self._single
        digits = _TWO_OVER_PI >> (_DIGITS + _LEADING_ZEROS - 32 * _WORDS)
        words = [f.integer(digits >> (32 * n) & 0xFFFFFFFF) for n in reversed(range(_WORDS))]
        starts = [f.compare("sge", first, f.integer(32 * n)) for n in (1, 2, 3)]
        chosen: list[Value] = []
        for n in range(4):
            word = words[n]
            for further, start in enumerate(starts, 1):
                word = f.choose(start, words[n + further], word)
            chosen.append(word)
        left = f.integers(arith.AndIOp, first, 31)
        right = f.integers(arith.XOrIOp, left, 31)  # 31 - left
        return [
            f.integers(
                arith.OrIOp,
                f.integers(arith.ShLIOp, a, left),
                f.integers(arith.ShRUIOp, f.integers(arith.ShRUIOp, b, 1), right),
            )
            for a, b in pairwise(chosen)
        ]

    def _wide(self, bits: Value) -> Value:
        return self._single.converted(arith.ExtUIOp, bits, i64)
