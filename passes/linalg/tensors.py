"""Conversion of ops of `tensor` and `linalg` that move elements, and of softmax."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    TensorType,
)
from xdsl.ir import SSAValue

from braid.dialects.braid.base import shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.movement import ConcatOp, SliceOp
from braid.dialects.braid.normalization import SoftmaxOp
from braid.dialects.braid.size_facts import may_be_at_most
from braid.dialects.braid.sized_ops import pad_of, slice_of
from braid.passes.linalg.node import UpstreamNode
from braid.support.sizes.assumptions import Answer
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import ceildiv, product_of


def _constant(t: UpstreamNode) -> SSAValue:
    value = t.attribute("value")
    if not isinstance(value, DenseIntOrFPElementsAttr):
        t.leave()
    return t.emit(ConstantOp.on(value=cast(Any, value)))


def _collapse(t: UpstreamNode) -> SSAValue:
    shape, groups = t.shape(t.value(0)), t.attribute("reassociation")
    if not isinstance(groups, ArrayAttr):
        t.leave()
    dims = [[int(each.value.data) for each in group] for group in cast(Any, groups)]
    if [dim for group in dims for dim in group] != list(range(len(shape))):
        t.leave()
    return t.reshape(t.value(0), [product_of(shape[dim] for dim in group) for group in dims])


def _expand(t: UpstreamNode) -> SSAValue:
    t.shape(t.value(0))
    field = t.attribute("static_output_shape")
    if field is None:
        return t.reshape(t.value(0), t.shape(t.op.results[0]))
    (shape,) = _mixed(t, ["static_output_shape"], 1)
    return t.reshape(t.value(0), shape)


def _box(t: UpstreamNode, first: int) -> tuple[list[Extent], list[Extent], list[int]]:
    """Return offsets, sizes and strides; raise NotConvertedError if one is computed from data.

    `first` is the number of operands that are tensors.
    """
    offsets, sizes, strides = _mixed(t, ("static_offsets", "static_sizes", "static_strides"), first)
    return offsets, sizes, [stride if isinstance(stride, int) else t.leave() for stride in strides]


def _mixed(t: UpstreamNode, names: Sequence[str], first: int) -> list[list[Extent]]:
    """Return lists of numbers, with operands from `first` on in place of those that are dynamic."""
    places = itertools.count(first)
    return [
        [t.index(t.value(next(places))) if n == DYNAMIC_INDEX else n for n in _integers(t, name)]
        for name in names
    ]


def _integers(t: UpstreamNode, name: str, default: Sequence[int] | None = None) -> list[int]:
    field = t.attribute(name)
    if field is None and default is not None:
        return list(default)
    if not isinstance(field, DenseArrayBase):
        t.leave()
    return [int(number) for number in cast(Any, field).get_values()]


def _extract_slice(t: UpstreamNode) -> SSAValue:
    offsets, sizes, strides = _box(t, 1)
    t.shape(t.value(0))
    if min(strides, default=1) < 1:
        t.leave()
    value = t.emit(slice_of(t.value(0), offsets, sizes, strides))
    kept = len(shape_of(t.op.results[0]))
    return t.reshape(value, sizes if kept == len(sizes) else t.shape(t.op.results[0]))


def _insert_slice(t: UpstreamNode) -> SSAValue:
    """Concatenate the destination's pieces around the inserted box, from the last dim on."""
    *box, strides = _box(t, 2)
    offsets, sizes = (_fixed(t, each) for each in box)
    whole = _fixed(t, t.shape(t.value(1)))
    if 0 in sizes:
        return t.value(1)
    if any(stride != 1 for stride in strides):
        t.leave()
    joined = t.reshape(t.value(0), sizes)
    for dim in range(len(whole) - 1, -1, -1):
        end = offsets[dim] + sizes[dim]
        before = _piece(t, offsets, sizes, whole, dim, (0, offsets[dim]))
        after = _piece(t, offsets, sizes, whole, dim, (end, whole[dim]))
        if before or after:
            joined = t.emit(ConcatOp.get([*before, joined, *after], dim))
    return joined


def _fixed(t: UpstreamNode, extents: Sequence[Extent]) -> list[int]:
    """Return extents that are numbers; raise NotConvertedError for a size."""
    return [extent if isinstance(extent, int) else t.leave() for extent in extents]


def _piece(
    t: UpstreamNode,
    offsets: Sequence[int],
    sizes: Sequence[int],
    whole: Sequence[int],
    dim: int,
    bounds: tuple[int, int],
) -> list[SSAValue]:
    """Return the destination between two bounds of `dim`, within the box in earlier dims.

    Return an empty list if there is nothing between the bounds.
    """
    begin, end = bounds
    if begin == end:
        return []
    starts = [*offsets[:dim], begin, *[0] * (len(whole) - dim - 1)]
    extents = [*sizes[:dim], end - begin, *whole[dim + 1 :]]
    return [t.emit(SliceOp.get(t.value(1), starts, extents))]


def _pad(t: UpstreamNode) -> SSAValue:
    low, high = _mixed(t, ("static_low", "static_high"), 1)
    t.shape(t.value(0))
    last = t.op.regions[0].block.last_op
    number = None if last is None else t.number_in(last.operands[0])
    if number is None or any(t.assumptions.at_most(0, n) is not Answer.YES for n in (*low, *high)):
        t.leave()
    return t.emit(pad_of(t.value(0), low, high, number))


def _concat(t: UpstreamNode) -> SSAValue:
    dim = t.attribute("dim")
    if not isinstance(dim, IntegerAttr):
        t.leave()
    for value in t.op.operands:
        t.shape(value)
    return t.emit(ConcatOp.get(list(t.op.operands), cast(IntegerAttr[Any], dim).value.data))


def _cast(t: UpstreamNode) -> SSAValue:
    t.shape(t.value(0))
    return t.value(0)  # its open dims get the extents of the result


def _splat(t: UpstreamNode) -> SSAValue:
    number = t.number_in(t.value(0))
    shape = t.shape(t.op.results[0])
    if number is None:
        t.leave()
    return splat(t, number, shape)


def splat(t: UpstreamNode, number: float, shape: Sequence[Extent]) -> SSAValue:
    """Return a tensor whose elements are all `number`, of the op's element type."""
    element_type = cast(TensorType[Any], t.op.results[0].type).element_type
    with np.errstate(over="ignore"):
        one = np.array(number).astype(to_numpy(element_type))
    return t.broadcast(t.constant(one.reshape([1] * len(shape))), shape)


def _softmax(t: UpstreamNode) -> SSAValue:
    dim = t.attribute("dimension")
    t.shape(t.value(0))
    if not isinstance(dim, IntegerAttr):
        t.leave()
    return t.emit(SoftmaxOp.get(t.value(0), cast(IntegerAttr[Any], dim).value.data))


def _tiles(t: UpstreamNode, rank: int) -> tuple[dict[int, Extent], list[int]]:
    """Return the tile sizes by the dims that are tiled, and the permutation of the outer dims."""
    dims, outer = _integers(t, "inner_dims_pos"), _integers(t, "outer_dims_perm", ())
    count = _integers(t, "static_inner_tiles").count(DYNAMIC_INDEX)
    (sizes,) = _mixed(t, ["static_inner_tiles"], len(t.op.operands) - count)
    is_valid = len(dims) == len(sizes) and all(
        t.assumptions.at_most(1, n) is Answer.YES for n in sizes
    )
    if not is_valid or len(set(dims)) < len(dims):
        t.leave()
    if sorted(outer or range(rank)) != list(range(rank)):
        t.leave()
    return dict(zip(dims, sizes, strict=True)), outer or list(range(rank))


def _pack(t: UpstreamNode) -> SSAValue:
    """Pad to whole tiles, split each tiled dim in two, and move the inner dims last."""
    value = t.value(0)
    shape = t.shape(value)
    rank = len(shape)
    tile, outer = _tiles(t, rank)
    counts = [ceildiv(n, tile.get(dim, 1)) for dim, n in enumerate(shape)]
    high = [counts[dim] * tile.get(dim, 1) - n for dim, n in enumerate(shape)]
    if any(n != 0 for n in high):
        number = t.number_in(t.value(2)) if len(t.op.operands) > 2 else None
        if number is None:
            t.leave()
        value = t.emit(pad_of(value, [0] * rank, high, number))
    split: list[Extent] = []
    place: dict[int, int] = {}
    for dim in range(rank):
        place[dim] = len(split)
        split += [counts[dim], tile[dim]] if dim in tile else [counts[dim]]
    order = [*(place[dim] for dim in outer), *(place[dim] + 1 for dim in tile)]
    return t.transpose(t.reshape(value, split), order)


def _unpack(t: UpstreamNode) -> SSAValue:
    """Undo `_pack`: move the inner dims back, merge them, and cut off the padding."""
    value, result = t.value(0), t.shape(t.value(1))
    shape = t.shape(value)
    rank = len(result)
    tile, outer = _tiles(t, rank)
    if len(shape) != rank + len(tile):
        t.leave()
    order: list[int] = []
    padded: list[Extent] = []
    for dim in range(rank):
        order.append(outer.index(dim))
        padded.append(shape[outer.index(dim)] * tile.get(dim, 1))
        if dim in tile:
            order.append(rank + list(tile).index(dim))
    if not all(map(may_be_at_most, result, padded)):
        t.leave()
    merged = t.reshape(t.transpose(value, order), padded)
    return merged if result == tuple(padded) else t.emit(slice_of(merged, [0] * rank, result))


CONVERTERS: Mapping[str, Callable[[UpstreamNode], SSAValue]] = {
    "arith.constant": _constant,
    "linalg.pack": _pack,
    "linalg.softmax": _softmax,
    "linalg.unpack": _unpack,
    "tensor.cast": _cast,
    "tensor.collapse_shape": _collapse,
    "tensor.concat": _concat,
    "tensor.expand_shape": _expand,
    "tensor.extract_slice": _extract_slice,
    "tensor.insert_slice": _insert_slice,
    "tensor.pad": _pad,
    "tensor.splat": _splat,
}
"""The conversion of each op, by the name of the op."""
