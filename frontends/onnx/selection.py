"""Ops whose result's shape depends on values, for values known at import."""

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import shape_of
from braid.dialects.braid.indexing import GatherOp
from braid.frontends.onnx.builder import Builder
from braid.frontends.onnx.expressions import normalized, reshape
from braid.frontends.onnx.node import Node
from braid.frontends.onnx.registry import importer


@importer("Compress")
def compress(b: Builder, node: Node) -> SSAValue:
    """The slices along `axis` (elements, without it) where a known condition is true."""
    x, condition = node.input(0), node.known(1)
    if condition is None:
        node.fail("input 1 (condition) is missing")
    if not node.has("axis"):
        x, axis = reshape(b, x, [int(np.prod(shape_of(x)))]), 0
    else:
        axis = normalized(node.integer("axis"), len(shape_of(x)))
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
