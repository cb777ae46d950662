"""Build the common parts of attention ops: heads, masks, and softmax(Q · Kᵀ) · V."""

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of, fits, tensor_type
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.dtypes import i64
from braid.dialects.braid.normalization import SoftmaxOp
from braid.dialects.braid.size_facts import may_equal
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    cast,
    concat,
    drop_dims,
    matmul,
    reshape,
    scalar,
    size_scalar,
    slice_dim,
    swap_last,
    transpose,
    widened,
    with_extents,
)
from braid.frontends.onnx.building.node import Node
from braid.support.sizes.expression import Extent

MASKED = -10000.0
"""The number that is added to the scores of masked keys, where `mask_filter_value` gives none."""


def number_of_heads(node: Node, name: str = "num_heads") -> int:
    """Return an attribute that is a number of heads. Raises BraidError if it is not positive."""
    heads = node.integer(name)
    if heads < 1:
        node.fail(f"attribute '{name}' is {heads}, expected at least 1")
    return heads


def width(node: Node, what: str, value: SSAValue) -> int:
    """Return the last extent of a value, which must be known."""
    last = extents_of(value)[-1]
    if not isinstance(last, int):
        node.unsupported(f"the last dim of {what} is open", hint="give it a fixed size")
    return last


def split_heads(b: Builder, node: Node, value: SSAValue, heads: int) -> SSAValue:
    """Return `[batch, length, heads · size]` as `[batch, heads, length, size]`."""
    batch, length, _ = extents_of(value)
    total = width(node, "a tensor of heads", value)
    if total % heads:
        node.fail(f"{total} columns are not divisible by {heads} heads")
    split = reshape(b, value, [batch, length, heads, total // heads])
    return transpose(b, split, [0, 2, 1, 3])


def join_heads(b: Builder, value: SSAValue) -> SSAValue:
    """Return `[batch, heads, length, size]` as `[batch, length, heads · size]`."""
    batch, heads, length, size = extents_of(value)
    return reshape(b, transpose(b, value, [0, 2, 1, 3]), [batch, length, heads * size])


def scores(b: Builder, q: SSAValue, k: SSAValue, scale: float, *added: SSAValue | None) -> SSAValue:
    """Return Q · Kᵀ · scale plus `added`, in f32 at least.

    A scale of 0 stands for 1 / sqrt(size).
    """
    if not scale:
        size = extents_of(q)[-1]
        assert isinstance(size, int), "heads of a fixed number of columns"
        scale = 1 / math.sqrt(max(1, size))
    product = widened(b, matmul(b, q, swap_last(b, k)))
    result = apply(b, "mul", product, scalar(b, scale, product))
    for each in added:
        if each is not None:
            result = apply(b, "add", result, cast(b, each, element_type_of(result)))
    return result


def weighted(b: Builder, logits: SSAValue, v: SSAValue) -> SSAValue:
    """Return softmax of the scores along the keys, times V."""
    shares = b.emit(SoftmaxOp.get(logits, len(extents_of(logits)) - 1))
    return matmul(b, cast(b, shares, element_type_of(v)), v)


def positions(b: Builder, length: Extent, dim: int) -> SSAValue:
    """Return 0, 1, … along `dim` of four dims, as i64."""
    shape: list[Extent] = [1, 1, 1, 1]
    shape[dim] = length
    return b.emit(IotaOp.of(dim, tensor_type(i64, shape)))


def hidden_where(b: Builder, is_hidden: SSAValue, value: float) -> SSAValue:
    """Return `value` where a key is hidden, else 0, in f32."""
    hidden, shown = (b.constant(np.full((1, 1, 1, 1), n, np.float32)) for n in (value, 0))
    return apply(b, "select", is_hidden, hidden, shown)


def causal_mask(b: Builder, length: Extent, total: Extent, past: Extent) -> SSAValue:
    """Return a mask `[1, 1, length, total]` that hides keys after the query.

    The query comes after the past. The last query sees all keys, as in ONNX Runtime: of
    self-attention it does so anyway.
    """
    rows, keys = positions(b, length, 2), positions(b, total, 3)
    seen = apply(b, "add", rows, size_scalar(b, past, rows))
    is_hidden = apply(b, "gt", keys, seen)
    if past + length != total:
        is_last = apply(b, "eq", rows, size_scalar(b, length - 1, rows))
        is_hidden = apply(b, "and", is_hidden, apply(b, "not", is_last))
    return hidden_where(b, is_hidden, float(np.finfo(np.float32).min))


def padding_mask(
    b: Builder, node: Node, index: int, batch: Extent, length: Extent, total: Extent
) -> SSAValue | None:
    """Return mask input `index` as an addend of scores, None without one.

    It is `[batch, total]` or `[batch, length, total]` with 0 for hidden keys, `[batch]` with the
    number of keys, or `[2 · batch]` with the ends, then the starts of the keys.
    """
    hidden, mask = node.number("mask_filter_value", MASKED), node.optional(index)
    if mask is None:
        return None
    shape = extents_of(mask)
    for kind, own in (
        ([batch, total], [batch, 1, 1, total]),
        ([batch, length, total], [batch, 1, length, total]),
    ):
        if fits(shape, kind):
            mask = with_extents(b, mask, kind)
            shown = apply(b, "gt", mask, scalar(b, 0, mask))
            return hidden_where(b, reshape(b, apply(b, "not", shown), own), hidden)
    if len(shape) != 1 or not (may_equal(shape[0], batch) or may_equal(shape[0], batch * 2)):
        node.unsupported(
            f"input {index} ('{node.proto.input[index]}') has shape {list(shape)}, expected "
            f"[{batch}, {total}], [{batch}, {length}, {total}], [{batch}] or [{batch * 2}]"
        )
    keys = positions(b, total, 3)
    bounds = cast(b, mask, i64)
    ends = reshape(b, slice_dim(b, bounds, 0, 0, batch), [batch, 1, 1, 1])
    is_hidden = apply(b, "ge", keys, ends)
    if not may_equal(shape[0], batch):
        starts = reshape(b, slice_dim(b, bounds, 0, batch, batch), [batch, 1, 1, 1])
        is_hidden = apply(b, "or", is_hidden, apply(b, "lt", keys, starts))
    return hidden_where(b, is_hidden, hidden)


def attention_bias(
    b: Builder, node: Node, index: int, heads: int, shape: Sequence[Extent]
) -> SSAValue | None:
    """Return input `index`, an addend of scores, None without one.

    `shape` is `[batch, length, total]` of the scores.
    """
    value = node.optional(index)
    if value is None:
        return None
    batch, length, total = shape
    own = extents_of(value)
    if len(own) != 4 or not (
        (own[0] == 1 or may_equal(own[0], batch))
        and (own[1] == 1 or may_equal(own[1], heads))
        and fits(own[2:], [length, total])
    ):
        node.fail(
            f"input {index} has shape {list(own)}, expected [{batch} or 1, {heads} or 1, {length}, "
            f"{total}]"
        )
    expected = [
        extent if extent == 1 else wanted
        for extent, wanted in zip(own, [batch, heads, length, total], strict=True)
    ]
    return with_extents(b, value, expected)


def with_past(b: Builder, node: Node, past: SSAValue, now: SSAValue, what: str) -> SSAValue:
    """Return past keys or values, then those of now, `[batch, heads, length, size]`."""
    expected = list(extents_of(now))
    expected[2] = extents_of(past)[2] if len(extents_of(past)) == 4 else expected[2]
    if not fits(extents_of(past), expected):
        node.fail(f"{what} has shape {list(extents_of(past))}, expected {expected}")
    return concat(b, [with_extents(b, past, expected), now], 2)


def half_of(b: Builder, pair: SSAValue, index: int) -> SSAValue:
    """Return part `index` of a tensor whose first dim holds two."""
    return drop_dims(b, slice_dim(b, pair, 0, index, 1), [0])
