"""Elementary functions of f32 in LLVM IR: see `device_math`."""

from collections.abc import Callable, Sequence

from braid.lowering.common import elementary_coefficients as coefficients
from braid.lowering.gpu.codegen.ir_writer import (
    INFINITY,
    Bits,
    FunctionWriter,
    Value,
    log_edges,
    split,
)

_EXP_HIGHEST = 88.72283905


def exp32(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    """2^n times a polynomial in the rest, |rest| ≤ ln 2 / 2; results below 2^-126 are 0."""
    (x,) = arguments
    low, high = w.number(coefficients.EXP_LOWEST), w.number(_EXP_HIGHEST)
    inside = w.clamp(x, coefficients.EXP_LOWEST, _EXP_HIGHEST)
    exponent = w.intrinsic("rint", w.mul(inside, w.number(coefficients.LOG2_E)))
    rest = w.fma(exponent, w.number(-coefficients.LN2_HIGH), inside)
    rest = w.fma(exponent, w.number(-coefficients.LN2_LOW), rest)
    series = w.fma(w.polynomial(coefficients.EXP, rest), w.mul(rest, rest), rest)
    # 2^(n - 1), since n may be 128.
    bits = w.binary("add", w.cast("fptosi", exponent, "i32"), w.integer(126, "i32"))
    power = w.cast("bitcast", w.binary("shl", bits, w.integer(23, "i32")), "float")
    value = w.mul(w.mul(w.add(series, w.number(1.0)), w.number(2.0)), power)
    value = w.select(w.compare("ogt", x, high), w.number(INFINITY), value)
    value = w.select(w.compare("olt", x, low), w.number(0.0), value)
    return w.select(w.compare("uno", x, x), x, value)


def log32(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    """Exponent · ln 2 + a polynomial in mantissa - 1."""
    (x,) = arguments
    mantissa, exponent = split(w, x, Bits("i32", 23, 127))
    rest = w.sub(mantissa, w.number(1.0))
    square = w.mul(rest, rest)
    cubic = w.mul(w.mul(w.polynomial(coefficients.LOG, rest), square), rest)
    cubic = w.fma(exponent, w.number(coefficients.LN2_LOW), cubic)
    cubic = w.fma(square, w.number(-0.5), cubic)
    value = w.fma(exponent, w.number(coefficients.LN2_HIGH), w.add(rest, cubic))
    return log_edges(w, x, value)


def tanh32(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    """Odd polynomial near 0, and 1 - 2 / (exp(2|x|) + 1) with the sign of x elsewhere."""
    (x,) = arguments
    square = w.mul(x, x)
    near = w.fma(w.mul(w.polynomial(coefficients.TANH, square), square), x, x)
    size = w.intrinsic("fabs", x)
    power = w.call("__nv_expf", "float", w.add(size, size))
    quotient = w.div(w.number(2.0), w.add(power, w.number(1.0)))
    far = w.intrinsic("copysign", w.sub(w.number(1.0), quotient), x)
    return w.select(w.compare("olt", size, w.number(coefficients.TANH_POLYNOMIAL_BELOW)), near, far)


def erf32(w: FunctionWriter, arguments: Sequence[Value]) -> Value:
    """Odd rational function on [-4, 4]; outside of it erf is ±1 in f32."""
    (x,) = arguments
    inside = w.clamp(x, -coefficients.ERF_IS_ONE_FROM, coefficients.ERF_IS_ONE_FROM)
    square = w.mul(inside, inside)
    numerator = w.mul(inside, w.polynomial(coefficients.ERF_NUMERATOR, square))
    return w.div(numerator, w.polynomial(coefficients.ERF_DENOMINATOR, square))


SINGLE: dict[str, Callable[[FunctionWriter, Sequence[Value]], Value]] = {
    "exp": exp32,
    "log": log32,
    "tanh": tanh32,
    "erf": erf32,
}
"""By their names in `math.h`; others are computed in f64 and rounded."""
