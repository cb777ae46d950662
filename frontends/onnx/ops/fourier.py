"""`DFT` and `STFT`, and the filters that spectra are multiplied with."""

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.fourier import FftOp
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_evaluation import fixed, fixed_shape
from braid.dialects.braid.size_limits import require_table
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    cast,
    normalized,
    pad,
    reshape,
    slice_dim,
    widened,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer


@importer("DFT")
def fourier(b: Builder, node: Node) -> SSAValue:
    """Import `DFT`, whose axis is an attribute before opset 20.

    The last dim is 1 (real) or 2 (complex). A real result (`onesided` and `inverse`) is made from
    half of a spectrum.
    """
    x, inverse = node.input(0), bool(node.integer("inverse", 0))
    onesided = bool(node.integer("onesided", 0))
    rank = len(extents_of(x))
    given = node.known_integer(2) if node.opset >= 20 else node.integer("axis", 1)
    axis = normalized(-2 if given is None else given, rank)
    parts = fixed(extents_of(x)[-1], "the last dim") if rank else 0
    if rank < 3 or axis == rank - 1 or parts not in (1, 2):
        node.fail(
            f"the input has shape {list(extents_of(x))}, expected [N, …, 1 or 2], axis {axis}"
        )
    if onesided and parts != (2 if inverse else 1):
        node.fail(f"the last dim is {parts}, expected {2 if inverse else 1} for onesided")
    count = node.known_integer(1)
    extent = fixed(extents_of(x)[axis], f"dim {axis}")
    default = 2 * (extent - 1) if onesided and inverse else extent
    length = default if count is None else count
    kind = ("i" if inverse else "") + ("rfft" if onesided else "fft")
    places = length // 2 + 1 if kind == "irfft" else length
    return _transformed(b, _fitted(b, x, axis, places), kind, axis, length)


@importer("STFT")
def short_time_fourier(b: Builder, node: Node) -> SSAValue:
    """Import spectra of windows of a signal `[N, L, 1 or 2]`: `[N, frames, frequencies, 2]`."""
    signal, window = node.input(0), node.optional(2)
    step, wanted = node.known_integer(1), node.known_integer(3)
    if step is None:
        node.fail("input 1 (frame_step) is missing")
    if step < 1:
        node.fail(f"frame_step is {step}, expected at least 1")
    extent = fixed(extents_of(signal)[1], "dim 1")
    default = extent if window is None else fixed_shape(window)[0]
    length = default if wanted is None else wanted
    require_table(max(0, (extent - length) // step + 1) * length, "places of the frames")
    starts = np.arange(0, extent - length + 1, step)
    frames = b.emit(GatherOp.get(signal, b.constant(starts[:, None] + np.arange(length)), 1))
    if window is not None:
        wide = widened(b, frames)
        shaped = reshape(b, cast(b, window, element_type_of(wide)), [1, 1, length, 1])
        frames = apply(b, "mul", wide, shaped)
    is_onesided = bool(node.integer("onesided", 1))
    kind = "rfft" if is_onesided and extents_of(signal)[-1] == 1 else "fft"
    result = _transformed(b, frames, kind, 2, length)
    outputs = length // 2 + 1 if is_onesided else length
    return cast(b, slice_dim(b, result, 2, 0, outputs), element_type_of(signal))


@importer("MelWeightMatrix")
def mel_weight_matrix(b: Builder, node: Node) -> SSAValue:
    """Import triangular filters, evenly spaced on the mel scale, `[frequencies, bins]`.

    The inputs, all known, are bins, length of the transform, sample rate, least and greatest
    frequency.
    """
    bins, length, rate = (int(_required(node, i).item()) for i in range(3))
    least, greatest = (float(_required(node, i).item()) for i in (3, 4))
    step = (_mel(greatest) - _mel(least)) / (bins + 2)
    require_table((length // 2 + 1) * (bins + 2), "filters")
    mels = _mel(least) + step * np.arange(bins + 2)
    hertz = 700 * (10 ** (mels / 2595) - 1)
    places = np.floor((length + 1) * hertz / rate).astype(np.int64)
    low, center, high = (places[i : i + bins] for i in range(3))
    frequency = np.arange(length // 2 + 1)[:, None]
    rising = (frequency - low) / np.maximum(center - low, 1)
    falling = (high - frequency) / np.maximum(high - center, 1)
    slopes = np.where(frequency < center, rising, falling)
    weights = np.where((low <= frequency) & (frequency < high), slopes, 0)
    weights = np.where(frequency == center, 1, weights)
    dtype = node.dtype("output_datatype") if node.has("output_datatype") else np.float32
    return b.constant(weights.astype(dtype))


def _mel(hertz: float) -> float:
    return 2595 * np.log10(1 + hertz / 700)


def _required(node: Node, index: int) -> Array:
    array = node.known(index)
    if array is None:
        node.fail(f"input {index} is missing")
    return array


def _fitted(b: Builder, x: SSAValue, dim: int, extent: int) -> SSAValue:
    """Return `x` with `dim`, whose extent is known, cut off or filled up with zeros."""
    shape = extents_of(x)
    own = fixed(shape[dim], f"dim {dim}")
    x = slice_dim(b, x, dim, 0, min(extent, own))
    high = [0] * len(shape)
    high[dim] = max(0, extent - own)
    return pad(b, x, [0] * len(shape), high, 0.0)


def _transformed(b: Builder, x: SSAValue, kind: str, dim: int, length: int) -> SSAValue:
    """Return the transform of `x`, computed in f32 where its elements are narrower."""
    result = b.emit(FftOp.get(widened(b, x), kind, dim, length))
    return cast(b, result, element_type_of(x))
