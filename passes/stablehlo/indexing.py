"""Ops of StableHLO that read and write at computed places."""

from collections.abc import Iterable, Sequence

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of, shape_of, tensor_type
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.dtypes import i64, to_numpy
from braid.dialects.braid.indexing import GatherNdOp, GatherOp
from braid.dialects.braid.movement import ConcatOp, SliceOp
from braid.dialects.braid.size_evaluation import as_array
from braid.dialects.braid.size_limits import require_table
from braid.dialects.braid.sized_ops import slice_of
from braid.passes.stablehlo.node import StablehloNode, converter
from braid.support.sizes.expression import Extent


@converter("dynamic_slice")
def dynamic_slice(t: StablehloNode) -> SSAValue:
    """Start are scalars."""
    sizes = t.integers("slice_sizes")
    starts = [t.value(1 + dim) for dim in range(len(sizes))]
    return slice_at(t, t.value(0), range(len(sizes)), starts, sizes)


def slice_at(
    t: StablehloNode,
    value: SSAValue,
    dims: Iterable[int],
    starts: Sequence[SSAValue],
    sizes: Sequence[Extent],
) -> SSAValue:
    """Return `sizes` elements of `value` along `dims`, one dim after the other.

    Starts have one element each, and are moved so that the slice is inside.
    """
    for dim, start, size in zip(dims, starts, sizes, strict=True):
        extent = t.extents(value)[dim]
        if size != extent:
            first = _start(t, start, extent, size)
            places = t.apply("add", _counted(t, size, first), first)
            value = t.emit(GatherOp.get(value, places, dim))
    return value


@converter("dynamic_update_slice")
def dynamic_update_slice(t: StablehloNode) -> SSAValue:
    """Take each element from the update where that covers it, else from the operand."""
    value, update = t.value(0), t.value(1)
    shape, sizes = t.extents(value), t.extents(update)
    if 0 in sizes:
        return value
    if any(not isinstance(size, int) and size != n for size, n in zip(sizes, shape, strict=True)):
        t.unsupported(
            f"its update has the open sizes {list(sizes)}, and its operand {list(shape)}",
            hint="pad the update, and select by an iota which elements it covers",
        )
    covered: SSAValue | None = None
    for dim, (extent, size) in enumerate(zip(shape, sizes, strict=True)):
        if size == extent:
            continue
        start = _start(t, t.value(2 + dim), extent, size)
        here = t.apply("sub", _counted(t, extent, start), start)
        first, last = t.scalar(0, here), t.size_scalar(size - 1, here)
        inside = t.apply("and", t.apply("ge", here, first), t.apply("le", here, last))
        update = t.emit(GatherOp.get(update, t.clamp(here, first, last), dim))
        along = t.reshape(inside, [extent if d == dim else 1 for d in range(len(shape))])
        covered = along if covered is None else t.apply("and", covered, along)
    if covered is None:
        return update
    return t.apply("select", t.broadcast(covered, shape), update, value)


@converter("torch_index_select")
def torch_index_select(t: StablehloNode) -> SSAValue:
    """Take the slices along `dim` that the indices say, in place of that dim."""
    if t.integer("batch_dims"):
        t.unsupported("it has batch dims", hint="use 'stablehlo.gather'")
    return t.emit(GatherOp.get(t.value(0), t.value(1), t.integer("dim")))


@converter("gather")
def gather(t: StablehloNode) -> SSAValue:
    """Convert a gather of slices."""
    return _gather(t, t.integers("slice_sizes"))


@converter("dynamic_gather")
def dynamic_gather(t: StablehloNode) -> SSAValue:
    """Convert a gather whose slices have the sizes in operand 2."""
    return _gather(t, t.size_values(2))


def _gather(t: StablehloNode, sizes: Sequence[Extent]) -> SSAValue:
    data = t.value(0)
    indexed, collapsed = _gather_dims(t, "start_index_map"), _gather_dims(t, "collapsed_slice_dims")
    batch = _gather_dims(t, "operand_batching_dims")
    for dim, size in enumerate(sizes):
        if dim not in (*indexed, *batch):  # it starts at 0
            data = t.part(data, dim, 0, size)
    shape = t.extents(data)
    # A start in a dim that a slice has whole can only be 0.
    starting = [n for n, dim in enumerate(indexed) if sizes[dim] == 1 or sizes[dim] != shape[dim]]
    chosen = [indexed[number] for number in starting]
    is_one = t.index_vector_dim("dimension_numbers") == 0 and len(shape_of(t.value(1))) <= 1
    if is_one and not batch:
        return _one_slice(t, data, sizes, starting, chosen, collapsed)
    starting, indexed = (starting, chosen) if chosen else (range(len(indexed)), indexed)
    starts, index_batch = _index_tuples(t, [shape[d] - sizes[d] for d in indexed], starting)
    outer = len(shape_of(starts)) - 1
    parts = [dim for dim in indexed if sizes[dim] != 1]
    starts = _widened(t, starts, indexed, parts, [t.fixed(sizes[dim]) for dim in parts])
    rest = [dim for dim in range(len(sizes)) if dim not in indexed and dim not in batch]
    ordered = t.transpose(data, [*batch, *indexed, *rest])
    read = t.emit(GatherNdOp.get(ordered, starts, len(batch)))
    read = _batch_in_place(t, read, index_batch, outer)
    sliced = [*parts, *rest]
    order = sorted(range(len(sliced)), key=lambda place: sliced[place])
    read = t.transpose(read, [*range(outer), *(outer + place for place in order)])
    kept = [dim for dim in range(len(sizes)) if dim not in collapsed and dim not in batch]
    # Dims of the slices that are indexed and kept have size 1 or are in order, as all others are.
    shaped = t.reshape(read, [*extents_of(read)[:outer], *(sizes[dim] for dim in kept)])
    offsets = _gather_dims(t, "offset_dims")
    result_rank = len(t.result_type.get_shape())
    places = [*(dim for dim in range(result_rank) if dim not in offsets), *offsets]
    return t.transpose(shaped, [places.index(dim) for dim in range(result_rank)])


def _widened(
    t: StablehloNode,
    starts: SSAValue,
    indexed: Sequence[int],
    dims: Sequence[int],
    sizes: Sequence[int],
) -> SSAValue:
    """Return the places `[starts…, sizes…, tuple]` of all elements of slices that are longer than 1
    in `dims`.
    """
    if not dims:
        return starts
    outer, length = extents_of(starts)[:-1], t.fixed(extents_of(starts)[-1])
    require_table(int(np.prod(sizes)) * length, "places in the slices")
    offsets = np.zeros([*[1] * len(outer), *sizes, length], to_numpy(element_type_of(starts)))
    for dim, counted in zip(dims, np.indices(sizes), strict=True):
        offsets[..., indexed.index(dim)] = counted
    separate = t.reshape(starts, [*outer, *[1] * len(dims), length])
    return t.apply("add", separate, t.constant(offsets))


def _one_slice(
    t: StablehloNode,
    data: SSAValue,
    sizes: Sequence[Extent],
    numbers: Sequence[int],
    indexed: Sequence[int],
    collapsed: Sequence[int],
) -> SSAValue:
    """Return the only slice of a gather, of any size, without the dims that are `collapsed`."""
    tuple_ = t.reshape(t.value(1), [len(_gather_dims(t, "start_index_map"))])
    starts = [t.emit(SliceOp.get(tuple_, [number], [1])) for number in numbers]
    value = slice_at(t, data, indexed, starts, [sizes[dim] for dim in indexed])
    extents = [extent for dim, extent in enumerate(t.extents(value)) if dim not in collapsed]
    return t.reshape(value, extents)


def _gather_dims(t: StablehloNode, part: str) -> list[int]:
    return t.dims("dimension_numbers", part)


def _index_tuples(
    t: StablehloNode, last: Sequence[Extent], numbers: Sequence[int]
) -> tuple[SSAValue, list[int]]:
    """Return the starts as `[batching…, others…, tuple]`, clamped; and which dims batch, without
    it.

    Only the entries at these positions of a tuple are used, clamped to at most `last`.
    """
    starts = _index(t, t.value(1), t.extents(t.value(0)))
    shape = extents_of(starts)
    vector = t.index_vector_dim("dimension_numbers")
    if vector == len(shape):
        starts = t.reshape(starts, [*shape, 1])
    batching = _gather_dims(t, "start_indices_batching_dims")
    others = [dim for dim in range(len(shape_of(starts))) if dim != vector and dim not in batching]
    ordered = t.transpose(starts, [*batching, *others, vector])
    rank = len(shape_of(ordered))
    if numbers and len(numbers) < t.fixed(extents_of(ordered)[-1]):
        outer = [*extents_of(ordered)[:-1], 1]
        parts = [t.emit(slice_of(ordered, [0] * (rank - 1) + [n], outer)) for n in numbers]
        ordered = parts[0] if len(parts) == 1 else t.emit(ConcatOp.get(parts, rank - 1))
    limits = as_array(last, [1] * (rank - 1) + [len(last)])
    highest = t.sizes(limits, element_type_of(ordered))
    order = [dim - (dim > vector) for dim in (*batching, *others)]
    return t.clamp(ordered, t.scalar(0, ordered), highest), order


def _batch_in_place(t: StablehloNode, read: SSAValue, order: Sequence[int], outer: int) -> SSAValue:
    """Return `read`, whose first dims are those of the starts in `order`, with these in their own
    place.
    """
    rank = len(shape_of(read))
    return t.transpose(read, [*(order.index(dim) for dim in range(outer)), *range(outer, rank)])


def _start(t: StablehloNode, value: SSAValue, extent: Extent, size: Extent) -> SSAValue:
    """Return the start of a slice of `size`, clamped to `extent`; its shape is `[1]`."""
    start = t.reshape(_index(t, value, [extent]), [1])
    return t.clamp(start, t.scalar(0, start), t.size_scalar(extent - size, start))


def _index(t: StablehloNode, value: SSAValue, extents: Sequence[Extent]) -> SSAValue:
    """Return indices in a type that has all numbers up to `extents`: theirs may be too narrow."""
    most = np.iinfo(to_numpy(element_type_of(value))).max
    is_wide = all(isinstance(extent, int) and extent <= most for extent in extents)
    return value if is_wide or element_type_of(value) == i64 else t.cast(value, i64)


def _counted(t: StablehloNode, count: Extent, like: SSAValue) -> SSAValue:
    """Return the numbers below `count`, in the type of `like`."""
    return t.emit(IotaOp.of(0, tensor_type(element_type_of(like), [count])))
