"""Ops whose result's shape depends on values: known at import, or data that decide sizes."""

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import extents_of
from braid.dialects.braid.box_selection import NonMaxSuppressionOp
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.relayout import Array
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import normalized, reshape, transpose
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.ops.selection_by_data import (
    coordinates,
    distinct,
    is_not_zero,
    taken_boxes,
    true_positions,
)
from braid.support.sizes.operators import minimum, product_of


@importer("Compress")
def compress(b: Builder, node: Node) -> SSAValue:
    """Import the slices along `axis` (elements, without it) where a condition is true."""
    x, condition = node.input(0), _known_or_decided(b, node, 1)
    if not node.has("axis"):
        x, axis = reshape(b, x, [product_of(extents_of(x))]), 0
    else:
        axis = normalized(node.integer("axis"), len(extents_of(x)))
    if condition is not None:
        return b.emit(GatherOp.get(x, b.constant(np.flatnonzero(condition)), axis))
    positions = true_positions(b, node.input(1), node.proto.output[0])
    return b.emit(GatherOp.get(x, positions, axis))


def _known_or_decided(b: Builder, node: Node, index: int) -> Array | None:
    """Return the known value of an input; None for data, which may decide sizes."""
    value = node.input(index)
    return None if b.known(value) is None and b.may_decide else node.known(index)


@importer("NonZero")
def non_zero(b: Builder, node: Node) -> SSAValue:
    """Import the indices of the elements that are not 0, `[rank, count]`."""
    x = _known_or_decided(b, node, 0)
    if x is None:
        value = node.input(0)
        shape = extents_of(value) or (1,)
        positions = true_positions(b, is_not_zero(b, value), node.proto.output[0])
        return coordinates(b, positions, shape)
    return b.constant(np.stack(np.nonzero(np.atleast_1d(x))).astype(np.int64))


@importer("Unique")
def unique(b: Builder, node: Node) -> Sequence[SSAValue]:
    """Import distinct elements or slices, first positions, where each is, and counts."""
    x = _known_or_decided(b, node, 0)
    if x is None:
        return _unique_of_data(b, node)
    axis = normalized(node.integer("axis"), x.ndim) if node.has("axis") else None
    values, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not node.integer("sorted", 1):
        order = np.argsort(first)
        rank = np.argsort(order)
        values = values[order] if axis is None else np.take(values, order, axis)
        first, counts, inverse = first[order], counts[order], rank[inverse]
    return [b.constant(values), *(b.constant(v.astype(np.int64)) for v in (first, inverse, counts))]


def _unique_of_data(b: Builder, node: Node) -> Sequence[SSAValue]:
    value, by_value = node.input(0), bool(node.integer("sorted", 1))
    name, shape = node.proto.output[0] or "unique", extents_of(value)
    if not node.has("axis"):
        rows = reshape(b, value, [product_of(shape), 1])
        values, *found = distinct(b, rows, name, by_value=by_value)
        return [reshape(b, values, [extents_of(values)[0]]), *found]
    axis = normalized(node.integer("axis"), len(shape))
    others = [dim for dim in range(len(shape)) if dim != axis]
    rest = [shape[dim] for dim in others]
    rows = reshape(b, transpose(b, value, [axis, *others]), [shape[axis], product_of(rest)])
    values, *found = distinct(b, rows, name, by_value=by_value)
    slices = reshape(b, values, [extents_of(values)[0], *rest])
    order = [*range(1, axis + 1), 0, *range(axis + 1, len(shape))]
    return [transpose(b, slices, order), *found]


@importer("NonMaxSuppression")
def non_max_suppression(b: Builder, node: Node) -> SSAValue:
    """Import rows of batch, class and box, of the best boxes of each class.

    A box that overlaps a better one of its class is left out.

    They are chosen in each class.
    """
    boxes, scores = node.input(0), node.input(1)
    for index in (0, 1):
        _known_or_decided(b, node, index)
    count = extents_of(scores)[2]
    wanted = 0 if node.optional(2) is None else node.known_size(2)
    least_count = max(wanted, 0) if isinstance(wanted, int) else wanted
    most = count if least_count is None else minimum(least_count, count)
    overlap, least = (_threshold(b, node, *pair) for pair in ((3, 0.0), (4, np.nan)))
    centered = bool(node.integer("center_point_box", 0))
    op = NonMaxSuppressionOp.get(boxes, scores, overlap, least, most, centered=centered)
    indices, counts = b.emit_all(op)
    return taken_boxes(b, indices, counts, node.proto.output[0])


def _threshold(b: Builder, node: Node, index: int, default: float) -> SSAValue:
    """Return an optional scalar input, which may be computed, or the default."""
    value = node.optional(index)
    node.require_scalar(index)
    return b.constant(np.full(1, default, np.float32)) if value is None else reshape(b, value, [1])


@importer("OptionalHasElement")
def has_element(b: Builder, node: Node) -> SSAValue:
    """Make a constant that says whether the input is present: a tensor always is."""
    return b.constant(np.array(node.optional(0) is not None))


@importer("OptionalGetElement")
def get_element(b: Builder, node: Node) -> SSAValue:
    """Return the input itself."""
    return node.input(0)
