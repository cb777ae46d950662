"""`DFT` as products with the matrices of cosines and sines."""

import numpy as np
from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, shape_of
from braid.frontends.onnx.builder import Builder
from braid.frontends.onnx.expressions import (
    apply,
    cast,
    concat,
    matmul,
    normalized,
    pad,
    slice_dim,
    transpose,
)
from braid.frontends.onnx.node import Node
from braid.frontends.onnx.registry import importer


@importer("DFT")
def fourier(b: Builder, node: Node) -> SSAValue:
    """The last dim is 1 (real) or 2 (complex); the axis is an attribute before opset 20.

    A real result (`onesided` and `inverse`) is made from half of a spectrum.
    """
    x, inverse = node.input(0), bool(node.integer("inverse", 0))
    onesided = bool(node.integer("onesided", 0))
    rank = len(shape_of(x))
    given = node.known_integers(2) if node.opset >= 20 else (node.integer("axis", 1),)
    axis = normalized(given[0] if given else -2, rank)
    count = node.known_integers(1)
    extent = shape_of(x)[axis]
    default = 2 * (extent - 1) if onesided and inverse else extent
    length = count[0] if count else default
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


def _fitted(b: Builder, x: SSAValue, length: int) -> SSAValue:
    """The transformed dim, last but one, cut off or filled up with zeros."""
    shape = shape_of(x)
    dim = len(shape) - 2
    x = slice_dim(b, x, dim, 0, min(length, shape[dim]))
    high = [0] * len(shape)
    high[dim] = max(0, length - shape[dim])
    return pad(b, x, [0] * len(shape), high, 0.0)


def _complex(b: Builder, x: SSAValue, length: int, outputs: int, inverse: bool) -> SSAValue:
    """Sum over n of x[n] · exp(∓2πi k n / length), for k below `outputs`."""
    rank = len(shape_of(x))
    angles = 2 * np.pi * np.outer(np.arange(outputs), np.arange(length)) / length
    scale = 1 / length if inverse else 1.0
    cosines = b.constant(scale * np.cos(angles))
    sines = b.constant(scale * (1 if inverse else -1) * np.sin(angles))
    real_part = slice_dim(b, x, rank - 1, 0, 1)
    real, imaginary = matmul(b, cosines, real_part), matmul(b, sines, real_part)
    if shape_of(x)[-1] == 2:
        other = slice_dim(b, x, rank - 1, 1, 1)
        real = apply(b, "sub", real, matmul(b, sines, other))
        imaginary = apply(b, "add", imaginary, matmul(b, cosines, other))
    return concat(b, [real, imaginary], rank - 1)


def _real(b: Builder, x: SSAValue, length: int) -> SSAValue:
    """The real signal with this half of a spectrum: the other half mirrors it."""
    rank = len(shape_of(x))
    x = _fitted(b, x, length // 2 + 1)
    frequencies = np.arange(length // 2 + 1)
    angles = 2 * np.pi * np.outer(np.arange(length), frequencies) / length
    has_mirror = (frequencies > 0) & (2 * frequencies != length)
    weights = np.where(has_mirror, 2, 1) / length
    real = matmul(b, b.constant(weights * np.cos(angles)), slice_dim(b, x, rank - 1, 0, 1))
    if shape_of(x)[-1] == 1:
        return real
    sines = b.constant(weights * np.sin(angles))
    return apply(b, "sub", real, matmul(b, sines, slice_dim(b, x, rank - 1, 1, 1)))
