"""The results of the oversize suite by numpy, in pieces that need little memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_PIECE = 256
"""Rows of a piece."""


def _by_rows(x: Array, compute: Callable[[Array], Array]) -> Array:
    """`compute` on pieces of the rows of `x`, joined."""
    pieces = [compute(x[start : start + _PIECE]) for start in range(0, len(x), _PIECE)]
    return np.concatenate(pieces)


def attention(q: Array, k: Array, v: Array) -> Array:
    """softmax(q kᵀ / √depth) v, per head."""
    scale = q.shape[-1] ** -0.5

    def head(number: int) -> Array:
        def rows(part: Array) -> Array:
            scores = part @ k[0, number].T * scale
            powers = np.exp(scores - scores.max(axis=1, keepdims=True))
            return powers @ v[0, number] / powers.sum(axis=1, keepdims=True)

        return _by_rows(q[0, number], rows)

    return np.stack([head(number) for number in range(q.shape[1])])[None]


def distances(a: Array, b: Array) -> Array:
    """The least squared distance from every row of `a` to a row of `b`."""
    norms = np.square(b).sum(axis=1)

    def rows(part: Array) -> Array:
        all_distances = np.square(part).sum(axis=1, keepdims=True) + norms - 2 * part @ b.T
        return all_distances.min(axis=1, keepdims=True)

    return _by_rows(a, rows)


def one_hot(ids: Array, table: Array) -> Array:
    """The rows of the table."""
    return table[ids]


def differences(x: Array, c: Array) -> Array:
    """Squared distances from every row of `x` to every row of `c`."""
    return _by_rows(x, lambda part: np.square(part[:, None] - c[None]).sum(axis=2))


def cross_entropy(x: Array, w: Array, labels: Array) -> Array:
    """The negative log-probability of every row's label."""
    both = np.concatenate([x, labels.astype(np.float64)], axis=1)

    def rows(part: Array) -> Array:
        logits = part[:, :-1].astype(np.float32) @ w
        high = logits.max(axis=1, keepdims=True)
        total = np.log(np.exp(logits - high).sum(axis=1, keepdims=True)) + high
        return total - np.take_along_axis(logits, part[:, -1:].astype(np.int64), axis=1)

    return _by_rows(both, rows)


def upsampling(x: Array, w: Array) -> Array:
    """A 3×3×3 convolution with stride 2 of the voxels doubled along every dim, plane by plane.

    At output z, the planes that the window covers are those of the inputs z - 1 (below, at the
    border padding) and twice z.
    """
    size = x.shape[2]
    padded = np.pad(x[0], ((0, 0), (1, 0), (1, 0), (1, 0)))
    places = [0, 1, 1]  # Of a window's three elements: the voxel before, the voxel itself, twice.
    planes: list[Array] = []
    for z in range(size):
        plane = np.zeros((w.shape[0], size, size), np.float32)
        for index in np.ndindex(3, 3, 3):
            dz, dy, dx = (places[i] for i in index)
            part = padded[:, z + dz, dy : dy + size, dx : dx + size]
            plane += np.tensordot(w[:, :, *index], part, axes=(1, 0))
        planes.append(plane)
    return np.stack(planes, axis=1)[None]


def unfold(x: Array, w: Array) -> Array:
    """A 3×3 convolution, row by row."""
    extent, channels = x.shape[1] - 2, x.shape[3]
    filters = w.reshape(3, 3, channels, -1)
    rows: list[Array] = []
    for row in range(extent):
        total = np.zeros((extent, w.shape[1]), np.float32)
        for i, j in np.ndindex(3, 3):
            total += x[0, row + i, j : j + extent] @ filters[i, j]
        rows.append(total)
    return np.concatenate(rows)
