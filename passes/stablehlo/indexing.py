"""Ops of StableHLO that read and write at computed places."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.indexing import GatherNdOp, GatherOp
from braid.passes.stablehlo.node import StablehloNode, converter


@converter("dynamic_slice")
def dynamic_slice(t: StablehloNode) -> SSAValue:
    """One dim after the other; starts are moved so that the slice is inside."""
    value = t.value(0)
    for dim, size in enumerate(t.integers("slice_sizes")):
        extent = shape_of(value)[dim]
        if size < extent:
            start = _clamped(t, t.value(1 + dim), extent - size)
            value = t.emit(GatherOp.get(value, _counted(t, start, size), dim))
    return value


@converter("dynamic_update_slice")
def dynamic_update_slice(t: StablehloNode) -> SSAValue:
    """Every element comes from the update, where that covers it, or stays."""
    value, update = t.value(0), t.value(1)
    shape, sizes = shape_of(value), shape_of(update)
    covered: SSAValue | None = None
    for dim, (extent, size) in enumerate(zip(shape, sizes, strict=True)):
        if size == extent:
            continue
        start = _clamped(t, t.value(2 + dim), extent - size)
        here = t.apply("sub", _counted(t, None, extent, start), t.reshape(start, [1]))
        last = t.scalar(size - 1, here)
        above = t.apply("ge", here, t.scalar(0, here))
        inside = t.apply("and", above, t.apply("le", here, last))
        source = t.apply("minimum", t.apply("maximum", here, t.scalar(0, here)), last)
        update = t.emit(GatherOp.get(update, source, dim))
        along = t.reshape(inside, [extent if d == dim else 1 for d in range(len(shape))])
        covered = along if covered is None else t.apply("and", covered, along)
    if covered is None:
        return update
    return t.apply("select", t.broadcast(covered, shape), update, value)


@converter("gather")
def gather(t: StablehloNode) -> SSAValue:
    """Where indexed dims are of size 1 in the slices, and the others whole."""
    data = t.value(0)
    sizes = t.integers("slice_sizes")
    indexed, collapsed = _gather_dims(t, "start_index_map"), _gather_dims(t, "collapsed_slice_dims")
    batch = _gather_dims(t, "operand_batching_dims")
    for dim, (size, extent) in enumerate(zip(sizes, shape_of(data), strict=True)):
        if size != (1 if dim in indexed or dim in batch else extent):
            t.unsupported(f"its slices have size {size} in dim {dim}, of {extent}")
    starts, index_batch = _index_tuples(t, [shape_of(data)[dim] for dim in indexed])
    rest = [dim for dim in range(len(sizes)) if dim not in indexed and dim not in batch]
    ordered = t.transpose(data, [*batch, *indexed, *rest])
    read = t.emit(GatherNdOp.get(ordered, starts, len(batch)))
    outer = len(shape_of(starts)) - 1
    read = _batch_in_place(t, read, index_batch, outer)
    kept = [dim for dim in range(len(sizes)) if dim not in collapsed and dim not in batch]
    # Dims of the slices that are indexed and kept have size 1; the others are in order.
    shaped = t.reshape(read, [*shape_of(read)[:outer], *(sizes[dim] for dim in kept)])
    offsets = _gather_dims(t, "offset_dims")
    result_rank = len(t.result_type.get_shape())
    places = [*(dim for dim in range(result_rank) if dim not in offsets), *offsets]
    return t.transpose(shaped, [places.index(dim) for dim in range(result_rank)])


def _gather_dims(t: StablehloNode, part: str) -> list[int]:
    return t.dims("dimension_numbers", part)


def _index_tuples(t: StablehloNode, extents: Sequence[int]) -> tuple[SSAValue, list[int]]:
    """The starts as `[batching…, others…, tuple]`, clamped; and which dims batch, without it."""
    starts = t.value(1)
    shape = shape_of(starts)
    text = t.text("dimension_numbers")
    last = text.rpartition("index_vector_dim = ")[2]
    vector = int(last.strip(" >,")) if "index_vector_dim" in text else 0
    if vector == len(shape):
        starts = t.reshape(starts, [*shape, 1])
    limits = np.array([extent - 1 for extent in extents], to_numpy(element_type_of(starts)))
    batching = _gather_dims(t, "start_indices_batching_dims")
    others = [dim for dim in range(len(shape_of(starts))) if dim != vector and dim not in batching]
    ordered = t.transpose(starts, [*batching, *others, vector])
    highest = t.constant(limits.reshape([1] * (len(shape_of(ordered)) - 1) + [-1]))
    lowest = t.scalar(0, ordered)
    clamped = t.apply("minimum", t.apply("maximum", ordered, lowest), highest)
    order = [dim - (dim > vector) for dim in (*batching, *others)]
    return clamped, order


def _batch_in_place(t: StablehloNode, read: SSAValue, order: Sequence[int], outer: int) -> SSAValue:
    """`read`, whose first dims are those of the starts in `order`, with these in their own."""
    rank = len(shape_of(read))
    return t.transpose(read, [*(order.index(dim) for dim in range(outer)), *range(outer, rank)])


def _clamped(t: StablehloNode, start: SSAValue, highest: int) -> SSAValue:
    """A start of rank 0 between 0 and `highest`."""
    at_least = t.apply("maximum", start, t.scalar(0, start))
    return t.apply("minimum", at_least, t.scalar(highest, start))


def _counted(
    t: StablehloNode, start: SSAValue | None, count: int, like: SSAValue | None = None
) -> SSAValue:
    """`start`, or 0 in the type of `like`, and the numbers that follow, `count` in all."""
    model = start if start is not None else like
    assert model is not None, "one of them says which type"
    numbers = t.emit(IotaOp.of(0, TensorType(element_type_of(model), [count])))
    return numbers if start is None else t.apply("add", numbers, t.reshape(start, [1]))
