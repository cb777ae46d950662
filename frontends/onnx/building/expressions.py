"""Shorthands for the expressions that importers are made of; numpy's rules for shapes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import bf16, f16, f32
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import is_float, to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import (
    BroadcastOp,
    ConcatOp,
    ReshapeOp,
    TransposeOp,
    reshape_dim_by_dim,
)
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.size_evaluation import as_array
from braid.dialects.braid.size_facts import may_equal
from braid.dialects.braid.sized_ops import pad_of, slice_of
from braid.frontends.onnx.building.builder import Builder
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of


def apply(b: Builder, name: str, *operands: SSAValue) -> SSAValue:
    """Return elementwise `name` of the operands; those of lower rank get leading dims of size 1."""
    rank = max(len(extents_of(value)) for value in operands)
    return b.emit(elementwise(name, *(with_rank(b, value, rank) for value in operands)))


def with_rank(b: Builder, value: SSAValue, rank: int) -> SSAValue:
    """Return `value` with leading dims of size 1 added until it has `rank`."""
    shape = extents_of(value)
    return reshape(b, value, [1] * (rank - len(shape)) + list(shape))


def scalar(b: Builder, number: Any, like: SSAValue) -> SSAValue:
    """Return a number in the element type of `like`, with its rank and extents of 1."""
    dtype = to_numpy(element_type_of(like))
    return b.constant(np.full([1] * len(extents_of(like)), number, dtype))


def size_scalar(b: Builder, size: Extent, like: SSAValue) -> SSAValue:
    """Return a size in the element type of `like`, with its rank and extents of 1."""
    value = b.sizes(as_array([size], [1] * len(extents_of(like))))
    return cast(b, value, element_type_of(like))


def cast(b: Builder, value: SSAValue, element_type: Attribute) -> SSAValue:
    """Return `value` in another element type, or itself if it has that."""
    if element_type_of(value) == element_type:
        return value
    return b.emit(elementwise("cast", value, element_type=element_type))


def reshape(b: Builder, value: SSAValue, shape: Sequence[Extent]) -> SSAValue:
    """Return `value` in another shape, or itself if it has that."""
    return value if tuple(shape) == extents_of(value) else b.emit(ReshapeOp.get(value, shape))


def with_extents(b: Builder, value: SSAValue, shape: Sequence[Extent]) -> SSAValue:
    """Return `value` with the extents of `shape`; each run checks that they equal its own.

    Returns it unchanged if they are its own in every run, or in none.
    """
    own = extents_of(value)
    if len(own) != len(shape) or not all(map(may_equal, own, shape)):
        return value
    return reshape_dim_by_dim(value, shape, b.emit)


def transpose(b: Builder, value: SSAValue, permutation: Sequence[int]) -> SSAValue:
    """Return `value` with dim `permutation[i]` as dim i, or itself if nothing moves."""
    if list(permutation) == list(range(len(extents_of(value)))):
        return value
    return b.emit(TransposeOp.get(value, permutation))


def swap_last(b: Builder, value: SSAValue) -> SSAValue:
    """Return `value` with the last two dims exchanged."""
    rank = len(extents_of(value))
    return transpose(b, value, [*range(rank - 2), rank - 1, rank - 2])


def broadcast(b: Builder, value: SSAValue, shape: Sequence[Extent]) -> SSAValue:
    """Repeat `value` to `shape`, which may have more dims; return itself if it has that."""
    value = with_rank(b, value, len(shape))
    return value if tuple(shape) == extents_of(value) else b.emit(BroadcastOp.get(value, shape))


def concat(b: Builder, values: Sequence[SSAValue], dim: int) -> SSAValue:
    """Concatenate values along `dim`, without empty ones; a single one is returned unchanged.

    Raises VerifyException if they do not fit together, also if they are empty.
    """
    ConcatOp.get(values, dim).erase()
    values = [value for value in values if extents_of(value)[dim] != 0] or values[:1]
    return values[0] if len(values) == 1 else b.emit(ConcatOp.get(values, dim))


def slice_dim(b: Builder, value: SSAValue, dim: int, offset: Extent, size: Extent) -> SSAValue:
    """Return `size` elements from `offset` on along `dim`, or `value` itself if these are all."""
    shape = extents_of(value)
    if (offset, size) == (0, shape[dim]):
        return value
    sizes = list(shape)
    offsets: list[Extent] = [0] * len(shape)
    offsets[dim], sizes[dim] = offset, size
    return b.emit(slice_of(value, offsets, sizes))


def pad(
    b: Builder, value: SSAValue, low: Sequence[Extent], high: Sequence[Extent], number: float
) -> SSAValue:
    """Return `value` with `number` around it, or itself if nothing is added."""
    return (
        b.emit(pad_of(value, low, high, number))
        if any(width != 0 for width in (*low, *high))
        else value
    )


def reduce(b: Builder, kind: str, value: SSAValue, dims: Sequence[int]) -> SSAValue:
    """Reduce `dims` to size 1; return `value` itself if there are none."""
    return b.emit(ReduceOp.get(value, kind, dims)) if dims else value


def widened(b: Builder, value: SSAValue) -> SSAValue:
    """Return `value` to be summed up: f16 and bf16, which may not hold the sum, become f32."""
    return cast(b, value, f32) if element_type_of(value) in (f16, bf16) else value


def mean(b: Builder, value: SSAValue, dims: Sequence[int]) -> SSAValue:
    """Return the mean over `dims`, which are kept with extent 1.

    Sums of floats are in f32 at least; means of integers are rounded toward zero.
    """
    count = product_of(extents_of(value)[dim] for dim in dims)
    total = reduce(b, "add", widened(b, value), dims)
    if not isinstance(count, int):
        return cast(b, apply(b, "div", total, size_scalar(b, count, total)), element_type_of(value))
    if not is_float(element_type_of(value)):
        return apply(b, "div", total, scalar(b, count, total))
    share = 1 / count if count else np.nan
    average = apply(b, "mul", total, scalar(b, share, total))
    return cast(b, average, element_type_of(value))


def drop_dims(b: Builder, value: SSAValue, dims: Sequence[int]) -> SSAValue:
    """Return `value` without `dims`; raise ValueError if one cannot have extent 1."""
    if not all(may_equal(extents_of(value)[dim], 1) for dim in dims):
        raise ValueError(f"dims {list(dims)} of {list(extents_of(value))} are not all 1")
    return reshape(b, value, [e for dim, e in enumerate(extents_of(value)) if dim not in dims])


def matmul(b: Builder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """Return numpy's matmul: vectors become matrices and back, batch dims are aligned."""
    left, right = extents_of(lhs), extents_of(rhs)
    a = reshape(b, lhs, [1, *left]) if len(left) == 1 else lhs
    c = reshape(b, rhs, [*right, 1]) if len(right) == 1 else rhs
    rank = max(len(extents_of(a)), len(extents_of(c)))
    product = b.emit(MatmulOp.on(with_rank(b, a, rank), with_rank(b, c, rank)))
    shape = list(extents_of(product))
    if len(right) == 1:
        del shape[-1]
    if len(left) == 1:
        del shape[-1 if len(right) == 1 else -2]
    return reshape(b, product, shape)


def normalized(dim: int, rank: int) -> int:
    """Return a dim that may be negative as a nonnegative one; raise ValueError if out of range."""
    if not -rank <= dim < rank:
        raise ValueError(f"there is no dim {dim} where there are {rank}")
    return dim + rank if dim < 0 else dim
