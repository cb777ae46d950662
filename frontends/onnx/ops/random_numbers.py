"""Random numbers, by Philox: equal keys give equal numbers, on every device and at every run.

The key is the node's `seed`. Nodes without one share the key of the run (`Builder.random_key`), and
each has a separate stream of it.
"""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import f64
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import bytes_of, f32, from_numpy, i64, is_float
from braid.dialects.braid.scan import ScanOp
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    broadcast,
    cast,
    reduce,
    reshape,
    scalar,
    slice_dim,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.philox import (
    WORD,
    Key,
    constant_key,
    key_of,
    random_words,
    standard_normal,
    uniform,
)
from braid.frontends.onnx.building.registry import importer
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of


def _words(b: Builder, node: Node, count: Extent) -> tuple[SSAValue, ...]:
    """Return the random words of `count` elements."""
    if b.is_nested:
        node.unsupported(
            "random numbers inside of control flow would be the same in every iteration",
            hint="draw them before the loop or the branch, and read them there",
        )
    return random_words(b, _key(b, node), count)


def _key(b: Builder, node: Node) -> Key:
    if node.has("seed") and node.op_type == "Dropout":
        seed = node.integer("seed")
        return constant_key(b, seed & WORD, seed >> 32 & WORD)
    if node.has("seed"):  # a float, of which the bits are the key
        return constant_key(b, int(np.float32(node.number("seed")).view(np.uint32)))
    number, stream = b.random_key()
    return key_of(b, number, stream)


def _shape_and_type(b: Builder, node: Node) -> tuple[Sequence[Extent], Attribute]:
    """Return those of the result: attributes, or those of an input that it is to be like."""
    if node.inputs:
        shape, own = extents_of(node.input(0)), element_type_of(node.input(0))
        element_type = from_numpy(node.dtype("dtype")) if node.has("dtype") else own
    else:
        shape = node.integers("shape")
        if any(extent < 0 for extent in shape):
            node.fail(f"shape is {list(shape)}, expected no negative size")
        element_type = from_numpy(node.dtype("dtype")) if node.has("dtype") else f32
    if not is_float(element_type):
        node.fail(f"the result would be of {element_type}, expected floats", hint="give dtype")
    return shape, element_type


def _computed_in(element_type: Attribute) -> Attribute:
    """Return the type that results of `element_type` are computed in: f32 for 16 bits."""
    return f64 if bytes_of(element_type) == 8 else f32


@importer("RandomUniform", "RandomUniformLike")
def random_uniform(b: Builder, node: Node) -> SSAValue:
    """Import low + u · (high - low), for u in [0, 1)."""
    shape, element_type = _shape_and_type(b, node)
    low, high = node.number("low", 0.0), node.number("high", 1.0)
    words = _words(b, node, product_of(shape))
    if (low, high) == (0.0, 1.0):
        return reshape(b, uniform(b, words, element_type), shape)
    value = uniform(b, words, _computed_in(element_type))
    value = apply(b, "mul", value, scalar(b, high - low, value))
    value = apply(b, "add", value, scalar(b, low, value))
    return reshape(b, cast(b, value, element_type), shape)


@importer("RandomNormal", "RandomNormalLike")
def random_normal(b: Builder, node: Node) -> SSAValue:
    """Import mean + scale · z, for z of the standard normal distribution."""
    shape, element_type = _shape_and_type(b, node)
    mean, scale = node.number("mean", 0.0), node.number("scale", 1.0)
    words = _words(b, node, product_of(shape))
    value = standard_normal(b, words, _computed_in(element_type))
    if scale != 1:
        value = apply(b, "mul", value, scalar(b, scale, value))
    if mean != 0:
        value = apply(b, "add", value, scalar(b, mean, value))
    return reshape(b, cast(b, value, element_type), shape)


@importer("Bernoulli")
def bernoulli(b: Builder, node: Node) -> SSAValue:
    """Import 1 with the probability that the input says, else 0."""
    p = node.input(0)
    shape, element_type = extents_of(p), element_type_of(p)
    drawn = _fractions(b, node, shape, _computed_in(element_type))
    is_one = apply(b, "lt", drawn, cast(b, p, element_type_of(drawn)))
    dtype = from_numpy(node.dtype("dtype")) if node.has("dtype") else element_type
    return cast(b, is_one, dtype)


def _fractions(
    b: Builder, node: Node, shape: Sequence[Extent], element_type: Attribute
) -> SSAValue:
    """Return numbers in [0, 1) in this shape."""
    words = _words(b, node, product_of(shape))
    return reshape(b, uniform(b, words, element_type), shape)


@importer("Multinomial")
def multinomial(b: Builder, node: Node) -> SSAValue:
    """Import classes drawn by their logarithms of weights, `[batch, sample_size]`.

    A class is the number of those whose sum of weights, with all before them, is at most the number
    drawn below the sum of all. One of weight 0 is never drawn.
    """
    logits = node.input(0)
    batch, classes = extents_of(logits)
    size = node.integer("sample_size", 1)
    if size < 0:
        node.fail(f"sample_size is {size}, expected at least 0")
    dtype = from_numpy(node.dtype("dtype")) if node.has("dtype") else from_numpy(np.int32)
    logits = cast(b, logits, _computed_in(element_type_of(logits)))
    highest = reduce(b, "maximum", logits, [1])
    weights = apply(b, "exp", apply(b, "sub", logits, highest))
    sums = b.emit(ScanOp.get(weights, "add", 1))
    total = slice_dim(b, sums, 1, classes - 1, 1)
    drawn = _fractions(b, node, [batch, size], element_type_of(sums))
    below = apply(b, "mul", drawn, total)
    # No number is below the sum of all, to which rounding may lead.
    below = apply(b, "select", apply(b, "lt", below, total), below, scalar(b, 0, below))
    passed = apply(
        b,
        "le",
        reshape(b, sums, [batch, 1, classes]),
        reshape(b, below, [batch, size, 1]),
    )
    count = reduce(b, "add", cast(b, passed, i64), [2])
    return cast(b, reshape(b, count, [batch, size]), dtype)


@importer("Dropout")
def dropout(b: Builder, node: Node) -> Sequence[SSAValue]:
    """Import the input or, in training, its scaled kept elements with their mask."""
    x = node.input(0)
    for index in range(1, len(node.inputs)):
        node.require_scalar(index)
    rank, shape = len(extents_of(x)), extents_of(x)
    every = broadcast(b, b.constant(np.ones([1] * rank, np.bool_)), shape)
    training = _training(b, node)
    if training is False:
        value, kept = x, every
    else:
        value, kept = _dropped(b, node, x, every)
        if training is not True:
            value = apply(b, "select", training, value, x)
            kept = apply(b, "select", training, kept, every)
    return [value, kept if node.opset >= 10 else cast(b, kept, element_type_of(x))]


def _training(b: Builder, node: Node) -> SSAValue | bool:
    """Return whether elements are dropped, where that is known; opsets 7 to 11 drop none."""
    if node.opset < 7:
        return not node.integer("is_test", 0)
    given = node.optional(2) if node.opset >= 12 else None
    if given is None:
        return False
    known = b.known(given)
    return bool(known.item()) if known is not None else _as_scalar(b, given, node)


def _as_scalar(b: Builder, value: SSAValue, node: Node) -> SSAValue:
    """Return the one element of an input with extents of 1, as many as the data have."""
    return reshape(b, value, [1] * len(extents_of(node.input(0))))


def _dropped(b: Builder, node: Node, x: SSAValue, every: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Return x / (1 - ratio) where it is kept, 0 elsewhere, and where it is kept."""
    wide = _computed_in(element_type_of(x))
    if node.opset < 12 or node.optional(1) is None:
        ratio = scalar(b, node.number("ratio", 0.5) if node.opset < 12 else 0.5, x)
        ratio = cast(b, ratio, wide)
    else:
        ratio = cast(b, _as_scalar(b, node.input(1), node), wide)
    known = b.known(ratio)
    if known is not None and not 0 <= known.item() < 1:
        node.fail(f"ratio is {known.item()}, expected at least 0 and less than 1")
    if known is not None and known.item() == 0:
        return x, every
    kept = apply(b, "ge", _fractions(b, node, extents_of(x), wide), ratio)
    scaled = apply(b, "div", cast(b, x, wide), apply(b, "sub", scalar(b, 1, ratio), ratio))
    zero = scalar(b, 0, scaled)
    return cast(b, apply(b, "select", kept, scaled, zero), element_type_of(x)), kept
