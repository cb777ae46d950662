"""Ops whose result's shape depends on values, for values known at import."""

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import extents_of
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.relayout import Array
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import normalized, reshape
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.support.sizes.operators import product_of


@importer("Compress")
def compress(b: Builder, node: Node) -> SSAValue:
    """The slices along `axis` (elements, without it) where a known condition is true."""
    x, condition = node.input(0), node.known(1)
    if condition is None:
        node.fail("input 1 (condition) is missing")
    if not node.has("axis"):
        x, axis = reshape(b, x, [product_of(extents_of(x))]), 0
    else:
        axis = normalized(node.integer("axis"), len(extents_of(x)))
    return b.emit(GatherOp.get(x, b.constant(np.flatnonzero(condition)), axis))


@importer("NonZero")
def non_zero(b: Builder, node: Node) -> SSAValue:
    """The indices of the elements of a known tensor that are not 0, `[rank, count]`."""
    x = node.known(0)
    if x is None:
        node.fail("input 0 is missing")
    return b.constant(np.stack(np.nonzero(np.atleast_1d(x))).astype(np.int64))


@importer("Unique")
def unique(b: Builder, node: Node) -> Sequence[SSAValue]:
    """Of a known tensor: distinct elements, first positions, where each is, and counts."""
    x = node.known(0)
    if x is None:
        node.fail("input 0 is missing")
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


@importer("NonMaxSuppression")
def non_max_suppression(b: Builder, node: Node) -> SSAValue:
    """Rows of batch, class and box: the best boxes of each class that overlap none before."""
    boxes, scores = node.known(0), node.known(1)
    if boxes is None or scores is None:
        node.fail("expected boxes and scores")
    most, overlap, least = (_number(node.known(i)) for i in (2, 3, 4))
    corners = _corners(boxes, centered=bool(node.integer("center_point_box", 0)))
    rows = [
        (batch, kind, box)
        for batch in range(scores.shape[0])
        for kind in range(scores.shape[1])
        for box in _selected(corners[batch], scores[batch, kind], int(most or 0), overlap, least)
    ]
    return b.constant(np.array(rows, np.int64).reshape(-1, 3))


def _number(array: Array | None) -> float | None:
    return None if array is None or array.size == 0 else array.reshape(-1)[0].item()


def _corners(boxes: Array, *, centered: bool) -> Array:
    """Boxes `[…, 4]` as least and greatest corner, from two corners or center and size."""
    if centered:
        center, half = boxes[..., :2], boxes[..., 2:] / 2
        return np.concatenate([center - half, center + half], axis=-1)
    first, second = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=-1)


def _selected(
    corners: Array, scores: Array, most: int, overlap: float | None, least: float | None
) -> list[int]:
    """The boxes of one class, best first; of equal scores the lower index comes first."""
    chosen: list[int] = []
    for box in np.argsort(-scores, kind="stable").tolist():
        if len(chosen) >= most or (least is not None and not scores[box] > least):
            break
        if not (_overlaps(corners[box], corners[chosen]) > (overlap or 0.0)).any():
            chosen.append(box)
    return chosen


def _overlaps(box: Array, others: Array) -> Array:
    """Intersection over union of a box with each of the others; 0 where one is empty."""
    low = np.maximum(box[:2], others[:, :2])
    high = np.minimum(box[2:], others[:, 2:])
    common = np.prod(np.maximum(high - low, 0), axis=1)
    area, areas = np.prod(box[2:] - box[:2]), np.prod(others[:, 2:] - others[:, :2], axis=1)
    union = area + areas - common
    is_real = (area > 0) & (areas > 0) & (union > 0)
    return np.where(is_real, common / np.where(is_real, union, 1), 0)


@importer("OptionalHasElement")
def has_element(b: Builder, node: Node) -> SSAValue:
    """Whether the input is there: a tensor always is."""
    return b.constant(np.array(node.optional(0) is not None))


@importer("OptionalGetElement")
def get_element(b: Builder, node: Node) -> SSAValue:
    """The input itself."""
    return node.input(0)
