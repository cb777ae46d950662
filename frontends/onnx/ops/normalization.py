"""Normalizations and softmax."""

import functools
import math

from xdsl.ir import SSAValue

from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.base import element_type_of, extents_of, tensor_type
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.dtypes import f32, i64
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.size_evaluation import fixed
from braid.dialects.braid.size_facts import may_equal
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    cast,
    mean,
    normalized,
    pad,
    reduce,
    reshape,
    scalar,
    slice_dim,
    widened,
    with_rank,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.ops.convolution import per_channel
from braid.frontends.onnx.ops.reduction import p_norm


@importer("BatchNormalization")
def batch_normalization(b: Builder, node: Node) -> list[SSAValue]:
    """Import x · factor + offset, both expressions of parameters as `[1, C, 1…]`.

    In training mode, mean and variance are computed from the input; the other results are the
    running mean and variance, moved towards them.
    """
    x, epsilon = node.input(0), node.number("epsilon", 1e-5)
    scale, bias, average, variance = (
        cast(b, per_channel(b, node.input(i), x), element_type_of(x)) for i in range(1, 5)
    )
    if not node.integer("spatial", 1):
        node.unsupported("spatial is 0: a scale for every element is not supported")
    if node.opset < 7 and not node.integer("is_test", 0):
        node.unsupported("is_test is 0; braid runs models of this opset, it does not train them")
    if not node.integer("training_mode", 0):
        return [_scaled(b, x, scale, bias, average, variance, epsilon)]
    dims = [0, *range(2, len(extents_of(x)))]
    present = mean(b, x, dims)
    centered = apply(b, "sub", x, present)
    spread = mean(b, apply(b, "mul", centered, centered), dims)
    momentum = node.number("momentum", 0.9)
    running = [
        _moved(b, old, new, momentum, node.input(3 + i))
        for i, (old, new) in enumerate(((average, present), (variance, spread)))
    ]
    return [_scaled(b, x, scale, bias, present, spread, epsilon), *running]


def _moved(b: Builder, old: SSAValue, new: SSAValue, momentum: float, like: SSAValue) -> SSAValue:
    """Return old · momentum + new · (1 - momentum), in the type of `like`."""
    kept = apply(b, "mul", old, scalar(b, momentum, old))
    added = apply(b, "mul", new, scalar(b, 1 - momentum, new))
    total = reshape(b, apply(b, "add", kept, added), extents_of(like))
    return cast(b, total, element_type_of(like))


def _scaled(
    b: Builder,
    x: SSAValue,
    scale: SSAValue,
    bias: SSAValue,
    average: SSAValue,
    variance: SSAValue,
    epsilon: float,
) -> SSAValue:
    """Return (x - average) / sqrt(variance + epsilon) · scale + bias as one product and a sum."""
    shifted = apply(b, "add", variance, scalar(b, epsilon, variance))
    factor = apply(b, "mul", scale, apply(b, "rsqrt", shifted))
    offset = apply(b, "sub", bias, apply(b, "mul", average, factor))
    return apply(b, "add", apply(b, "mul", x, factor), offset)


@importer("InstanceNormalization")
def instance_normalization(b: Builder, node: Node) -> SSAValue:
    """Normalize over the spatial dims of every channel."""
    x = node.input(0)
    scale, bias = (per_channel(b, node.input(i), x) for i in (1, 2))
    return _normalized_from(b, x, scale, bias, node.number("epsilon", 1e-5))


@importer("GroupNormalization")
def group_normalization(b: Builder, node: Node) -> SSAValue:
    """Normalize over groups of channels; scales are per group before opset 21."""
    x, groups = node.input(0), node.integer("num_groups")
    batch, channels, *spatial = extents_of(x)
    count = groups if node.opset < 21 else channels
    for name, index in (("scale", 1), ("bias", 2)):
        shape = extents_of(node.input(index))
        if len(shape) != 1 or not may_equal(shape[0], count):
            node.fail(f"its {name} has shape {list(shape)}, expected [{count}]")
    grouped = reshape(b, x, [batch, groups, channels // groups, *spatial])
    vectors = [node.input(i) for i in (1, 2)]
    shapes = [[1, groups, extents_of(v)[0] // groups, *[1] * len(spatial)] for v in vectors]
    scale, bias = (reshape(b, v, shape) for v, shape in zip(vectors, shapes, strict=True))
    normal = _normalized_from(b, grouped, scale, bias, node.number("epsilon", 1e-5))
    return reshape(b, normal, extents_of(x))


def _normalized_from(
    b: Builder, x: SSAValue, scale: SSAValue, bias: SSAValue, epsilon: float
) -> SSAValue:
    """Normalize over the dims after the second: `braid.layer_norm` where they are not empty."""
    dims = range(2, len(extents_of(x)))
    if dims and all(extents_of(x)[dim] != 0 for dim in dims):
        return b.emit(LayerNormOp.get(x, scale, bias, first_dim=2, epsilon=epsilon))
    scaled = apply(b, "mul", normalize(b, x, dims, epsilon), scale)
    return apply(b, "add", scaled, bias)


@importer("LayerNormalization")
def layer_normalization(b: Builder, node: Node) -> list[SSAValue]:
    """Import `braid.layer_norm`.

    Mean and reciprocal deviation are computed only where asked for.
    """
    x = node.input(0)
    rank = len(extents_of(x))
    first = normalized(node.integer("axis", -1), rank)
    epsilon = node.number("epsilon", 1e-5)
    scale = with_rank(b, node.input(1), rank)
    bias = node.optional(2)
    offset = scalar(b, 0, x) if bias is None else with_rank(b, bias, rank)
    y = b.emit(LayerNormOp.get(x, scale, offset, first_dim=first, epsilon=epsilon))
    if len(node.proto.output) == 1:
        return [y]
    dims = range(first, rank)
    wide = cast(b, x, f32)
    average = mean(b, wide, dims)
    return [y, average, reciprocal_deviation(b, apply(b, "sub", wide, average), dims, epsilon)]


@importer("RMSNormalization")
def rms_normalization(b: Builder, node: Node) -> SSAValue:
    """Import `RMSNormalization` as x / sqrt(mean of x² + epsilon) · scale."""
    x = node.input(0)
    wide = cast(b, x, f32)
    dims = range(normalized(node.integer("axis", -1), len(extents_of(x))), len(extents_of(x)))
    factor = reciprocal_deviation(b, wide, dims, node.number("epsilon", 1e-5))
    normal = cast(b, apply(b, "mul", wide, factor), element_type_of(x))
    return apply(b, "mul", normal, node.input(1))


@importer("LpNormalization")
def lp_normalization(b: Builder, node: Node) -> SSAValue:
    """Import x divided by its p-norm along a dim."""
    x = node.input(0)
    dim = normalized(node.integer("axis", -1), len(extents_of(x)))
    norm = p_norm(b, x, node.integer("p", 2), [dim])
    is_zero = apply(b, "eq", norm, scalar(b, 0, norm))
    return apply(b, "div", x, apply(b, "select", is_zero, scalar(b, 1, norm), norm))


@importer("MeanVarianceNormalization")
def mean_variance_normalization(b: Builder, node: Node) -> SSAValue:
    """Import (x - mean) / (standard deviation + 1e-9) over `axes`; of 16-bit floats in f32."""
    x = widened(b, node.input(0))
    rank = len(extents_of(x))
    dims = sorted({normalized(axis, rank) for axis in node.integers("axes", (0, 2, 3))})
    centered = apply(b, "sub", x, mean(b, x, dims))
    deviation = apply(b, "sqrt", mean(b, apply(b, "mul", centered, centered), dims))
    divisor = apply(b, "add", deviation, scalar(b, 1e-9, deviation))
    return cast(b, apply(b, "div", centered, divisor), element_type_of(node.input(0)))


@importer("LRN")
def local_response_normalization(b: Builder, node: Node) -> SSAValue:
    """Import x / (bias + alpha / size · sum of squares of neighbouring channels) ** beta.

    The sum is one of slices along the channels, which a kernel reads in any layout. A pooling would
    need the channels as a spatial dim, and so row-major reshapes around it.
    """
    x, size = node.input(0), node.integer("size")
    shape = extents_of(x)
    if size < 1 or len(shape) < 2:
        node.fail(f"size is {size} on {len(shape)} dims, expected at least 1 on at least 2 dims")
    low, high = [0] * len(shape), [0] * len(shape)
    # A distance larger than the number of channels is out of bounds for all of them.
    most = max(fixed(shape[1], "dim 1") - 1, 0)
    low[1], high[1] = min((size - 1) // 2, most), min(size // 2, most)
    padded = pad(b, x, low, high, 0)
    neighbours = [
        slice_dim(b, padded, 1, offset, shape[1]) for offset in range(low[1] + high[1] + 1)
    ]
    squares = [apply(b, "mul", neighbour, neighbour) for neighbour in neighbours]
    total = functools.reduce(lambda left, right: apply(b, "add", left, right), squares)
    scaled = apply(b, "mul", total, scalar(b, node.number("alpha", 1e-4) / size, x))
    base = apply(b, "add", scaled, scalar(b, node.number("bias", 1.0), x))
    power = apply(b, "pow", base, scalar(b, -node.number("beta", 0.75), x))
    return apply(b, "mul", x, power)


@importer("Softmax", since=13)
def softmax(b: Builder, node: Node) -> SSAValue:
    """Import softmax along one dim, the last by default."""
    x = node.input(0)
    return b.emit(SoftmaxOp.get(x, normalized(node.integer("axis", -1), len(extents_of(x)))))


@importer("Softmax")
def softmax_flat(b: Builder, node: Node) -> SSAValue:
    """Import softmax over all dims from `axis` on, before opset 13."""
    flat = _flattened(b, node)
    return reshape(b, b.emit(SoftmaxOp.get(flat, 1)), extents_of(node.input(0)))


@importer("LogSoftmax", since=13)
def log_softmax(b: Builder, node: Node) -> SSAValue:
    """Import the logarithm of softmax along one dim, the last by default."""
    x = node.input(0)
    return _log_softmax(b, x, normalized(node.integer("axis", -1), len(extents_of(x))))


@importer("LogSoftmax")
def log_softmax_flat(b: Builder, node: Node) -> SSAValue:
    """Import the logarithm of softmax over all dims from `axis` on, before opset 13."""
    return reshape(b, _log_softmax(b, _flattened(b, node), 1), extents_of(node.input(0)))


@importer("Hardmax", since=13)
def hardmax(b: Builder, node: Node) -> SSAValue:
    """Import 1 at the first maximum along a dim, 0 elsewhere."""
    x = node.input(0)
    return _hardmax(b, x, normalized(node.integer("axis", -1), len(extents_of(x))))


@importer("Hardmax")
def hardmax_flat(b: Builder, node: Node) -> SSAValue:
    """Import 1 at the first maximum over all dims from `axis` on, before opset 13."""
    return reshape(b, _hardmax(b, _flattened(b, node), 1), extents_of(node.input(0)))


def _flattened(b: Builder, node: Node) -> SSAValue:
    x = node.input(0)
    shape = extents_of(x)
    axis = normalized(node.integer("axis", 1), len(shape))
    return reshape(b, x, [math.prod(shape[:axis]), math.prod(shape[axis:])])


def _log_softmax(b: Builder, x: SSAValue, dim: int) -> SSAValue:
    centered = apply(b, "sub", x, reduce(b, "maximum", x, [dim]))
    total = reduce(b, "add", apply(b, "exp", centered), [dim])
    return apply(b, "sub", centered, apply(b, "log", total))


def normalize(b: Builder, x: SSAValue, dims: range, epsilon: float) -> SSAValue:
    """Return (x - mean) / sqrt(variance + epsilon) over `dims`."""
    centered = apply(b, "sub", x, mean(b, x, dims))
    return apply(b, "mul", centered, reciprocal_deviation(b, centered, dims, epsilon))


def reciprocal_deviation(b: Builder, centered: SSAValue, dims: range, epsilon: float) -> SSAValue:
    """Return 1 / sqrt(mean of squares over `dims` + epsilon)."""
    variance = mean(b, apply(b, "mul", centered, centered), dims)
    return apply(b, "rsqrt", apply(b, "add", variance, scalar(b, epsilon, variance)))


def _hardmax(b: Builder, x: SSAValue, dim: int) -> SSAValue:
    first = b.emit(ArgReduceOp.get(x, "max", dim))
    positions = b.emit(IotaOp.of(dim, tensor_type(i64, extents_of(x))))
    return cast(b, apply(b, "eq", positions, first), element_type_of(x))
