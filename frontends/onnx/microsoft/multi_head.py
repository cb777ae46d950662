"""`Attention`, `QAttention` and `MultiHeadAttention`."""

from collections.abc import Sequence
from itertools import accumulate

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of, fits
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    cast,
    concat,
    drop_dims,
    matmul,
    reshape,
    slice_dim,
    transpose,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.opsets import MICROSOFT
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.microsoft.attention import (
    attention_bias,
    causal_mask,
    half_of,
    join_heads,
    number_of_heads,
    padding_mask,
    scores,
    split_heads,
    weighted,
    width,
    with_past,
)
from braid.frontends.onnx.microsoft.attributes import flag
from braid.frontends.onnx.microsoft.quantized import as_real
from braid.frontends.onnx.ops.quantization import centered
from braid.support.sizes.expression import Extent


@importer("Attention", domain=MICROSOFT)
def attention(b: Builder, node: Node) -> list[SSAValue]:
    """Import self-attention, with the products that make Q, K and V of the input."""
    x, weights, bias = node.input(0), node.input(1), node.optional(2)
    _require_projection(node, x, weights, bias)
    _refuse_buffers(node)
    if node.optional(6) is not None:
        node.unsupported("input 6 ('past_sequence_length') is given, for a shared buffer")
    total = width(node, "input 1 ('weights')", weights)
    sizes = node.integers("qkv_hidden_sizes", [total // 3] * 3)
    if len(sizes) != 3 or sum(sizes) != total or sizes[0] != sizes[1]:
        node.fail(
            f"attribute 'qkv_hidden_sizes' is {list(sizes)}, expected three numbers that add up "
            f"to {total}, of which the first two are equal"
        )
    projected = matmul(b, x, weights)
    if bias is not None:
        projected = apply(b, "add", projected, bias)
    return _self_attention(b, node, projected, sizes, mask=3, past=4, bias=5)


@importer("QAttention", domain=MICROSOFT)
def quantized_attention(b: Builder, node: Node) -> list[SSAValue]:
    """Import `Attention` of a quantized input and quantized weights; the rest is real numbers."""
    x, weights, bias = node.input(0), node.input(1), node.input(2)
    _require_projection(node, x, weights, bias)
    _refuse_buffers(node)
    for index in (3, 6):
        node.require_scalar(index)
    scale = apply(b, "mul", reshape(b, cast(b, node.input(3), f32), []), node.input(4))
    zeros = [node.optional(i) for i in (6, 7)]
    if zeros[0] is not None:
        zeros[0] = reshape(b, zeros[0], [])
    product = matmul(b, centered(b, x, zeros[0]), centered(b, weights, zeros[1]))
    projected = apply(b, "add", as_real(b, product, scale), bias)
    total = width(node, "input 1 ('weight')", weights)
    return _self_attention(b, node, projected, [total // 3] * 3, mask=5, past=8, bias=None)


def _self_attention(
    b: Builder,
    node: Node,
    projected: SSAValue,
    sizes: Sequence[int],
    *,
    mask: int,
    past: int,
    bias: int | None,
) -> list[SSAValue]:
    """Return attention of Q, K and V side by side, and the present.

    `mask`, `past` and `bias` are numbers of inputs.
    """
    heads = number_of_heads(node)
    starts = [0, *accumulate(sizes)]
    q, k, v = (
        split_heads(b, node, slice_dim(b, projected, 2, start, size), heads)
        for start, size in zip(starts, sizes, strict=False)
    )
    if (state := node.optional(past)) is not None:
        batch, count, _, size = extents_of(k)
        length = extents_of(state)[3] if len(extents_of(state)) == 5 else 0
        if not fits(extents_of(state), [2, batch, count, length, size]):
            node.fail(
                f"input {past} has shape {list(extents_of(state))}, expected [2, {batch}, {count}, "
                f"its length, {size}]"
            )
        if sizes[0] != sizes[2]:
            node.fail("a past needs keys and values of one size")
        k = with_past(b, node, half_of(b, state, 0), k, "the past")
        v = with_past(b, node, half_of(b, state, 1), v, "the past")
    past_length = extents_of(state)[3] if state is not None else 0
    output = _attend(b, node, q, k, v, past_length, mask, bias)[0]
    if len(node.proto.output) == 1:
        return [output]
    present = [reshape(b, each, [1, *extents_of(each)]) for each in (k, v)]
    return [output, concat(b, present, 0)]


@importer("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(b: Builder, node: Node) -> list[SSAValue]:
    """Import attention of Q, K and V, which may be packed.

    The results are followed by present keys and values, and the scores.
    """
    for index, name in ((8, "past_sequence_length"), (9, "cache_indirection")):
        if node.optional(index) is not None:
            node.unsupported(f"input {index} ('{name}') is given, for beam search")
    heads = number_of_heads(node)
    q, k, v = _heads_of_inputs(b, node, heads)
    if (node.optional(6) is None) != (node.optional(7) is None):
        node.fail("of inputs 6 ('past_key') and 7 ('past_value') only one is given")
    if node.optional(6) is not None:
        k = with_past(b, node, node.input(6), k, "input 6 ('past_key')")
        v = with_past(b, node, node.input(7), v, "input 7 ('past_value')")
    past = node.optional(6)
    past_length = 0 if past is None else extents_of(past)[2]
    output, logits = _attend(b, node, q, k, v, past_length, mask=4, bias=5)
    return [output, k, v, cast(b, logits, element_type_of(q))]


def _heads_of_inputs(b: Builder, node: Node, heads: int) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Return Q, K and V with their biases, `[batch, heads, length, size]`."""
    query, key, value = node.input(0), node.optional(1), node.optional(2)
    rank = len(extents_of(query))
    if key is None and value is None and rank == 5:
        parts = _unpacked(b, node, query, 3, heads)
        return _biased(b, node, parts, heads)
    if key is None or rank != 3:
        node.unsupported(
            f"input 0 has shape {list(extents_of(query))}, expected [batch, length, {heads} · "
            f"size] with keys, or [batch, length, {heads}, 3, size] without"
        )
    parts = [split_heads(b, node, query, heads)]
    if value is None:
        parts += _unpacked(b, node, key, 2, heads)
        return _biased(b, node, parts, heads)
    for index, each in ((1, key), (2, value)):
        shape = extents_of(each)
        if len(shape) == 3:
            parts.append(split_heads(b, node, each, heads))
        elif len(shape) == 4 and shape[1] == heads:
            parts.append(each)  # keys of cross-attention come in heads
        else:
            node.fail(
                f"input {index} has shape {list(shape)}, expected [batch, length, {heads} · size] "
                f"or [batch, {heads}, length, size]"
            )
    q, k, v = parts
    if not fits([extents_of(q)[0], *extents_of(q)[3:]], [extents_of(k)[0], *extents_of(k)[3:]]):
        node.fail(f"queries {list(extents_of(q))} and keys {list(extents_of(k))} do not fit")
    if not fits(extents_of(k)[:3], extents_of(v)[:3]):
        node.fail(f"keys {list(extents_of(k))} and values {list(extents_of(v))} do not fit")
    return _biased(b, node, parts, heads)


def _unpacked(b: Builder, node: Node, packed: SSAValue, count: int, heads: int) -> list[SSAValue]:
    """Return the parts of `[batch, length, heads, count, size]`."""
    shape = extents_of(packed)
    if len(shape) != 5 or not fits(shape[2:4], [heads, count]):
        node.fail(
            f"packed heads have shape {list(shape)}, expected [batch, length, {heads}, {count}, "
            "size]"
        )
    return [
        transpose(b, drop_dims(b, slice_dim(b, packed, 3, part, 1), [3]), [0, 2, 1, 3])
        for part in range(count)
    ]


def _biased(
    b: Builder, node: Node, parts: Sequence[SSAValue], heads: int
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Return Q, K and V plus their parts of the bias, where there is one."""
    q, k, v = parts
    bias = node.optional(3)
    if bias is None:
        return q, k, v
    sizes = [heads * width(node, "a head", part) for part in parts]
    if not fits(extents_of(bias), [sum(sizes)]):
        node.fail(f"input 3 ('bias') has shape {list(extents_of(bias))}, expected [{sum(sizes)}]")
    starts = [0, *accumulate(sizes)]
    q, k, v = (
        apply(b, "add", part, reshape(b, slice_dim(b, bias, 0, start, size), shape))
        for part, start, size, shape in zip(
            parts,
            starts,
            sizes,
            [[1, heads, 1, size // heads] for size in sizes],
            strict=False,
        )
    )
    return q, k, v


def _attend(
    b: Builder,
    node: Node,
    q: SSAValue,
    k: SSAValue,
    v: SSAValue,
    past: Extent,
    mask: int,
    bias: int | None,
) -> tuple[SSAValue, SSAValue]:
    """Return the joined heads, and the scores before softmax.

    K and V begin with those of the past.
    """
    batch, heads, length, _ = extents_of(q)
    total = extents_of(k)[2]
    assert isinstance(heads, int)
    added = [padding_mask(b, node, mask, batch, length, total)]
    if bias is not None:
        added.append(attention_bias(b, node, bias, heads, [batch, length, total]))
    if flag(node, "unidirectional"):
        added.append(causal_mask(b, length, total, past))
    logits = scores(b, q, k, node.number("scale", 0.0), *added)
    return join_heads(b, weighted(b, logits, v)), logits


def _refuse_buffers(node: Node) -> None:
    """Raise UnsupportedError for features that ONNX Runtime supports only on GPUs."""
    for name in ("do_rotary", "past_present_share_buffer"):
        if node.integer(name, 0):
            node.unsupported(f"attribute '{name}' is not 0")
    node.has("rotary_embedding_dim")  # of do_rotary


def _require_projection(node: Node, x: SSAValue, weights: SSAValue, bias: SSAValue | None) -> None:
    """Raise BraidError unless the input is a batch of rows that can be multiplied by weights."""
    if len(extents_of(x)) != 3 or not fits(extents_of(weights)[:-1], extents_of(x)[2:]):
        node.fail(
            f"the input has shape {list(extents_of(x))} and its weights {list(extents_of(weights))}"
            ", expected [batch, length, inputs] and [inputs, columns]"
        )
    if bias is not None and not fits(extents_of(bias), extents_of(weights)[1:]):
        node.fail(
            f"the bias has shape {list(extents_of(bias))}, expected {list(extents_of(weights)[1:])}"
        )
