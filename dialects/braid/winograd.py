"""Winograd's minimal filtering: the matrices, and windows in the form that is multiplied. No IR.

For m × m results of a 3 × 3 window, a tile of (m + 2)² inputs is multiplied element by element
with the transformed window: Y = Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A, which takes (m + 2)² products
instead of 9 m². Source: A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural
Networks", CVPR 2016; S. Winograd, "Arithmetic Complexity of Computations", 1980.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

WINDOW = 3
"""Elements of a window along each dim."""

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Transforms:
    """`of_window` is G [tile, 3], `of_input` Bᵀ [tile, tile], `of_output` Aᵀ [results, tile].

    The columns of Aᵀ, and the rows of Bᵀ, from 1 on come in pairs, one for each of the points
    p and -p at which polynomials are evaluated: they differ in the signs of every other entry.
    """

    of_window: Matrix
    of_input: Matrix
    of_output: Matrix

    @property
    def tile(self) -> int:
        """Inputs along a dim."""
        return len(self.of_input)

    @staticmethod
    def at(*points: Fraction) -> "Transforms":
        """Return the algorithm by A. L. Toom and S. Cook for these points and infinity.

        The algorithm is the transpose of multiplying polynomials by evaluation: values of the
        window and of the results are multiplied, and inputs are the coefficients of Lagrange's
        polynomials.
        """
        results = len(points) + 2 - WINDOW
        others = [[q for q in points if q != p] for p in points]
        scales = [
            math.prod((p - q for q in rest), start=Fraction(1))
            for p, rest in zip(points, others, strict=True)
        ]
        of_window = [
            [p**k / scale for k in range(WINDOW)] for p, scale in zip(points, scales, strict=True)
        ]
        of_input = [[*_with_roots(rest), Fraction(0)] for rest in others]
        return Transforms(
            _floats([*of_window, _last(WINDOW)]),
            _floats([*of_input, _with_roots(points)]),
            _floats([*(p**k for p in points), Fraction(k == results - 1)] for k in range(results)),
        )


def _with_roots(roots: Iterable[Fraction]) -> list[Fraction]:
    """Return the coefficients of Π (x - root), of x⁰ first."""
    product = [Fraction(1)]
    for root in roots:
        shifted, scaled = [Fraction(0), *product], [*(-root * c for c in product), Fraction(0)]
        product = [a + b for a, b in zip(shifted, scaled, strict=True)]
    return product


def _last(count: int) -> list[Fraction]:
    return [Fraction(place == count - 1) for place in range(count)]


def _floats(rows: Iterable[Iterable[Fraction]]) -> Matrix:
    return tuple(tuple(map(float, row)) for row in rows)


TRANSFORMS = {
    2: Transforms.at(*map(Fraction, (0, 1, -1))),
    4: Transforms.at(*(Fraction(n, 4) for n in (0, 3, -3, 6, -6))),
}
"""By the number of results along a dim.

The points of the second are 0, ±3/4 and ±3/2, the best of a dozen pairs on random numbers: f32
errors are a quarter of those with the usual 0, ±1 and ±2, since factors have more equal magnitudes.
All entries of Aᵀ and Bᵀ are exact in f32.
"""


def transformed_windows(windows: npt.NDArray[Any], results: int) -> npt.NDArray[Any]:
    """Return G g Gᵀ of every window `[3, 3, …]`, for `results` along each dim: `[tile, tile, …]`.

    Computed in f64, not rounded.
    """
    tile = TRANSFORMS[results].tile
    # One product: as many small ones as there are windows take four times as long.
    rows = windows.astype(np.float64, order="C").reshape(WINDOW * WINDOW, -1)
    return (window_transform(results) @ rows).reshape(tile, tile, *windows.shape[2:])


@cache
def window_transform(results: int) -> npt.NDArray[np.float64]:
    """Return G ⊗ G, `[tile², 9]`, which transforms windows that are columns."""
    matrix = np.array(TRANSFORMS[results].of_window, np.float64)
    return np.kron(matrix, matrix).astype(np.float64)


def is_pair(first: Sequence[float], second: Sequence[float]) -> bool:
    """Return whether two rows differ in the signs of every other entry."""
    return all(
        a == (b if place % 2 == 0 else -b)
        for place, (a, b) in enumerate(zip(first, second, strict=True))
    )
