"""Transforms of few points that stay in registers, as straight-line code.

The code of a length is generated from its factors, as in M. Frigo, "A fast Fourier transform
compiler" (1999): a · b points are b transforms of a points, multiplications by roots of unity, and
a transforms of b points. Primes use that roots come in conjugate pairs, so that sums and
differences of the points at j and p - j halve the multiplications (R. Singleton, "An algorithm for
computing the mixed radix fast Fourier transform", 1969).
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from braid.dialects.braid.fourier_tables import roots_of_unity
from braid.lowering.cpu.kernels.fourier.complex_numbers import Arithmetic, Complex


def transformed(ops: Arithmetic, points: Sequence[Complex]) -> list[Complex]:
    """Return the transform of the points: Σ x[j] · exp(-2πi j k / count) for each k."""
    count = len(points)
    if count == 1:
        return list(points)
    if count == 2:
        return [ops.add(*points), ops.subtract(*points)]
    inner = _inner_factor(count)
    if inner == 1:
        return _of_prime(ops, points)
    outer = count // inner
    roots = _roots(count)
    columns: list[list[Complex]] = []
    for p in range(outer):
        column = transformed(ops, points[p::outer])
        columns.append([ops.turned(x, roots[p * k % count]) for k, x in enumerate(column)])
    result: list[Complex] = [points[0]] * count
    for k in range(inner):
        result[k::inner] = transformed(ops, [column[k] for column in columns])
    return result


def operations(count: int) -> float:
    """Return the vector instructions of arithmetic that a transform of `count` points takes."""
    if count <= 2:
        return 4.0 * (count - 1)
    inner = _inner_factor(count)
    if inner == 1:
        half = count // 2
        return 4 * half + 2 * half + 4 * half * half + 4 * half
    outer = count // inner
    turns = sum(4 * p * k % count != 0 for p in range(outer) for k in range(inner))
    return outer * operations(inner) + inner * operations(outer) + 4 * turns


def _inner_factor(count: int) -> int:
    """Return the largest divisor that is not above the square root."""
    return max(d for d in range(1, math.isqrt(count) + 1) if count % d == 0)


@cache
def _roots(count: int) -> list[complex]:
    return [complex(root) for root in roots_of_unity(np.arange(count), count)]


def _of_prime(ops: Arithmetic, points: Sequence[Complex]) -> list[Complex]:
    """Return the transform of an odd prime number of points."""
    count, half, roots = len(points), len(points) // 2, _roots(len(points))
    pairs = [(points[j], points[count - j]) for j in range(1, half + 1)]
    sums = [ops.add(a, b) for a, b in pairs]
    differences = [ops.rotated(ops.subtract(a, b)) for a, b in pairs]
    first = points[0]
    for each in sums:
        first = ops.add(first, each)
    result = [first] * count
    for k in range(1, half + 1):
        even, odd = points[0], Complex(None, None)
        for j, (a, b) in enumerate(zip(sums, differences, strict=True), 1):
            root = roots[j * k % count]
            even = ops.plus_scaled(even, a, root.real)
            odd = ops.plus_scaled(odd, b, -root.imag)
        result[k], result[count - k] = ops.add(even, odd), ops.subtract(even, odd)
    return result
