"""Weights that are stored smaller than kernels read them, and expanded when a model is loaded."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from braid.dialects.braid.layout import Layout
from braid.dialects.braid.relayout import window_places
from braid.dialects.braid.winograd import window_transform

LEAST_BYTES = 4096
"""Tensors that take less are not worth an entry of their own."""


@dataclass(frozen=True)
class Expansion:
    """A linear map along the middle dim of a tensor.

    From `[outer, inputs, inner]` it makes f32 `[outer, outputs, inner]`. `matrix` is the map,
    `[outputs, inputs]`, in f64; sums are made in f64 and rounded once. `stored` is the element type
    of its operand, `layout` the operand's layout.
    """

    stored: np.dtype[Any]
    layout: Layout
    outer: int
    inner: int
    matrix: NDArray[np.float64]

    @property
    def inputs(self) -> int:
        """Return how many elements a vector has as it is stored."""
        return self.matrix.shape[1]

    @property
    def outputs(self) -> int:
        """Return how many elements a vector has as it is read."""
        return self.matrix.shape[0]

    @property
    def stored_bytes(self) -> int:
        """Return the bytes of the tensor as it is stored."""
        return self.outer * self.inputs * self.inner * self.stored.itemsize


def expansion_of(shape: Sequence[int], layout: Layout, stored: np.dtype[Any]) -> Expansion | None:
    """Return how a weight of f32 is expanded whose values `stored` holds; None if not at all.

    These are Winograd's transformed windows, which take 16 or 36 elements instead of 9 and are
    stored untransformed, and 16-bit numbers.
    """
    plain = layout.untransformed
    if layout.pairs or math.prod(shape) * np.dtype(np.float32).itemsize < LEAST_BYTES:
        return None
    extents = plain.storage_shape(shape)
    if layout.winograd:
        rows, columns = window_places(layout)
        if columns == rows + 1:
            outer, inner = math.prod(extents[:rows]), math.prod(extents[columns + 1 :])
            return Expansion(stored, plain, outer, inner, window_transform(layout.winograd))
    elif stored.itemsize < np.dtype(np.float32).itemsize:
        return Expansion(stored, plain, 1, math.prod(extents), np.ones((1, 1)))
    return None
