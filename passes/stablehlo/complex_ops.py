"""Ops of StableHLO on complex numbers, by what they do to real and imaginary parts."""

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import to_numpy
from braid.passes.stablehlo.complex_node import ComplexNode, Pair, is_complex, part_type
from braid.passes.stablehlo.fourier import fourier_transform

Part = SSAValue | Pair
"""The replacement of a result: a real one stays one value."""

_BY_PARTS = """
add broadcast broadcast_in_dim concatenate dynamic_broadcast_in_dim dynamic_gather dynamic_pad
dynamic_reshape dynamic_slice dynamic_update_slice gather negate optimization_barrier pad
real_dynamic_slice reshape reverse select slice subtract transpose
""".split()  # noqa: SIM905  twenty lines as a list
"""Ops that act on both parts as on numbers."""

_WITH_TWO_VALUES = frozenset(
    {"case", "if", "reduce", "reduce_window", "return", "scatter", "while"}
)
"""Ops whose operands, results and arguments of regions become two."""


def split_op(t: ComplexNode) -> Sequence[Part]:
    """Replace an op, whose regions are split, by ops on parts; return the replacements of its
    results.

    Raises UnsupportedError for an op that has no such form.
    """
    name = t.op.short_name()
    if name in _BY_PARTS:
        return _by_parts(t)
    if name in _WITH_TWO_VALUES:
        return _with_two_values(t)
    function = _FUNCTIONS.get(name)
    if function is None:
        t.unsupported(
            "it is applied to complex numbers",
            hint="compute with real and imaginary parts as tensors of their own",
        )
    return [function(t)]


def _by_parts(t: ComplexNode) -> Sequence[Part]:
    types = [part_type(result) if is_complex(result) else result.type for result in t.op.results]
    real, imaginary = (
        t.make(t.op.name, t.one_part(number), types, t.fields()) for number in (0, 1)
    )
    results = zip(t.op.results, real, imaginary, strict=True)
    return [(a, b) if is_complex(result) else a for result, a, b in results]


def _with_two_values(t: ComplexNode) -> Sequence[Part]:
    counts = [2 if is_complex(result) else 1 for result in t.op.results]
    types = [
        part_type(result) if count == 2 else result.type
        for result, count in zip(t.op.results, counts, strict=True)
        for _ in range(count)
    ]
    regions = [t.op.detach_region(region) for region in list(t.op.regions)]
    results = iter(t.make(t.op.name, t.expanded(), types, t.fields(), regions))
    return [(next(results), next(results)) if count == 2 else next(results) for count in counts]


def _complex(t: ComplexNode) -> Part:
    return (t.value(0), t.value(1))


def _constant(t: ComplexNode) -> Part:
    value = t.op.field("value")
    if not isinstance(value, DenseIntOrFPElementsAttr):
        t.fail("expected a tensor 'value'")
    type = part_type(t.op.results[0])
    dtype = to_numpy(type.element_type)
    parts = np.frombuffer(value.data.data, dtype).reshape(-1, 2)
    if len(parts) == 1:
        parts = np.broadcast_to(parts, (int(np.prod(type.get_shape())), 2))
    shaped = parts.reshape([*type.get_shape(), 2])
    return (t.constant_of(shaped[..., 0].copy()), t.constant_of(shaped[..., 1].copy()))


def _convert(t: ComplexNode) -> Part:
    result = t.op.results[0]
    if not is_complex(result):
        return t.convert_to(t.pair(0)[0], element_type_of(result))
    element_type = part_type(result).element_type
    if is_complex(t.value(0)):
        real, imaginary = t.pair(0)
        return (t.convert_to(real, element_type), t.convert_to(imaginary, element_type))
    real = t.convert_to(t.value(0), element_type)
    return (real, t.full(0, real))


def _iota(t: ComplexNode) -> Part:
    (real,) = t.make(t.op.name, [], [part_type(t.op.results[0])], t.fields())
    return (real, t.full(0, real))


def _conjugate(t: ComplexNode) -> Part:
    real, imaginary = t.pair(0)
    return (real, t.do("negate", imaginary))


def _compare(t: ComplexNode) -> Part:
    (a, b), (c, d) = t.pair(0), t.pair(1)
    direction = t.text("comparison_direction")
    if direction not in ("EQ", "NE"):
        t.fail(f"complex numbers are compared by {direction}, expected EQ or NE")
    parts = t.compare(direction, a, c), t.compare(direction, b, d)
    return t.do("and" if direction == "EQ" else "or", *parts)


def _is_finite(t: ComplexNode) -> Part:
    return t.do("and", *(t.make(t.op.name, [p], [t.op.results[0].type])[0] for p in t.pair(0)))


def _bilinear(t: ComplexNode) -> Part:
    """Multiply by an op on real numbers, such as a product or a convolution."""
    (a, b), (c, d) = t.pair(0), t.pair(1)
    type = part_type(t.op.results[0])

    def product(left: SSAValue, right: SSAValue) -> SSAValue:
        return t.make(t.op.name, [left, right], [type], t.fields())[0]

    real = t.do("subtract", product(a, c), product(b, d))
    return (real, t.do("add", product(a, d), product(b, c)))


def _divide(t: ComplexNode) -> Part:
    return _quotient(t, t.pair(0), t.pair(1))


def _quotient(t: ComplexNode, dividend: Pair, divided_by: Pair) -> Pair:
    """Divide by the larger part of the divisor first (R. L. Smith, "Algorithm 116", 1962)."""
    (a, b), (c, d) = dividend, divided_by
    is_real = t.compare("GE", t.do("abs", c), t.do("abs", d))
    large, small = t.do("select", is_real, c, d), t.do("select", is_real, d, c)
    first, second = t.do("select", is_real, a, b), t.do("select", is_real, b, a)
    ratio = t.do("divide", small, large)
    divisor = t.do("add", large, t.do("multiply", small, ratio))
    real = t.do("add", first, t.do("multiply", second, ratio))
    cross = t.do("subtract", second, t.do("multiply", first, ratio))
    imaginary = t.do("select", is_real, cross, t.do("negate", cross))
    return (t.do("divide", real, divisor), t.do("divide", imaginary, divisor))


def _absolute(t: ComplexNode) -> Part:
    return _size(t, t.pair(0))


def _size(t: ComplexNode, number: Pair) -> SSAValue:
    """Return the absolute value, without overflow or underflow of squares."""
    a, b = (t.do("abs", part) for part in number)
    large, small = t.do("maximum", a, b), t.do("minimum", a, b)
    zero = t.full(0, large)
    ratio = t.do("divide", small, large)
    root = t.do("sqrt", t.do("add", t.full(1, ratio), t.do("multiply", ratio, ratio)))
    # The ratio of 0 and 0, or of infinities, is NaN.
    is_large = t.compare("EQ", large, t.full(float("inf"), large))
    is_plain = t.do("or", t.compare("EQ", large, zero), is_large)
    return t.do("select", is_plain, large, t.do("multiply", large, root))


def _sign(t: ComplexNode) -> Part:
    real, imaginary = t.pair(0)
    size = _size(t, (real, imaginary))
    is_zero = t.compare("EQ", size, t.full(0, size))
    divisor = t.do("select", is_zero, t.full(1, size), size)
    return (t.do("divide", real, divisor), t.do("divide", imaginary, divisor))


def _exponential(t: ComplexNode) -> Part:
    return _exp(t, t.pair(0))


def _exp(t: ComplexNode, number: Pair) -> Pair:
    size = t.do("exponential", number[0])
    real = t.do("multiply", size, t.do("cosine", number[1]))
    return (real, t.do("multiply", size, t.do("sine", number[1])))


def _logarithm(t: ComplexNode) -> Part:
    return _log(t, t.pair(0))


def _log(t: ComplexNode, number: Pair) -> Pair:
    return (t.do("log", _size(t, number)), t.do("atan2", number[1], number[0]))


def _power(t: ComplexNode) -> Part:
    """Return `exp(b · log a)`; 0 to the power of anything but 0 is 0."""
    base, (c, d) = t.pair(0), t.pair(1)
    e, f = _log(t, base)
    real = t.do("subtract", t.do("multiply", c, e), t.do("multiply", d, f))
    imaginary = t.do("add", t.do("multiply", c, f), t.do("multiply", d, e))
    found = _exp(t, (real, imaginary))
    zero, one = t.full(0, e), t.full(1, e)
    is_zero = t.compare("EQ", _size(t, base), zero)
    is_one = t.compare("EQ", _size(t, (c, d)), zero)
    of_zero = t.do("select", is_one, one, zero)
    return (
        t.do("select", is_zero, of_zero, found[0]),
        t.do("select", is_zero, zero, found[1]),
    )


def _cube_root(t: ComplexNode) -> Part:
    """Return the root whose angle is a third; that of 0 is 0."""
    real, imaginary = _log(t, t.pair(0))
    third = t.full(1 / 3, real)
    return _exp(t, (t.do("multiply", real, third), t.do("multiply", imaginary, third)))


def _angle(t: ComplexNode) -> Part:
    """Return `-i · log((x + i y) / sqrt(x² + y²))` for operands y and x."""
    (a, b), (c, d) = t.pair(0), t.pair(1)
    left = t.do("add", _square(t, c, d), _square(t, a, b))
    products = t.do("add", t.do("multiply", a, b), t.do("multiply", c, d))
    size = _root(t, (left, t.do("multiply", t.full(2, left), products)))
    turned = (t.do("subtract", c, b), t.do("add", d, a))
    real, imaginary = _log(t, _quotient(t, turned, size))
    return (imaginary, t.do("negate", real))


def _square(t: ComplexNode, real: SSAValue, imaginary: SSAValue) -> SSAValue:
    """Return the real part of the square."""
    return t.do("multiply", t.do("subtract", real, imaginary), t.do("add", real, imaginary))


def _larger(t: ComplexNode) -> Part:
    return _first_of(t, "GT")


def _smaller(t: ComplexNode) -> Part:
    return _first_of(t, "LT")


def _first_of(t: ComplexNode, direction: str) -> Pair:
    """Return the operand whose real part, or imaginary part if those are equal, is further in this
    direction.
    """
    (a, b), (c, d) = t.pair(0), t.pair(1)
    by_imaginary = t.do("and", t.compare("EQ", a, c), t.compare(direction, b, d))
    is_first = t.do("or", t.compare(direction, a, c), by_imaginary)
    return (t.do("select", is_first, a, c), t.do("select", is_first, b, d))


def _square_root(t: ComplexNode) -> Part:
    return _root(t, t.pair(0))


def _root(t: ComplexNode, number: Pair) -> Pair:
    """Return the root whose real part is not negative; its larger part is computed first."""
    a, b = number
    half = t.full(0.5, a)
    sum = t.do(
        "add", t.do("multiply", _size(t, (a, b)), half), t.do("multiply", t.do("abs", a), half)
    )
    large = t.do("sqrt", sum)
    zero = t.full(0, a)
    other = t.do("divide", t.do("multiply", t.do("abs", b), half), large)
    small = t.do("select", t.compare("EQ", large, zero), zero, other)
    is_right = t.compare("GE", a, zero)
    size = t.do("select", is_right, small, large)
    is_below = t.compare("LT", b, zero)
    imaginary = t.do("select", is_below, t.do("negate", size), size)
    return (t.do("select", is_right, large, small), imaginary)


def _cosine(t: ComplexNode) -> Part:
    a, b = t.pair(0)
    real = t.do("multiply", t.do("cosine", a), t.do("cosh", b))
    return (real, t.do("negate", t.do("multiply", t.do("sine", a), t.do("sinh", b))))


def _sine(t: ComplexNode) -> Part:
    a, b = t.pair(0)
    real = t.do("multiply", t.do("sine", a), t.do("cosh", b))
    return (real, t.do("multiply", t.do("cosine", a), t.do("sinh", b)))


def _one_less(t: ComplexNode) -> Part:
    """Return `exp(z) - 1`, whose real part is not lost next to 1."""
    a, b = t.pair(0)
    half = t.do("sine", t.do("multiply", b, t.full(0.5, b)))
    turned = t.do("multiply", t.full(2, b), t.do("multiply", half, half))
    grown = t.do("multiply", t.do("exponential_minus_one", a), t.do("cosine", b))
    imaginary = t.do("multiply", t.do("exponential", a), t.do("sine", b))
    return (t.do("subtract", grown, turned), imaginary)


def _tangent_hyperbolic(t: ComplexNode) -> Part:
    """Return `(tanh a + i tan b) / (1 + i tanh a tan b)`."""
    a, b = t.do("tanh", t.pair(0)[0]), t.do("tan", t.pair(0)[1])
    return _quotient(t, (a, b), (t.full(1, a), t.do("multiply", a, b)))


def _reciprocal_root(t: ComplexNode) -> Part:
    one = t.full(1, t.pair(0)[0])
    return _quotient(t, (one, t.full(0, one)), _root(t, t.pair(0)))


def _logistic(t: ComplexNode) -> Part:
    a, b = t.pair(0)
    c, d = _exp(t, (t.do("negate", a), t.do("negate", b)))
    one = t.full(1, a)
    return _quotient(t, (one, t.full(0, one)), (t.do("add", one, c), d))


_FUNCTIONS: dict[str, Callable[[ComplexNode], Part]] = {
    "abs": _absolute,
    "atan2": _angle,
    "cbrt": _cube_root,
    "compare": _compare,
    "complex": _complex,
    "conj": _conjugate,
    "constant": _constant,
    "convert": _convert,
    "convolution": _bilinear,
    "cosine": _cosine,
    "divide": _divide,
    "dot": _bilinear,
    "dot_general": _bilinear,
    "exponential": _exponential,
    "exponential_minus_one": _one_less,
    "fft": fourier_transform,
    "imag": lambda t: t.pair(0)[1],
    "iota": _iota,
    "is_finite": _is_finite,
    "log": _logarithm,
    "logistic": _logistic,
    "maximum": _larger,
    "minimum": _smaller,
    "multiply": _bilinear,
    "power": _power,
    "rsqrt": _reciprocal_root,
    "real": lambda t: t.pair(0)[0],
    "sign": _sign,
    "sine": _sine,
    "sqrt": _square_root,
    "tanh": _tangent_hyperbolic,
}
"""Ops of which the parts of the result depend on both parts of the operands."""
