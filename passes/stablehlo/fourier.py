"""Fourier transforms: products with matrices of cosines and sines, of factors of long lengths."""

import math
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.size_limits import require_table
from braid.passes.stablehlo.complex_node import ComplexNode, Pair, is_complex, part_type

_LONGEST_PRODUCT = 64
"""Transforms of this length are one product; longer ones two, if they have factors."""

_Parts = tuple[SSAValue, SSAValue | None]
"""Real and imaginary part, which is None where it is 0."""


def fourier_transform(t: ComplexNode) -> SSAValue | Pair:
    """Transform the last dims one by one, in f64: what cancels is as small as in a fast transform.

    A real transform has half of a spectrum, the other half mirrors it.
    """
    kind, lengths = t.text("fft_type"), t.integers("fft_length")
    result = t.op.results[0]
    rank = len(shape_of(t.value(0)))
    if kind not in ("FFT", "IFFT", "RFFT", "IRFFT") or not 1 <= len(lengths) <= rank:
        t.fail(f"its type is '{kind}' and its lengths are {lengths}")
    if (kind == "RFFT") == is_complex(t.value(0)) or (kind == "IRFFT") == is_complex(result):
        t.fail(f"its type is {kind}, but it takes {t.value(0).type} to {result.type}")
    _require_lengths(t, kind, lengths)
    given = (t.value(0), None) if kind == "RFFT" else t.pair(0)
    parts = _doubles(t, given)
    dims = range(rank - len(lengths), rank)
    sign = 1 if kind.startswith("I") else -1
    # The real side of a transform is its first one, or its last one.
    order = list(zip(dims, lengths, strict=True))
    for dim, length in order if kind == "IRFFT" else reversed(order):
        if kind == "IRFFT" and dim == rank - 1:
            parts = _mirrored(t, parts, length)
        parts = _along(t, parts, dim, length, sign)
        if kind == "RFFT" and dim == rank - 1:
            parts = _each(parts, lambda part: t.slice_of(part, 0, lengths[-1] // 2 + 1))
    return _result(t, parts, math.prod(lengths) if sign == 1 else 1)


def _require_lengths(t: ComplexNode, kind: str, lengths: Sequence[int]) -> None:
    expected = list(lengths)
    if kind == "IRFFT":
        expected[-1] = lengths[-1] // 2 + 1
    actual = list(t.numbers(t.value(0)))[-len(lengths) :]
    if actual != expected or min(lengths) < 1:
        t.fail(f"its lengths are {lengths}, and the last extents {actual}, expected {expected}")


def _doubles(t: ComplexNode, parts: _Parts) -> _Parts:
    return _each(parts, lambda part: t.convert_to(part, f64))


def _each(parts: _Parts, change: Callable[[SSAValue], SSAValue]) -> _Parts:
    real, imaginary = parts
    return change(real), None if imaginary is None else change(imaginary)


def _result(t: ComplexNode, parts: _Parts, divisor: int) -> SSAValue | Pair:
    """Return the parts, or the real one alone, over a number and in the type of the result."""
    real, imaginary = parts
    result = t.op.results[0]
    element_type = part_type(result).element_type if is_complex(result) else element_type_of(result)

    def scaled(part: SSAValue) -> SSAValue:
        number = part if divisor == 1 else t.do("divide", part, t.full(divisor, part))
        return t.convert_to(number, element_type)

    if not is_complex(result):
        return scaled(real)
    return scaled(real), scaled(t.full(0, real) if imaginary is None else imaginary)


def _mirrored(t: ComplexNode, parts: _Parts, length: int) -> _Parts:
    """Return the whole spectrum of a real signal, of which `parts` are the half."""
    half = length // 2 + 1
    real, imaginary = parts
    count = length - half
    if count == 0 or imaginary is None:
        return parts
    others: list[SSAValue] = []
    for part in (real, imaginary):
        other = t.reversed_last(t.slice_of(part, 1, 1 + count))
        others.append(other)
    mirrored = (others[0], t.do("negate", others[1]))
    return (t.joined(real, mirrored[0]), t.joined(imaginary, mirrored[1]))


def _along(t: ComplexNode, parts: _Parts, dim: int, length: int, sign: int) -> _Parts:
    """Transform one dim, which is moved to the end and back."""
    rank = len(shape_of(parts[0]))
    order = [*(d for d in range(rank) if d != dim), dim]
    back = [order.index(d) for d in range(rank)]
    moved = _each(parts, lambda part: t.transpose_by(part, order))
    done = _transformed(t, moved, length, sign)
    return _each(done, lambda part: t.transpose_by(part, back))


def _transformed(t: ComplexNode, parts: _Parts, length: int, sign: int) -> _Parts:
    """Transform the last dim, by two shorter transforms if it is long and not prime.

    J. W. Cooley and J. W. Tukey, "An algorithm for the machine calculation of complex Fourier
    series", 1965: places are n1 · N2 + n2, frequencies k1 + N1 · k2.
    """
    first = _factor(length)
    if first == 1:
        return _product(t, parts, length, sign)
    second = length // first
    shape = shape_of(parts[0])
    outer, rank = shape[:-1], len(shape) + 1
    swap = [*range(rank - 2), rank - 1, rank - 2]
    rows = _each(parts, lambda part: t.reshape_to(part, [*outer, first, second]))
    rows = _each(rows, lambda part: t.transpose_by(part, swap))
    rows = _transformed(t, rows, first, sign)
    rows = _turned(t, rows, _angles(t, second, first, length, sign))
    rows = _each(rows, lambda part: t.transpose_by(part, swap))
    rows = _transformed(t, rows, second, sign)
    rows = _each(rows, lambda part: t.transpose_by(part, swap))
    return _each(rows, lambda part: t.reshape_to(part, shape))


def _factor(length: int) -> int:
    """Return the factor of a long length that is nearest to its root from below, else 1."""
    if length <= _LONGEST_PRODUCT:
        return 1
    return next(n for n in range(math.isqrt(length), 0, -1) if length % n == 0)


def _product(t: ComplexNode, parts: _Parts, length: int, sign: int) -> _Parts:
    """Transform the last dim by one matrix."""
    cosines, sines = _angles(t, length, length, length, sign)
    real, imaginary = parts
    a, b = t.times_matrix(real, cosines), t.times_matrix(real, sines)
    if imaginary is None:
        return a, b
    c, d = t.times_matrix(imaginary, sines), t.times_matrix(imaginary, cosines)
    return t.do("subtract", a, c), t.do("add", b, d)


def _turned(t: ComplexNode, parts: _Parts, factors: Pair) -> _Parts:
    """Multiply by complex numbers of size 1, repeated over all but the last two dims."""
    real, imaginary = parts
    cosines, sines = (t.repeated(factor, real) for factor in factors)
    a, b = t.do("multiply", real, cosines), t.do("multiply", real, sines)
    if imaginary is None:
        return a, b
    c, d = t.do("multiply", imaginary, sines), t.do("multiply", imaginary, cosines)
    return t.do("subtract", a, c), t.do("add", b, d)


def _angles(t: ComplexNode, rows: int, columns: int, length: int, sign: int) -> Pair:
    """Return cosines and sines of 2π · row · column / length, of a sign."""
    require_table(rows * columns, "cosines and sines")
    shape = [rows, columns]
    product = t.do("multiply", t.iota(0, shape), t.iota(1, shape))
    place = t.do("remainder", product, t.full(length, product))
    turn = t.convert_to(place, f64)
    angle = t.do("multiply", turn, t.full(2 * math.pi * sign / length, turn))
    return t.do("cosine", angle), t.do("sine", angle)
