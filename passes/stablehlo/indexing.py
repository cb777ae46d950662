"""Ops of StableHLO that read and write at computed places."""

import re
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.dtypes import i64, to_numpy
from braid.dialects.braid.indexing import GatherNdOp, GatherOp
from braid.dialects.braid.movement import ConcatOp, SliceOp
from braid.passes.stablehlo.node import StablehloNode, converter


@converter("dynamic_slice")
def dynamic_slice(t: StablehloNode) -> SSAValue:
    """One dim after the other; starts are moved so that the slice is inside."""
    value = t.value(0)
    for dim, (extent, size) in enumerate(
        zip(t.extents(value), t.integers("slice_sizes"), strict=True)
    ):
        if size < extent:
            start = _start(t, 1 + dim, extent, size)
            places = t.apply("add", _counted(t, size, start), start)
            value = t.emit(GatherOp.get(value, places, dim))
    return value


@converter("dynamic_update_slice")
def dynamic_update_slice(t: StablehloNode) -> SSAValue:
    """Every element comes from the update, where that covers it, or stays."""
    value, update = t.value(0), t.value(1)
    shape, sizes = t.extents(value), t.extents(update)
    if 0 in sizes:
        return value
    covered: SSAValue | None = None
    for dim, (extent, size) in enumerate(zip(shape, sizes, strict=True)):
        if size == extent:
            continue
        start = _start(t, 2 + dim, extent, size)
        here = t.apply("sub", _counted(t, extent, start), start)
        first, last = t.scalar(0, here), t.scalar(size - 1, here)
        inside = t.apply("and", t.apply("ge", here, first), t.apply("le", here, last))
        update = t.emit(GatherOp.get(update, t.clamp(here, first, last), dim))
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
    shape = t.extents(data)
    # A start in a dim that a slice has whole can only be 0.
    starting = [n for n, dim in enumerate(indexed) if sizes[dim] == 1 or sizes[dim] < shape[dim]]
    if starting:
        indexed = [indexed[number] for number in starting]
    for dim, (size, extent) in enumerate(zip(sizes, shape, strict=True)):
        if size != (1 if dim in indexed or dim in batch else extent):
            t.unsupported(
                f"its slices have size {size} in dim {dim}, of {extent}",
                hint="use dynamic_slice, or slices of size 1 in the dims that are indexed",
            )
    starts, index_batch = _index_tuples(t, [shape[dim] for dim in indexed], starting)
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


def _index_tuples(
    t: StablehloNode, extents: Sequence[int], numbers: Sequence[int]
) -> tuple[SSAValue, list[int]]:
    """The starts as `[batching…, others…, tuple]`, clamped; and which dims batch, without it.

    Of a tuple only the numbers in these places are taken, which have `extents`.
    """
    starts = _index(t, t.value(1), max(extents, default=0))
    shape = shape_of(starts)
    vector = re.search(r"\bindex_vector_dim = ([0-9]+)", t.text("dimension_numbers"))
    vector = int(vector[1]) if vector else 0
    if vector == len(shape):
        starts = t.reshape(starts, [*shape, 1])
    limits = np.array([extent - 1 for extent in extents], to_numpy(element_type_of(starts)))
    batching = _gather_dims(t, "start_indices_batching_dims")
    others = [dim for dim in range(len(shape_of(starts))) if dim != vector and dim not in batching]
    ordered = t.transpose(starts, [*batching, *others, vector])
    rank = len(shape_of(ordered))
    if numbers and len(numbers) < shape_of(ordered)[-1]:
        outer = [*shape_of(ordered)[:-1], 1]
        taken = [SliceOp.get(ordered, [0] * (rank - 1) + [n], outer) for n in numbers]
        parts = [t.emit(each) for each in taken]
        ordered = parts[0] if len(parts) == 1 else t.emit(ConcatOp.get(parts, rank - 1))
    highest = t.constant(limits.reshape([1] * (len(shape_of(ordered)) - 1) + [-1]))
    order = [dim - (dim > vector) for dim in (*batching, *others)]
    return t.clamp(ordered, t.scalar(0, ordered), highest), order


def _batch_in_place(t: StablehloNode, read: SSAValue, order: Sequence[int], outer: int) -> SSAValue:
    """`read`, whose first dims are those of the starts in `order`, with these in their own."""
    rank = len(shape_of(read))
    return t.transpose(read, [*(order.index(dim) for dim in range(outer)), *range(outer, rank)])


def _start(t: StablehloNode, operand: int, extent: int, size: int) -> SSAValue:
    """The start of a slice of `size`, which is moved inside of `extent`; its shape is `[1]`."""
    start = t.reshape(_index(t, t.value(operand), extent), [1])
    return t.clamp(start, t.scalar(0, start), t.scalar(extent - size, start))


def _index(t: StablehloNode, value: SSAValue, extent: int) -> SSAValue:
    """Indices in a type that has all numbers up to `extent`: theirs may be too narrow."""
    is_wide = extent <= np.iinfo(to_numpy(element_type_of(value))).max
    return value if is_wide else t.cast(value, i64)


def _counted(t: StablehloNode, count: int, like: SSAValue) -> SSAValue:
    """The numbers below `count`, in the type of `like`."""
    return t.emit(IotaOp.of(0, TensorType(element_type_of(like), [count])))
