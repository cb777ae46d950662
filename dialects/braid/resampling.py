"""Resampling along one dim: which elements, with which weights, make an output element. No IR.

Sources: ONNX operator `Resize` (opset 19) for names and coordinates; Keys, "Cubic convolution
interpolation for digital image processing", 1981, for the cubic filter.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Resampling:
    """The way a dim is resampled, with the names and defaults of ONNX `Resize`.

    `cubic_a` is the parameter of the cubic filter; `exclude_outside` gives elements outside the
    input no weight instead of repeating the edge; `antialias` widens the filter where the output
    is smaller. `extrapolation` is the value outside of the region, for `tf_crop_and_resize`.
    """

    mode: str = "nearest"
    coordinates: str = "half_pixel"
    nearest_mode: str = "round_prefer_floor"
    cubic_a: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    extrapolation: float = 0.0


@dataclass(frozen=True)
class Dim:
    """A dim to resample: extents, output elements per input element, and the region of the
    input to crop in units of its extent (for `tf_crop_and_resize`)."""

    input: int
    output: int
    scale: float
    region: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class Taps:
    """Output o is the sum over t of `weights[t, o]` · input[`indices[t, o]`].

    If all weights are 0, it is `offset[o]`.
    """

    indices: npt.NDArray[np.int64]
    weights: Floats
    offset: Floats

    def of(self, first: int, count: int, skipped: int) -> "Taps":
        """Return the taps of `count` outputs from `first` on.

        They are for an input without its first `skipped` elements.
        """
        wanted = slice(first, first + count)
        return Taps(self.indices[:, wanted] - skipped, self.weights[:, wanted], self.offset[wanted])

    @property
    def outside(self) -> npt.NDArray[np.bool_]:
        """Lists outputs to which no input contributes."""
        return (self.weights == 0).all(axis=0)


def _half_pixel(x: Floats, dim: Dim) -> Floats:
    return (x + 0.5) / dim.scale - 0.5


def _half_pixel_symmetric(x: Floats, dim: Dim) -> Floats:
    adjustment = dim.output / (dim.scale * dim.input)
    return dim.input / 2 * (1 - adjustment) + _half_pixel(x, dim)


def _pytorch_half_pixel(x: Floats, dim: Dim) -> Floats:
    return _half_pixel(x, dim) if dim.output > 1 else np.zeros_like(x)


def _align_corners(x: Floats, dim: Dim) -> Floats:
    """Return input coordinates such that the corners of input and output coincide.

    Where the scale leaves a remainder, the output's extent is taken before it is rounded down.
    """
    return x * (dim.input - 1) / (dim.scale * dim.input - 1) if dim.output > 1 else np.zeros_like(x)


def _asymmetric(x: Floats, dim: Dim) -> Floats:
    return x / dim.scale


def _tf_half_pixel_for_nn(x: Floats, dim: Dim) -> Floats:
    return (x + 0.5) / dim.scale


def _tf_crop_and_resize(x: Floats, dim: Dim) -> Floats:
    start, end = dim.region
    if dim.output == 1:
        return np.full_like(x, 0.5 * (start + end) * (dim.input - 1))
    return (start + x * (end - start) / (dim.output - 1)) * (dim.input - 1)


COORDINATES: dict[str, Callable[[Floats, Dim], Floats]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
    "tf_half_pixel_for_nn": _tf_half_pixel_for_nn,
    "tf_crop_and_resize": _tf_crop_and_resize,
}
"""From an output position to the position in the input."""

NEAREST: dict[str, Callable[[Floats], Floats]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}
"""From a position in the input to the nearest element."""

MODES = ("nearest", "linear", "cubic")
"""The filters."""


def resampling_taps(dim: Dim, how: Resampling) -> Taps:
    """Return the taps of one dim.

    Indices are in the input, and the weights of an output sum to 1.
    """
    position = COORDINATES[how.coordinates](np.arange(dim.output, dtype=np.float64), dim)
    if how.mode == "nearest":
        indices = NEAREST[how.nearest_mode](position).astype(np.int64)[None, :]
        weights = np.ones(indices.shape)
    else:
        indices, weights = _filter_taps(position, dim.scale, how)
        if how.exclude_outside:
            weights = np.where((indices >= 0) & (indices < dim.input), weights, 0)
            weights = weights / weights.sum(axis=0)
    offset = np.zeros(dim.output)
    if how.coordinates == "tf_crop_and_resize":
        outside = (position < 0) | (position > dim.input - 1)
        weights = np.where(outside, 0, weights)
        offset = np.where(outside, how.extrapolation, 0)
    return Taps(np.clip(indices, 0, dim.input - 1), weights, offset)


def filter_steps(scale: float, how: Resampling) -> range:
    """Return offsets of the elements that a filter reads, from the one at or before a position."""
    if how.mode == "nearest":
        return range(1)
    radius = 1 if how.mode == "linear" else 2
    shrink = min(scale, 1.0) if how.antialias else 1.0
    first = int(np.floor(-radius / shrink)) + 1
    return range(first, 2 - first)


def _filter_taps(
    position: Floats, scale: float, how: Resampling
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return indices (also outside of the input) and weights of a linear or cubic filter."""
    radius = 1 if how.mode == "linear" else 2
    shrink = min(scale, 1.0) if how.antialias else 1.0
    base = np.floor(position)
    steps = np.array(filter_steps(scale, how), np.float64)[:, None]
    distance = np.abs(steps - (position - base)) * shrink
    weights = np.clip(1 - distance, 0, None) if radius == 1 else _cubic(distance, how.cubic_a)
    return (base + steps).astype(np.int64), weights / weights.sum(axis=0)


def _cubic(distance: Floats, a: float) -> Floats:
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = a * (((distance - 5) * distance + 8) * distance - 4)
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))
