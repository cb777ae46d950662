"""Ops whose result has as many elements as data say."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from braid.dialects.braid.base import extents_of, tensor_type
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.scan import ScanOp
from braid.dialects.braid.scattering import ScatterElementsOp
from braid.dialects.braid.size_evaluation import SIZES
from braid.dialects.braid.sized_ops import top_k_of
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.decisions import decided
from braid.frontends.onnx.building.expressions import (
    apply,
    broadcast,
    cast,
    concat,
    pad,
    reshape,
    scalar,
    size_scalar,
    slice_dim,
    transpose,
)
from braid.frontends.onnx.ops.control_flow import counted_loop
from braid.support.sizes.assumptions import Answer
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of


def true_positions(b: Builder, mask: SSAValue, name: str) -> SSAValue:
    """Return the positions at which a vector of bools is true, `[n]` of i64, in their order.

    Data decide how many there are, a size called `name`. Each position of a true element is
    scattered to the index that is the number of true elements before it; positions of false
    elements go to one slot after all others.
    """
    (extent,) = extents_of(mask)
    ones = cast(b, mask, i64)
    count = reshape(b, b.emit(ReduceOp.get(ones, "add", [0])), [1])
    most = extent if isinstance(extent, int) else None
    (size,) = decided(b, count, name, most=most).reshape(-1).tolist()
    before = b.emit(ScanOp.get(ones, "add", 0, exclusive=True, reverse=False))
    places = apply(b, "select", mask, before, size_scalar(b, extent, before))
    positions = _iota(b, extent)
    empty = broadcast(b, b.constant(np.zeros([1], np.int64)), [extent + 1])
    packed = b.emit(ScatterElementsOp.get(empty, places, positions, 0, "none"))
    return slice_dim(b, packed, 0, 0, size)


def is_not_zero(b: Builder, x: SSAValue) -> SSAValue:
    """Return the elements of a tensor as a vector of bools."""
    flat = reshape(b, x, [product_of(extents_of(x))])
    return apply(b, "ne", flat, scalar(b, 0, flat))


def coordinates(b: Builder, positions: SSAValue, shape: Sequence[Extent]) -> SSAValue:
    """Return row-major positions in a tensor of a shape as its indices, `[rank, n]` of i64."""
    rows: list[SSAValue] = []
    for dim, extent in enumerate(shape):
        index = positions
        if (inner := product_of(shape[dim + 1 :])) != 1:
            index = apply(b, "div", index, size_scalar(b, inner, index))
        if dim > 0:
            index = apply(b, "rem", index, size_scalar(b, extent, index))
        rows.append(reshape(b, index, [1, *extents_of(index)]))
    return concat(b, rows, 0)


def distinct(b: Builder, rows: SSAValue, name: str, *, by_value: bool) -> list[SSAValue]:
    """Return the distinct rows of a matrix, and the other results of ONNX's `Unique`.

    These are the first position of each, the index of each row among them, and their counts. They
    are in ascending order, compared by the first column that differs, or in the order of their
    first positions.
    """
    extent = extents_of(rows)[0]
    places = _sorted_places(b, rows, name)
    ordered = b.emit(GatherOp.get(rows, places, 0))
    before = slice_dim(b, pad(b, ordered, [1, 0], [0, 0], 0), 0, 0, extent)
    differ = cast(b, apply(b, "ne", ordered, before), i64)
    numbers, differing = (
        _iota(b, extent),
        reshape(b, b.emit(ReduceOp.get(differ, "add", [1])), [extent]),
    )
    is_first = apply(b, "eq", numbers, scalar(b, 0, numbers))
    begins = apply(b, "or", is_first, apply(b, "ne", differing, scalar(b, 0, differing)))
    groups = b.emit(ScanOp.get(cast(b, begins, i64), "add", 0))
    groups = apply(b, "sub", groups, scalar(b, 1, groups))
    positions = true_positions(b, begins, name)
    first = b.emit(GatherOp.get(places, positions, 0))  # equal rows keep their order
    inverse = b.emit(ScatterElementsOp.get(places, places, groups, 0))
    if not by_value:
        (count,) = extents_of(first)
        first, order = b.emit_all(top_k_of(first, count, 0, largest=False))
        ranks = b.emit(ScatterElementsOp.get(order, order, _iota(b, count), 0))
        inverse = b.emit(GatherOp.get(ranks, inverse, 0))
    zeros = apply(b, "sub", first, first)
    ones = broadcast(b, b.constant(np.ones([1], np.int64)), [extent])
    counts = b.emit(ScatterElementsOp.get(zeros, inverse, ones, 0, "add"))
    return [b.emit(GatherOp.get(rows, first, 0)), first, inverse, counts]


def _sorted_places(b: Builder, rows: SSAValue, name: str) -> SSAValue:
    """Return the places of a matrix's rows in ascending order, equal ones in theirs.

    Rows are sorted by one column after the other, the last one first, and keep their order where
    the column does not tell.
    """
    if SIZES.at_most(1, extents_of(rows)[1]) is not Answer.YES:
        rows = pad(b, rows, [0, 1], [0, 0], 0)  # a column that all rows have in common
    extent, count = extents_of(rows)
    if count == 1:
        return b.emit_all(top_k_of(reshape(b, rows, [extent]), extent, 0, largest=False))[1]
    columns = transpose(b, rows, [1, 0])

    def sort(
        number: SSAValue, carried: Sequence[SSAValue]
    ) -> tuple[list[SSAValue], list[SSAValue]]:
        places, last = carried[0], size_scalar(b, count - 1, number)
        column = reshape(
            b, b.emit(GatherOp.get(columns, apply(b, "sub", last, number), 0)), [extent]
        )
        keys = b.emit(GatherOp.get(column, places, 0))
        order = b.emit_all(top_k_of(keys, extent, 0, largest=False))[1]
        return [b.emit(GatherOp.get(places, order, 0))], []

    keys = {"enter": f"{name}/columns/enter", "next": f"{name}/columns/next"}
    return counted_loop(b, count, [_iota(b, extent)], sort, keys)[0]


def _iota(b: Builder, extent: Extent) -> SSAValue:
    return b.emit(IotaOp.of(0, tensor_type(i64, [extent])))


def taken_boxes(b: Builder, indices: SSAValue, counts: SSAValue, name: str) -> SSAValue:
    """Return rows of batch, class and box, `[n, 3]`, the result of non-maximum suppression."""
    shape = extents_of(indices)
    numbers = b.emit(IotaOp.of(2, tensor_type(i64, shape)))
    are_taken = apply(b, "lt", numbers, broadcast(b, reshape(b, counts, [*shape[:2], 1]), shape))
    places = true_positions(b, reshape(b, are_taken, [product_of(shape)]), name)
    boxes = b.emit(GatherOp.get(reshape(b, indices, [product_of(shape)]), places, 0))
    lines = coordinates(b, places, shape)
    rows = concat(b, [slice_dim(b, lines, 0, 0, 2), reshape(b, boxes, [1, *extents_of(boxes)])], 0)
    return transpose(b, rows, [1, 0])
