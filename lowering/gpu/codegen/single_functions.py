"""Elementary functions of f32 in LLVM IR: see `device_math`.

Each takes few instructions: memory leaves time for some 50 an element of f32, and half of that
where elements are of 16 bits.
"""

from collections.abc import Callable, Sequence

from braid.lowering.emit.math import coefficients
from braid.lowering.gpu.codegen.ir_writer import INFINITY, FunctionWriter, Value

_SHIFT = 1.5 * 2.0**23
"""Adding it to a small number leaves the integer part in the last bits."""
_MOST_EXPONENT = 126.0
_LEAST_NORMAL_BITS, _INFINITY_BITS = 0x00800000, 0x7F800000
_ROOT_HALF_BITS = 0x3F3504F3
_EXPONENT_BITS = 0xFF800000
_SINE = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COSINE = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
"""On [-π/4, π/4]: Cephes (sinf.c)."""


def exp32(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    """Return 2^n · 2^rest, n the whole part of y = x · log2 e, at least -126 and at most 126.

    Beyond, the rest is not below 1, and makes a result that is infinite or below the normal ones.
    """
    (x,) = arguments
    log2_e = w.number(coefficients.LOG2_E)
    range = 2.0 * _MOST_EXPONENT
    part = w.number(coefficients.LOG2_E / range)
    inside = w.instruction("fma.rn.sat.f", x, part, w.number(0.5))
    # The last bits become the exponent of 2^n as f32 holds it, which is 127 more than n.
    shift = _SHIFT + 127.0 - _MOST_EXPONENT
    shifted = w.instruction("fma.rm.f", inside, w.number(range), w.number(shift))
    whole = w.sub(shifted, w.number(shift + _MOST_EXPONENT))
    rest = w.fma(x, log2_e, w.negate(whole))
    rest = w.fma(x, w.number(coefficients.LOG2_E_LOW), rest)
    bits = w.binary("shl", w.cast("bitcast", shifted, "i32"), w.integer(23, "i32"))
    return w.mul(w.instruction("ex2.approx.ftz.f32", rest), w.cast("bitcast", bits, "float"))


def log32(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    """Return exponent · ln 2 + a polynomial in mantissa - 1, the mantissa in [√½, √2)."""
    (x,) = arguments
    given = w.cast("bitcast", x, "i32")
    tiny = w.compare_integers("slt", given, w.integer(_LEAST_NORMAL_BITS, "i32"))
    scaled = w.select(tiny, w.mul(x, w.number(2.0**23)), x)
    lost = w.select(tiny, w.number(-23.0), w.number(0.0))
    bits = w.cast("bitcast", scaled, "i32")
    above = w.binary("sub", bits, w.integer(_ROOT_HALF_BITS, "i32"))
    exponent_bits = w.binary("and", above, w.integer(_EXPONENT_BITS, "i32"))
    mantissa = w.cast("bitcast", w.binary("sub", bits, exponent_bits), "float")
    exponent = w.fma(w.cast("sitofp", exponent_bits, "float"), w.number(2.0**-23), lost)
    rest = w.sub(mantissa, w.number(1.0))
    square = w.mul(rest, rest)
    cubic = w.mul(w.mul(w.polynomial(coefficients.LOG, rest), square), rest)
    cubic = w.fma(exponent, w.number(coefficients.LN2_LOW), cubic)
    cubic = w.fma(square, w.number(-0.5), cubic)
    value = w.fma(exponent, w.number(coefficients.LN2_HIGH), w.add(rest, cubic))
    # Infinities, NaN and negative numbers are those whose bits are not below infinity's.
    finite = w.compare_integers("ult", bits, w.integer(_INFINITY_BITS, "i32"))
    infinity = w.number(INFINITY)
    value = w.select(finite, value, w.fma(scaled, infinity, infinity))
    return w.select(w.compare("oeq", x, w.number(0.0)), w.number(-INFINITY), value)


def tanh32(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    """Return an odd polynomial near 0, and 1 - 2 / (2^(2|x| log2 e) + 1) with the sign of x
    elsewhere.

    The error of the power, which grows with |x|, is negligible compared with 1.
    """
    (x,) = arguments
    square = w.mul(x, x)
    near = w.fma(w.mul(w.polynomial(coefficients.TANH, square), square), x, x)
    size = w.intrinsic("fabs", x)
    doubled = w.mul(size, w.number(2.0 * coefficients.LOG2_E))
    power = w.instruction("ex2.approx.ftz.f32", doubled)
    quotient = w.instruction("rcp.approx.ftz.f", w.add(power, w.number(1.0)))
    far = w.fma(quotient, w.number(-2.0), w.number(1.0))
    far = w.intrinsic("copysign", far, x)
    return w.select(w.compare("olt", size, w.number(coefficients.TANH_POLYNOMIAL_BELOW)), near, far)


def erf32(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    """Return an odd rational function on [-4, 4]; outside of it erf is ±1 in f32."""
    limit = coefficients.ERF_IS_ONE_FROM
    inside = w.kept_between(arguments[0], -limit, limit)
    square = w.mul(inside, inside)
    numerator = w.mul(inside, w.polynomial(coefficients.ERF_NUMERATOR, square))
    denominator = w.polynomial(coefficients.ERF_DENOMINATOR, square)
    inverse = w.instruction("rcp.approx.ftz.f", denominator)
    quotient = w.mul(numerator, inverse)
    # A step of Newton's.
    rest = w.fma(w.negate(quotient), denominator, numerator)
    return w.fma(rest, inverse, quotient)


def _sine_cosine32(w: FunctionWriter, x: Value, quarter: int) -> Value:
    """Return sin(x + quarter · π/2) for |x| up to 1e6."""
    shift = w.number(_SHIFT)
    shifted = w.fma(x, w.number(1 / coefficients.HALF_PI), shift)
    count = w.sub(shifted, shift)
    rest = x
    for part in coefficients.HALF_PI_F32:
        rest = w.fma(count, w.number(-part), rest)
    square = w.mul(rest, rest)
    sine = w.fma(w.mul(w.polynomial(_SINE, square), square), rest, rest)
    half = w.fma(square, w.number(-0.5), w.number(1.0))
    cosine = w.fma(w.mul(w.polynomial(_COSINE, square), square), square, half)
    turns = w.binary("add", w.cast("bitcast", shifted, "i32"), w.integer(quarter, "i32"))
    odd = w.binary("and", turns, w.integer(1, "i32"))
    value = w.select(w.compare_integers("ne", odd, w.integer(0, "i32")), cosine, sine)
    sign = w.binary("and", w.binary("shl", turns, w.integer(30, "i32")), w.integer(1 << 31, "i32"))
    bits = w.binary("xor", w.cast("bitcast", value, "i32"), sign)
    return w.cast("bitcast", bits, "float")


SINGLE: dict[str, Callable[[FunctionWriter, Sequence[Value]], Value]] = {
    "exp": exp32,
    "log": log32,
    "tanh": tanh32,
    "erf": erf32,
    "near_sin": lambda w, x: _sine_cosine32(w, x[0], 0),
    "near_cos": lambda w, x: _sine_cosine32(w, x[0], 1),
}
"""The functions by their names in `math.h`; all others are computed in f64 and rounded."""
