"""Elementary functions of f64 in LLVM IR: see `device_math`."""

import math
from collections.abc import Callable, Sequence

from braid.lowering.emit.math import coefficients
from braid.lowering.gpu.codegen.ir_writer import (
    INFINITY,
    Bits,
    FunctionWriter,
    Value,
    log_edges,
    split,
)

_LN2_HIGH, _LN2_LOW = coefficients.LN2_F64
_ERF64_STEPS = 120
"""Terms of the series of erf at 6, where it is 1 in f64."""

Body = Callable[[FunctionWriter, Sequence[Value]], Value]


def _power_of_two(w: FunctionWriter, exponent: Value) -> Value:
    """Return 2^n for an integral f64 n in [-1022, 1023]."""
    bits = w.binary("add", w.cast("fptosi", exponent, "i64"), w.integer(1023, "i64"))
    return w.cast("bitcast", w.binary("shl", bits, w.integer(52, "i64")), "double")


def _factorials(last: int) -> list[float]:
    """Return 1/last!, …, 1/1!, 1/0!."""
    values = [1.0]
    for n in range(1, last + 1):
        values.append(values[-1] / n)
    return values[::-1]


def _exp(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    """Return 2^n · the series of e^r, |r| ≤ ln 2 / 2; 2^n as two factors, for results below
    2^-1022.
    """
    (x,) = arguments
    inside = w.clamp(x, -746.0, 710.0)
    inside = w.select(w.compare("uno", x, x), w.number(0.0), inside)
    exponent = w.intrinsic("rint", w.mul(inside, w.number(coefficients.LOG2_E)))
    rest = w.fma(exponent, w.number(-_LN2_HIGH), inside)
    rest = w.fma(exponent, w.number(-_LN2_LOW), rest)
    series = w.polynomial(_factorials(13), rest)
    first = w.intrinsic("rint", w.mul(exponent, w.number(0.5)))
    second = w.sub(exponent, first)
    value = w.mul(w.mul(series, _power_of_two(w, first)), _power_of_two(w, second))
    return w.select(w.compare("uno", x, x), x, value)


def _log(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    """Return n · ln 2 + 2 artanh s with s = (m - 1) / (m + 1), m the mantissa in [√½, √2)."""
    (x,) = arguments
    mantissa, exponent = split(w, x, Bits("i64", 52, 1023))
    s = w.div(w.sub(mantissa, w.number(1.0)), w.add(mantissa, w.number(1.0)))
    square = w.mul(s, s)
    series = w.polynomial([2.0 / (2 * n + 1) for n in range(12, 0, -1)], square)
    tail = w.mul(w.mul(series, square), s)
    tail = w.fma(exponent, w.number(_LN2_LOW), tail)
    value = w.add(w.add(s, s), tail)
    return log_edges(w, x, w.fma(exponent, w.number(_LN2_HIGH), value))


def _expm1(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    (x,) = arguments
    near = w.mul(w.polynomial(_factorials(16)[:-1], x), x)
    far = w.sub(w.call("__nv_exp", "double", x), w.number(1.0))
    return w.select(w.compare("olt", w.intrinsic("fabs", x), w.number(0.5)), near, far)


def _log1p(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    """Return log(1 + x) by W. Kahan's formula: log(u) · x / (u - 1) with u = 1 + x as it is
    rounded.
    """
    (x,) = arguments
    u = w.add(x, w.number(1.0))
    rest = w.sub(u, w.number(1.0))
    logarithm = w.call("__nv_log", "double", u)
    scaled = w.div(w.mul(logarithm, x), rest)
    infinite = w.compare("oeq", u, w.number(INFINITY))
    value = w.select(infinite, u, scaled)
    value = w.select(w.compare("oeq", u, w.number(0.0)), logarithm, value)
    return w.select(w.compare("oeq", rest, w.number(0.0)), x, value)


def _sine_cosine(w: FunctionWriter, x: Value, quarter: int) -> Value:
    """Return sin(x + quarter · π/2)."""
    count = w.intrinsic("rint", w.mul(x, w.number(1 / coefficients.HALF_PI)))
    rest = x
    for part in coefficients.HALF_PI_F64:
        rest = w.fma(count, w.number(-part), rest)
    # Of angles beyond some 10^15 nothing is left, but a sine has its bounds.
    rest = w.intrinsic("minnum", w.intrinsic("maxnum", rest, w.number(-1.0)), w.number(1.0))
    square = w.mul(rest, rest)
    terms = _factorials(19)[::-1]
    signs = [(-1) ** (n // 2) * terms[n] for n in range(20)]
    sine = w.mul(w.polynomial(signs[19::-2], square), rest)
    cosine = w.polynomial(signs[18::-2], square)
    turns = w.binary("add", w.cast("fptosi", count, "i64"), w.integer(quarter, "i64"))
    zero = w.integer(0, "i64")
    odd = w.compare_integers("ne", w.binary("and", turns, w.integer(1, "i64")), zero)
    down = w.compare_integers("ne", w.binary("and", turns, w.integer(2, "i64")), zero)
    value = w.select(odd, cosine, sine)
    value = w.select(down, w.negate(value), value)
    finite = w.compare("olt", w.intrinsic("fabs", x), w.number(INFINITY))
    return w.select(finite, value, w.number(float("nan")))


def _tan(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    (x,) = arguments
    return w.div(w.call("__nv_sin", "double", x), w.call("__nv_cos", "double", x))


def _atan(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    """Return atan(x): the argument is reduced to [0, 2 - √3] by π/2 - atan(1/x) and by π/6, then a
    series.
    """
    (x,) = arguments
    size = w.intrinsic("fabs", x)
    above = w.compare("ogt", size, w.number(1.0))
    size = w.select(above, w.div(w.number(1.0), size), size)
    wide = w.compare("ogt", size, w.number(2 - 3**0.5))
    root = w.number(3**0.5)
    turned = w.div(w.fma(size, root, w.number(-1.0)), w.add(root, size))
    t = w.select(wide, turned, size)
    square = w.mul(t, t)
    series = w.polynomial([(-1) ** n / (2 * n + 1) for n in range(15, -1, -1)], square)
    value = w.mul(series, t)
    value = w.select(wide, w.add(value, w.number(math.pi / 6)), value)
    value = w.select(above, w.sub(w.number(coefficients.HALF_PI), value), value)
    return w.intrinsic("copysign", value, x)


def _asin(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    (x,) = arguments
    one = w.number(1.0)
    root = w.intrinsic("sqrt", w.mul(w.sub(one, x), w.add(one, x)))
    return w.call("__nv_atan", "double", w.div(x, root))


def _acos(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    (x,) = arguments
    one = w.number(1.0)
    root = w.intrinsic("sqrt", w.div(w.sub(one, x), w.add(one, x)))
    value = w.call("__nv_atan", "double", root)
    return w.add(value, value)


def _sinh(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    """Return (m + m / (m + 1)) / 2 with m = e^|x| - 1; for large x (e^(|x|/2) / 2) · e^(|x|/2)."""
    (x,) = arguments
    size = w.intrinsic("fabs", x)
    m = w.call("__nv_expm1", "double", size)
    near = w.mul(w.add(m, w.div(m, w.add(m, w.number(1.0)))), w.number(0.5))
    value = w.select(w.compare("olt", size, w.number(40.0)), near, _half_power(w, size))
    return w.intrinsic("copysign", value, x)


def _cosh(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    (x,) = arguments
    size = w.intrinsic("fabs", x)
    e = w.call("__nv_exp", "double", size)
    near = w.mul(w.add(e, w.div(w.number(1.0), e)), w.number(0.5))
    return w.select(w.compare("olt", size, w.number(40.0)), near, _half_power(w, size))


def _half_power(w: FunctionWriter, size: Value) -> Value:
    root = w.call("__nv_exp", "double", w.mul(size, w.number(0.5)))
    return w.mul(w.mul(root, w.number(0.5)), root)


def _tanh(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    (x,) = arguments
    size = w.intrinsic("fabs", x)
    limited = w.select(w.compare("ogt", size, w.number(30.0)), w.number(30.0), size)
    m = w.call("__nv_expm1", "double", w.add(limited, limited))
    return w.intrinsic("copysign", w.div(m, w.add(m, w.number(2.0))), x)


def _asinh(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    (x,) = arguments
    size, one = w.intrinsic("fabs", x), w.number(1.0)
    square = w.mul(size, size)
    root = w.intrinsic("sqrt", w.add(square, one))
    near = w.call("__nv_log1p", "double", w.add(size, w.div(square, w.add(root, one))))
    far = w.add(w.call("__nv_log", "double", size), w.number(coefficients.LN2))
    value = w.select(w.compare("olt", size, w.number(1e8)), near, far)
    return w.intrinsic("copysign", value, x)


def _acosh(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    (x,) = arguments
    t = w.sub(x, w.number(1.0))
    root = w.intrinsic("sqrt", w.mul(t, w.add(t, w.number(2.0))))
    near = w.call("__nv_log1p", "double", w.add(t, root))
    far = w.add(w.call("__nv_log", "double", x), w.number(coefficients.LN2))
    return w.select(w.compare("ogt", x, w.number(1e8)), far, near)


def _atanh(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    (x,) = arguments
    size = w.intrinsic("fabs", x)
    quotient = w.div(w.add(size, size), w.sub(w.number(1.0), size))
    value = w.mul(w.call("__nv_log1p", "double", quotient), w.number(0.5))
    return w.intrinsic("copysign", value, x)


def _erf(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    """Return 2/√π · e^(-x²) · x · Σ (2x²)^n / (1 · 3 ⋯ (2n + 1)), whose terms are all positive."""
    (x,) = arguments
    size = w.intrinsic("fabs", x)
    inside = w.select(w.compare("ogt", size, w.number(6.0)), w.number(6.0), size)
    square = w.mul(inside, inside)
    total = w.number(1.0)
    for n in range(_ERF64_STEPS, 0, -1):
        total = w.fma(w.mul(square, w.number(2 / (2 * n + 1))), total, w.number(1.0))
    scale = w.mul(w.call("__nv_exp", "double", w.negate(square)), w.number(2 / math.pi**0.5))
    value = w.mul(w.mul(scale, inside), total)
    return w.intrinsic("copysign", value, x)


def _pow(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    """Return e^(y · log |x|), negative for a negative x and an odd y; the edges as in IEEE 754."""
    x, y = arguments
    zero, one = w.number(0.0), w.number(1.0)
    logarithm = w.call("__nv_log", "double", w.intrinsic("fabs", x))
    value = w.call("__nv_exp", "double", w.mul(y, logarithm))
    whole = w.compare("oeq", w.intrinsic("floor", y), y)
    half = w.mul(y, w.number(0.5))
    even = w.compare("oeq", w.intrinsic("floor", half), half)
    odd = w.both(whole, w.invert(even))
    negative = w.compare_integers("slt", w.cast("bitcast", x, "i64"), w.integer(0, "i64"))
    value = w.select(w.both(negative, odd), w.negate(value), value)
    undefined = w.both(w.compare("olt", x, zero), w.invert(whole))
    finite = w.compare("ogt", x, w.number(-INFINITY))
    value = w.select(w.both(undefined, finite), w.number(float("nan")), value)
    minus_one = w.compare("oeq", w.intrinsic("fabs", x), one)
    endless = w.compare("oeq", w.intrinsic("fabs", y), w.number(INFINITY))
    value = w.select(w.both(minus_one, endless), one, value)
    value = w.select(w.compare("oeq", y, zero), one, value)
    return w.select(w.compare("oeq", x, one), one, value)


def _scaled(body: Callable[[FunctionWriter, Value], Value]) -> Body:
    return lambda w, x: body(w, x[0])


def _scaled_log(w: FunctionWriter, x: Value, factor: float) -> Value:
    return w.mul(w.call("__nv_log", "double", x), w.number(factor))


def _exp2(w: FunctionWriter, x: Value) -> Value:
    """Return 2^n · e^(r · ln 2) with n and r the whole and the rest of x."""
    inside = w.clamp(x, -1080.0, 1030.0)
    inside = w.select(w.compare("uno", x, x), w.number(0.0), inside)
    exponent = w.intrinsic("rint", inside)
    rest = w.mul(w.sub(inside, exponent), w.number(coefficients.LN2))
    first = w.intrinsic("rint", w.mul(exponent, w.number(0.5)))
    second = w.sub(exponent, first)
    value = w.mul(w.call("__nv_exp", "double", rest), _power_of_two(w, first))
    return w.select(w.compare("uno", x, x), x, w.mul(value, _power_of_two(w, second)))


def _cbrt(w: FunctionWriter, x: Value) -> Value:
    """Return the cube root by the logarithm, and a step of Newton's."""
    size = w.intrinsic("fabs", x)
    root = w.call("__nv_exp", "double", w.mul(w.call("__nv_log", "double", size), w.number(1 / 3)))
    square = w.mul(root, root)
    step = w.div(w.fma(square, w.negate(root), size), w.mul(square, w.number(3.0)))
    better = w.add(root, step)
    value = w.select(w.compare("ord", better, better), better, root)
    return w.intrinsic("copysign", value, x)


DOUBLE: dict[str, tuple[int, Body]] = {
    "exp": (1, _exp),
    "exp2": (1, _scaled(_exp2)),
    "expm1": (1, _expm1),
    "log": (1, _log),
    "log2": (1, _scaled(lambda w, x: _scaled_log(w, x, 1 / coefficients.LN2))),
    "log10": (1, _scaled(lambda w, x: _scaled_log(w, x, 0.4342944819032518))),
    "log1p": (1, _log1p),
    "sin": (1, _scaled(lambda w, x: _sine_cosine(w, x, 0))),
    "cos": (1, _scaled(lambda w, x: _sine_cosine(w, x, 1))),
    "tan": (1, _tan),
    "atan": (1, _atan),
    "asin": (1, _asin),
    "acos": (1, _acos),
    "sinh": (1, _sinh),
    "cosh": (1, _cosh),
    "tanh": (1, _tanh),
    "asinh": (1, _asinh),
    "acosh": (1, _acosh),
    "atanh": (1, _atanh),
    "erf": (1, _erf),
    "cbrt": (1, _scaled(_cbrt)),
    "rsqrt": (1, _scaled(lambda w, x: w.div(w.number(1.0), w.intrinsic("sqrt", x)))),
    "pow": (2, _pow),
}
"""The functions by their names in `math.h`: the number of operands, and the writer of the body."""
