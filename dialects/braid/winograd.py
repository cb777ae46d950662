"""Winograd's minimal filtering: the matrices, and windows in the form that is multiplied. No IR.

For m × m results of a 3 × 3 window, a tile of (m + 2)² inputs is multiplied element by element
with the transformed window: Y = Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A, which takes (m + 2)² products
instead of 9 m². Source: A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural
Networks", CVPR 2016; S. Winograd, "Arithmetic Complexity of Computations", 1980.
"""

from collections.abc import Sequence
from dataclasses import dataclass
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


TRANSFORMS = {
    2: Transforms(
        ((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1)),
        ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, -1, 0, 1)),
        ((1, 1, 1, 0), (0, 1, -1, 1)),
    ),
    4: Transforms(
        (
            (1 / 4, 0, 0),
            (-1 / 6, -1 / 6, -1 / 6),
            (-1 / 6, 1 / 6, -1 / 6),
            (1 / 24, 1 / 12, 1 / 6),
            (1 / 24, -1 / 12, 1 / 6),
            (0, 0, 1),
        ),
        (
            (4, 0, -5, 0, 1, 0),
            (0, -4, -4, 1, 1, 0),
            (0, 4, -4, -1, 1, 0),
            (0, -2, -1, 2, 1, 0),
            (0, 2, -1, -2, 1, 0),
            (0, 4, 0, -5, 0, 1),
        ),
        (
            (1, 1, 1, 1, 1, 0),
            (0, 1, -1, 2, -2, 0),
            (0, 1, 1, 4, 4, 0),
            (0, 1, -1, 8, -8, 1),
        ),
    ),
}
"""By the number of results along a dim; the points are 0, ±1, ±2 and infinity."""


def transformed_windows(windows: npt.NDArray[Any], results: int) -> npt.NDArray[Any]:
    """G g Gᵀ of every window `[…, 3, 3]`, for `results` along each dim: `[…, tile, tile]`.

    Computed in f64 and rounded once.
    """
    matrix = np.array(TRANSFORMS[results].of_window, np.float64)
    return (matrix @ windows.astype(np.float64) @ matrix.T).astype(windows.dtype)


def is_pair(first: Sequence[float], second: Sequence[float]) -> bool:
    """Whether two rows differ in the signs of every other entry."""
    return all(
        a == (b if place % 2 == 0 else -b)
        for place, (a, b) in enumerate(zip(first, second, strict=True))
    )
