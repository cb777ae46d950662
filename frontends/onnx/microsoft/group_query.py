"""`GroupQueryAttention`: several heads of queries share a head of keys and values, in a cache."""

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of, fits
from braid.dialects.braid.dtypes import i64, to_numpy
from braid.dialects.braid.indexing import GatherElementsOp
from braid.dialects.braid.normalization import SoftmaxOp
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    broadcast,
    cast,
    concat,
    matmul,
    reshape,
    scalar,
    size_scalar,
    slice_dim,
    with_extents,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.opsets import MICROSOFT
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.microsoft.attention import (
    attention_bias,
    hidden_where,
    join_heads,
    number_of_heads,
    positions,
    scores,
    split_heads,
    width,
)
from braid.frontends.onnx.microsoft.attributes import flag
from braid.frontends.onnx.microsoft.rotary import require_caches, rotated
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import maximum

_REFUSED_INPUTS = {
    12: "k_scale",
    13: "v_scale",
    14: "q_norm_weight",
    15: "k_norm_weight",
    16: "query_seqlens",
}
_REFUSED_ATTRIBUTES = ("sliding_window_cache", "qk_output", "kv_cache_bit_width")
_HIDDEN = float(np.finfo(np.float32).min)


@importer("GroupQueryAttention", domain=MICROSOFT)
def group_query_attention(b: Builder, node: Node) -> list[SSAValue]:
    """Import attention over a cache, to which the keys and values of now are added first.

    Input 5 has, for each batch entry, the number of keys after that, minus 1. The cache of the
    result has as many as the longest entry, input 6, or as the cache before if that has more.
    """
    _refuse(node)
    q, k, v = _heads_of_inputs(b, node)
    batch, _, length, _ = extents_of(q)
    counts = node.input(5)
    if not fits(extents_of(counts), [batch]):
        node.fail(f"input 5 has shape {list(extents_of(counts))}, expected [{batch}]")
    keys = reshape(b, cast(b, with_extents(b, counts, [batch]), i64), [batch, 1, 1, 1])
    keys = apply(b, "add", keys, scalar(b, 1, keys))
    before = apply(b, "sub", keys, size_scalar(b, length, keys))
    before = apply(b, "maximum", before, scalar(b, 0, before))
    interleaved = flag(node, "rotary_interleaved")
    if flag(node, "do_rotary"):
        q, k = _turned(b, node, q, k, before, interleaved)
    present = [_with_cache(b, node, new, 3 + i, before) for i, new in enumerate((k, v))]
    logits = _logits(b, node, q, present[0], before, keys)
    output = _weighted(b, node, logits, present[1])
    return [join_heads(b, output), *present]


def _refuse(node: Node) -> None:
    """Raise UnsupportedError for forms of the op that are not supported."""
    for index, name in _REFUSED_INPUTS.items():
        if node.optional(index) is not None:
            node.unsupported(f"input {index} ('{name}') is given")
    for name in _REFUSED_ATTRIBUTES:
        if node.integer(name, 0):
            node.unsupported(f"attribute '{name}' is not 0")
    for name in ("k_quant_type", "v_quant_type"):
        if (kind := node.text(name, "NONE")) != "NONE":
            node.unsupported(f"attribute '{name}' is '{kind}', expected NONE")
    for name in ("qk_norm_epsilon", "q_norm_epsilon", "k_norm_epsilon"):
        node.has(name)  # of inputs that are refused
    if len(node.proto.output) > 3 and node.proto.output[3]:
        node.unsupported("output 3 ('output_qk') is asked for")


def _heads_of_inputs(b: Builder, node: Node) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Return Q, K and V of now, `[batch, heads, length, size]`; without keys they are packed."""
    heads, shared = number_of_heads(node), number_of_heads(node, "kv_num_heads")
    if heads % shared:
        node.fail(f"attribute 'num_heads' is {heads}, no multiple of 'kv_num_heads', {shared}")
    query, key, value = node.input(0), node.optional(1), node.optional(2)
    for index, each in ((0, query), (1, key), (2, value)):
        if each is not None and len(extents_of(each)) != 3:
            node.fail(f"input {index} has shape {list(extents_of(each))}, expected 3 dims")
    if (key is None) != (value is None):
        node.fail("of inputs 1 ('key') and 2 ('value') only one is given")
    if key is None or value is None:
        whole = split_heads(b, node, query, heads + 2 * shared)
        q, k, v = (
            slice_dim(b, whole, 1, start, count)
            for start, count in ((0, heads), (heads, shared), (heads + shared, shared))
        )
        return q, k, v
    q = split_heads(b, node, query, heads)
    k, v = (split_heads(b, node, each, shared) for each in (key, value))
    expected = [extents_of(q)[0], shared, *extents_of(q)[2:]]
    for index, each in ((1, k), (2, v)):
        if not fits(extents_of(each), expected):
            node.fail(
                f"heads of input {index} have shape {list(extents_of(each))}, expected {expected}"
            )
    return q, with_extents(b, k, expected), with_extents(b, v, expected)


def _turned(
    b: Builder, node: Node, q: SSAValue, k: SSAValue, before: SSAValue, interleaved: bool
) -> tuple[SSAValue, SSAValue]:
    """Return queries and keys rotated by their positions: input 9, else those after the cache."""
    batch, _, length, size = extents_of(q)
    columns = require_caches(node, 7, 8)
    if 2 * columns > width(node, "a head", q):
        node.fail(f"a head has {size} columns, but input 7 is for {2 * columns}")
    places = node.optional(9)
    if places is None:
        own = apply(b, "add", positions(b, length, 2), before)
        places = reshape(b, broadcast(b, own, [batch, 1, length, 1]), [batch, length])
    elif not fits(extents_of(places), [batch, length]):
        node.fail(f"input 9 has shape {list(extents_of(places))}, expected [{batch}, {length}]")
    else:
        places = with_extents(b, places, [batch, length])
    turned_q, turned_k = (rotated(b, node, each, places, 7, interleaved) for each in (q, k))
    return turned_q, turned_k


def _with_cache(b: Builder, node: Node, new: SSAValue, index: int, before: SSAValue) -> SSAValue:
    """Return the cache of input `index` with `new` after the first `before` of each batch entry."""
    batch, heads, length, size = extents_of(new)
    total = node.known_size(6)
    assert total is not None, "a required input"
    past = node.optional(index)
    if past is None and total == length:
        return new
    capacity: Extent = 0
    if past is not None:
        capacity = extents_of(past)[2] if len(extents_of(past)) == 4 else 0
        expected = [batch, heads, capacity, size]
        if not fits(extents_of(past), expected):
            node.fail(f"input {index} has shape {list(extents_of(past))}, expected {expected}")
        past = with_extents(b, past, expected)
    total = maximum(total, capacity)
    zero = b.constant(np.zeros((1, 1, 1, 1), to_numpy(element_type_of(new))))
    rows = [new, broadcast(b, zero, [batch, heads, 1, size])]
    if past is not None:
        rows = [past, *rows]
    keys = positions(b, total, 2)
    fresh = apply(b, "sub", keys, before)
    is_old = apply(b, "lt", fresh, scalar(b, 0, fresh))
    is_new = apply(b, "lt", fresh, size_scalar(b, length, fresh))
    moved = apply(b, "add", fresh, size_scalar(b, capacity, fresh))
    nothing = size_scalar(b, capacity + length, fresh)
    source = apply(b, "select", is_old, keys, apply(b, "select", is_new, moved, nothing))
    source = broadcast(b, source, [batch, heads, total, size])
    return b.emit(GatherElementsOp.get(concat(b, rows, 2), source, 2))


def _logits(
    b: Builder, node: Node, q: SSAValue, k: SSAValue, before: SSAValue, keys: SSAValue
) -> SSAValue:
    """Return the scores `[batch, heads, length, total]`, with the mask of the keys that each query
    sees."""
    batch, heads, length, size = extents_of(q)
    shared, total = extents_of(k)[1], extents_of(k)[2]
    assert isinstance(heads, int) and isinstance(shared, int)
    rows = reshape(b, q, [batch, shared, heads // shared * length, size])
    logits = scores(b, rows, k, node.number("scale", 0.0))
    logits = reshape(b, logits, [batch, heads, length, total])
    if softcap := node.number("softcap", 0.0):
        cap = scalar(b, softcap, logits)
        logits = apply(b, "mul", apply(b, "tanh", apply(b, "div", logits, cap)), cap)
    bias = attention_bias(b, node, 10, heads, [batch, length, total])
    if bias is not None:
        logits = apply(b, "add", logits, cast(b, bias, element_type_of(logits)))
    mask = hidden_where(b, _is_hidden(b, node, length, total, before, keys), _HIDDEN)
    return apply(b, "add", logits, mask)


def _is_hidden(
    b: Builder, node: Node, length: Extent, total: Extent, before: SSAValue, keys: SSAValue
) -> SSAValue:
    """Compute whether a query does not see a key: it is later, outside of the window, or absent."""
    columns, window = positions(b, total, 3), node.integer("local_window_size", -1)
    if window != -1 and window < 1:
        node.fail(f"attribute 'local_window_size' is {window}, expected -1 or at least 1")
    if not flag(node, "causal", 1):
        if window != -1:
            node.fail("attribute 'local_window_size' needs 'causal'")
        return apply(b, "ge", columns, keys)
    own = apply(b, "add", positions(b, length, 2), before)
    hidden = apply(b, "gt", columns, own)
    if window > 0:
        least = apply(b, "sub", own, scalar(b, window, own))
        hidden = apply(b, "or", hidden, apply(b, "le", columns, least))
    return hidden


def _weighted(b: Builder, node: Node, logits: SSAValue, v: SSAValue) -> SSAValue:
    """Return softmax, with a sink in addition to the keys if there is one, times V."""
    batch, heads, length, total = extents_of(logits)
    shared, size = extents_of(v)[1], extents_of(v)[3]
    assert isinstance(heads, int) and isinstance(shared, int)
    sink = _sink(b, node, logits)
    if sink is not None:
        logits = concat(b, [logits, sink], 3)
    shares = slice_dim(b, b.emit(SoftmaxOp.get(logits, 3)), 3, 0, total)
    shares = cast(b, shares, element_type_of(v))
    rows = reshape(b, shares, [batch, shared, heads // shared * length, total])
    return reshape(b, matmul(b, rows, v), [batch, heads, length, size])


def _sink(b: Builder, node: Node, logits: SSAValue) -> SSAValue | None:
    """Return a column of scores without a value: input 11, or 0 for `smooth_softmax`.

    The result is None if the node has neither.
    """
    batch, heads, length, _ = extents_of(logits)
    shape: Sequence[Extent] = [batch, heads, length, 1]
    is_smooth, sink = flag(node, "smooth_softmax"), node.optional(11)
    if sink is not None:
        if not fits(extents_of(sink), [heads]):
            node.fail(f"input 11 has shape {list(extents_of(sink))}, expected [{heads}]")
        value = reshape(b, cast(b, sink, element_type_of(logits)), [1, heads, 1, 1])
        return broadcast(b, value, shape)
    return broadcast(b, scalar(b, 0, logits), shape) if is_smooth else None
