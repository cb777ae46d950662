"""Normalizations over the last dim, with the sums before: `SkipLayerNormalization` and others."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of, fits
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    broadcast,
    cast,
    mean,
    reduce,
    reshape,
    scalar,
    slice_dim,
    widened,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.opsets import MICROSOFT
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.microsoft.attributes import axis
from braid.frontends.onnx.ops.normalization import reciprocal_deviation
from braid.support.sizes.expression import Extent


@importer("SimplifiedLayerNormalization")
def simplified_layer_normalization(b: Builder, node: Node) -> list[SSAValue]:
    """Import x / sqrt(mean of x² + epsilon) · scale, with the factor of x if it is asked for."""
    x, scale = node.input(0), node.input(1)
    if node.integer("stash_type", 1) != 1:
        node.unsupported("attribute 'stash_type' is not 1: the mean is computed in f32 at least")
    rank = len(extents_of(x))
    dims = range(axis(node, "axis", -1, rank), rank)
    y, factor = _by_root_mean_square(b, widened(b, x), scale, dims, node.number("epsilon", 1e-5))
    return [cast(b, y, element_type_of(scale)), factor]


def _by_root_mean_square(
    b: Builder, x: SSAValue, scale: SSAValue, dims: range, epsilon: float
) -> tuple[SSAValue, SSAValue]:
    factor = reciprocal_deviation(b, x, dims, epsilon)
    scale = cast(b, scale, element_type_of(x))
    return apply(b, "mul", apply(b, "mul", x, factor), scale), factor


@importer("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_normalization(b: Builder, node: Node) -> list[SSAValue]:
    """Import LayerNormalization of input + skip + bias.

    Mean, factor and sum are computed where asked for.
    """
    total = _sum_with_skip(b, node, node.optional(4))
    epsilon = node.number("epsilon", 1e-12)
    y = _layer_norm(b, node, total, node.input(2), node.optional(3), epsilon)
    last = range(len(extents_of(total)) - 1, len(extents_of(total)))
    statistics: list[SSAValue] = []
    if any(node.proto.output[1:3]):
        average = mean(b, total, last)
        centered = apply(b, "sub", total, average)
        statistics = [average, reciprocal_deviation(b, centered, last, epsilon)]
    return _results(b, node, y, statistics, total)


@importer("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified_layer_normalization(b: Builder, node: Node) -> list[SSAValue]:
    """Import SimplifiedLayerNormalization of input + skip + bias.

    Factor and sum are computed where asked for.
    """
    total = _sum_with_skip(b, node, node.optional(3))
    if len(node.proto.output) > 1 and node.proto.output[1]:
        node.unsupported("output 1 ('mean') is asked for, which this op does not compute")
    last = range(len(extents_of(total)) - 1, len(extents_of(total)))
    y, factor = _by_root_mean_square(b, total, node.input(2), last, node.number("epsilon", 1e-12))
    return _results(b, node, y, [factor, factor], total)


@importer("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_normalization(b: Builder, node: Node) -> list[SSAValue]:
    """Import LayerNormalization of the sum of embeddings.

    The other results are lengths by the mask, and the sum.
    """
    ids = node.input(0)
    if len(extents_of(ids)) != 2:
        node.fail(f"input 0 has shape {list(extents_of(ids))}, expected 2 dims")
    batch, length = extents_of(ids)
    for index in (1, 7, 8):
        _require_shape(node, index, [[batch, length], *([[1, length]] if index == 8 else [])])
    positions, places = node.input(3), node.optional(8)
    if places is None:
        position = slice_dim(b, positions, 0, 0, length)
    else:
        position = node.call("Gather", positions, places, axis=0)
    terms = [node.call("Gather", node.input(2), ids, axis=0), position]
    if (segments := node.optional(1)) is not None:
        terms.append(node.call("Gather", node.input(4), segments, axis=0))
    total = widened(b, terms[0])
    for term in terms[1:]:
        total = apply(b, "add", total, widened(b, term))
    epsilon = node.number("epsilon", 1e-12)
    y = _layer_norm(b, node, total, node.input(5), node.input(6), epsilon)
    kind = element_type_of(node.input(2))
    return [cast(b, y, kind), _lengths(b, node), cast(b, total, kind)]


def _lengths(b: Builder, node: Node) -> SSAValue:
    """Count the elements of each row of the mask that are 1; 0 without a mask."""
    batch, mask = extents_of(node.input(0))[0], node.optional(7)
    if mask is None:
        return broadcast(b, b.constant(np.zeros(1, np.int32)), [batch])
    ones = cast(b, apply(b, "eq", mask, scalar(b, 1, mask)), i32)
    return reshape(b, reduce(b, "add", ones, [1]), [batch])


def _sum_with_skip(b: Builder, node: Node, bias: SSAValue | None) -> SSAValue:
    """Return input + skip + bias, in f32 at least; skip may be the same for the whole batch."""
    x, skip = node.input(0), node.input(1)
    shape = extents_of(x)
    if len(shape) not in (2, 3):
        node.fail(f"input 0 has shape {list(shape)}, expected 2 or 3 dims")
    shared = [[1, *shape[1:]], shape[1:]] if len(shape) == 3 else []
    _require_shape(node, 1, [shape, *shared])
    total = apply(b, "add", widened(b, x), broadcast(b, widened(b, skip), shape))
    if bias is None:
        return total
    _require_vector(node, bias, shape, "bias")
    return apply(b, "add", total, widened(b, bias))


def _layer_norm(
    b: Builder,
    node: Node,
    x: SSAValue,
    gamma: SSAValue,
    beta: SSAValue | None,
    epsilon: float,
) -> SSAValue:
    """Return LayerNormalization of a sum over its last dim."""
    vectors = [gamma] if beta is None else [gamma, beta]
    for vector in vectors:
        _require_vector(node, vector, extents_of(x), "a scale or an offset")
    wide = [cast(b, vector, element_type_of(x)) for vector in vectors]
    return node.call("LayerNormalization", x, *wide, axis=-1, epsilon=epsilon)


def _results(
    b: Builder, node: Node, y: SSAValue, statistics: Sequence[SSAValue], total: SSAValue
) -> list[SSAValue]:
    """Return the outputs: y, mean and factor in f32, and the sum."""
    kind = element_type_of(node.input(0))
    return [cast(b, y, kind), *(statistics or [total, total]), cast(b, total, kind)]


def _require_vector(node: Node, value: SSAValue, shape: Sequence[Extent], what: str) -> None:
    if not fits(extents_of(value), [shape[-1]]):
        node.fail(f"{what} has shape {list(extents_of(value))}, expected [{shape[-1]}]")


def _require_shape(node: Node, index: int, shapes: Sequence[Sequence[Extent]]) -> None:
    """Raise BraidError unless input `index` is left out or may have one of the shapes."""
    value = node.optional(index)
    if value is None or any(fits(extents_of(value), shape) for shape in shapes):
        return
    expected = " or ".join(str(list(shape)) for shape in shapes)
    node.fail(f"input {index} has shape {list(extents_of(value))}, expected {expected}")
