"""`TfIdfVectorizer` on integers: how often each n-gram of a pool occurs."""

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import f32, i64, to_numpy
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_evaluation import fixed_shape
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    cast,
    concat,
    matmul,
    reduce,
    reshape,
    scalar,
    slice_dim,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer


@importer("TfIdfVectorizer")
def tf_idf_vectorizer(b: Builder, node: Node) -> SSAValue:
    """Import counts (`TF`), weights of occurring n-grams (`IDF`), or their products (`TFIDF`).

    The n-grams of the pool are sorted by length; `ngram_counts` says where each
    length begins, and `ngram_indexes` which output element each n-gram is for. Weights are by
    n-gram, as the schema and ONNX Runtime have it, not by output element, as ONNX's evaluator has.
    """
    if not node.has("pool_int64s"):
        node.unsupported("a pool of strings is not supported, expected 'pool_int64s'")
    x, columns = node.input(0), node.integers("ngram_indexes")
    if len(extents_of(x)) not in (1, 2):
        node.fail(f"the input has {len(extents_of(x))} dims, expected 1 or 2")
    *batch, extent = fixed_shape(x)
    tokens = reshape(b, cast(b, x, i64), [math.prod(batch), extent])
    counts = [_counted(b, node, tokens, grams) for grams in _pool_by_length(node)]
    frequencies = concat(b, counts, 1)
    weights = np.array(node.numbers("weights", (1.0,) * len(columns)), np.float32)
    mode = node.text("mode")
    if mode == "IDF":
        occurs = apply(b, "gt", frequencies, scalar(b, 0, frequencies))
        frequencies = cast(b, occurs, f32)
    places = np.zeros((len(columns), max(columns) + 1), np.float32)
    places[np.arange(len(columns)), columns] = 1.0 if mode == "TF" else weights
    result = matmul(b, frequencies, b.constant(places))
    return reshape(b, result, [*batch, places.shape[1]])


def _pool_by_length(node: Node) -> list[Array]:
    """Return the n-grams of the pool as `[number, n]`, for n from 1 on."""
    pool, starts = np.array(node.integers("pool_int64s")), node.integers("ngram_counts")
    ends = (*starts[1:], len(pool))
    return [
        pool[start:end].reshape(-1, length)
        for length, (start, end) in enumerate(zip(starts, ends, strict=True), 1)
    ]


def _counted(b: Builder, node: Node, tokens: SSAValue, grams: Array) -> SSAValue:
    """Return how often each n-gram is in each row, `[rows, number]`, with all gaps allowed."""
    number, length = grams.shape
    rows, extent = fixed_shape(tokens)
    total = b.constant(np.zeros((rows, number), np.float32))
    if not node.integer("min_gram_length") <= length <= node.integer("max_gram_length"):
        return total
    gaps = range(1, 2 if length == 1 else node.integer("max_skip_count") + 2)
    for gap in gaps:
        count = extent - gap * (length - 1)
        if count > 0 and number:
            parts = [slice_dim(b, tokens, 1, gap * i, count) for i in range(length)]
            total = apply(b, "add", total, _occurrences(b, parts, grams))
    return total


def _occurrences(b: Builder, parts: Sequence[SSAValue], grams: Array) -> SSAValue:
    """Return at how many positions the tokens `parts` are each n-gram.

    Each of `parts` is `[rows, positions]`.
    """
    rows, positions = fixed_shape(parts[0])
    dtype = to_numpy(element_type_of(parts[0]))
    found: SSAValue | None = None
    for index, part in enumerate(parts):
        wanted = b.constant(grams[None, None, :, index].astype(dtype))
        equal = apply(b, "eq", reshape(b, part, [rows, positions, 1]), wanted)
        found = equal if found is None else apply(b, "and", found, equal)
    assert found is not None
    total = reduce(b, "add", cast(b, found, f32), [1])
    return reshape(b, total, [rows, grams.shape[0]])
