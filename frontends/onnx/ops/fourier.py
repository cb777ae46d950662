"""`DFT` and `STFT` as products with the matrices of cosines and sines."""

import numpy as np
from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_evaluation import fixed, fixed_shape
from braid.dialects.braid.size_limits import require_table
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    cast,
    concat,
    matmul,
    normalized,
    pad,
    reshape,
    slice_dim,
    transpose,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer


@importer("DFT")
def fourier(b: Builder, node: Node) -> SSAValue:
    """The last dim is 1 (real) or 2 (complex); the axis is an attribute before opset 20.

    A real result (`onesided` and `inverse`) is made from half of a spectrum.
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
    extent = fixed_shape(x)[axis]
    default = 2 * (extent - 1) if onesided and inverse else extent
    length = default if count is None else count
    order = [dim for dim in range(rank) if dim != axis]
    order.insert(rank - 2, axis)
    # In double precision, so that what cancels is as small as in a fast Fourier transform.
    moved = cast(b, transpose(b, x, order), f64)
    if onesided and inverse:
        result = _real(b, moved, length)
    else:
        outputs = length // 2 + 1 if onesided else length
        result = _complex(b, _fitted(b, moved, length), length, outputs, inverse)
    result = cast(b, result, element_type_of(x))
    return transpose(b, result, [int(i) for i in np.argsort(order)])


@importer("STFT")
def short_time_fourier(b: Builder, node: Node) -> SSAValue:
    """Spectra of windows of a signal `[N, L, 1 or 2]`: `[N, frames, frequencies, 2]`."""
    signal, window = node.input(0), node.optional(2)
    step, wanted = node.known_integer(1), node.known_integer(3)
    if step is None:
        node.fail("input 1 (frame_step) is missing")
    if step < 1:
        node.fail(f"frame_step is {step}, expected at least 1")
    extent = fixed_shape(signal)[1]
    default = extent if window is None else fixed_shape(window)[0]
    length = default if wanted is None else wanted
    require_table(max(0, (extent - length) // step + 1) * length, "places of the frames")
    starts = np.arange(0, extent - length + 1, step)
    frames = b.emit(GatherOp.get(signal, b.constant(starts[:, None] + np.arange(length)), 1))
    wide = cast(b, frames, f64)
    if window is not None:
        wide = apply(b, "mul", wide, reshape(b, cast(b, window, f64), [1, 1, length, 1]))
    outputs = length // 2 + 1 if node.integer("onesided", 1) else length
    return cast(b, _complex(b, wide, length, outputs, False), element_type_of(signal))


@importer("MelWeightMatrix")
def mel_weight_matrix(b: Builder, node: Node) -> SSAValue:
    """Triangular filters, evenly spaced on the mel scale, `[frequencies, bins]`.

    Inputs, all known: bins, length of the transform, sample rate, least and greatest frequency.
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


def _fitted(b: Builder, x: SSAValue, length: int) -> SSAValue:
    """The transformed dim, last but one, cut off or filled up with zeros."""
    shape = fixed_shape(x)
    dim = len(shape) - 2
    x = slice_dim(b, x, dim, 0, min(length, shape[dim]))
    high = [0] * len(shape)
    high[dim] = max(0, length - shape[dim])
    return pad(b, x, [0] * len(shape), high, 0.0)


def _complex(b: Builder, x: SSAValue, length: int, outputs: int, inverse: bool) -> SSAValue:
    """Sum over n of x[n] · exp(∓2πi k n / length), for k below `outputs`."""
    rank = len(extents_of(x))
    require_table(outputs * length, "cosines and sines")
    angles = 2 * np.pi * np.outer(np.arange(outputs), np.arange(length)) / length
    scale = 1 / length if inverse else 1.0
    cosines = b.constant(scale * np.cos(angles))
    sines = b.constant(scale * (1 if inverse else -1) * np.sin(angles))
    real_part = slice_dim(b, x, rank - 1, 0, 1)
    real, imaginary = matmul(b, cosines, real_part), matmul(b, sines, real_part)
    if extents_of(x)[-1] == 2:
        other = slice_dim(b, x, rank - 1, 1, 1)
        real = apply(b, "sub", real, matmul(b, sines, other))
        imaginary = apply(b, "add", imaginary, matmul(b, cosines, other))
    return concat(b, [real, imaginary], rank - 1)


def _real(b: Builder, x: SSAValue, length: int) -> SSAValue:
    """The real signal with this half of a spectrum: the other half mirrors it."""
    rank = len(extents_of(x))
    x = _fitted(b, x, length // 2 + 1)
    require_table(length * (length // 2 + 1), "cosines and sines")
    frequencies = np.arange(length // 2 + 1)
    angles = 2 * np.pi * np.outer(np.arange(length), frequencies) / length
    has_mirror = (frequencies > 0) & (2 * frequencies != length)
    weights = np.where(has_mirror, 2, 1) / length
    real = matmul(b, b.constant(weights * np.cos(angles)), slice_dim(b, x, rank - 1, 0, 1))
    if extents_of(x)[-1] == 1:
        return real
    sines = b.constant(weights * np.sin(angles))
    return apply(b, "sub", real, matmul(b, sines, slice_dim(b, x, rank - 1, 1, 1)))
