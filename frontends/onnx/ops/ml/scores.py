"""Transform scores by the post transforms of ONNX's ML ops, and select the labels of classes."""

import math
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.normalization import SoftmaxOp
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    cast,
    concat,
    reduce,
    reshape,
    scalar,
)
from braid.frontends.onnx.building.node import Node

DOMAIN = "ai.onnx.ml"

POST_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""In the order of their numbers in TreeEnsemble."""

_NEARLY_ZERO = 1e-7
"""Softmax-zero does not change small numbers."""
_ERROR_FUNCTION = 0.147
"""The constant of S. Winitzki's approximation of the inverse error function."""
_PI = 3.14159


def transformed(b: Builder, scores: SSAValue, kind: str) -> SSAValue:
    """Return scores `[N, C]` after a post transform."""
    match kind:
        case "SOFTMAX":
            return b.emit(SoftmaxOp.get(scores, 1))
        case "LOGISTIC":
            return logistic(b, scores)
        case "SOFTMAX_ZERO":
            return _softmax_zero(b, scores)
        case "PROBIT":
            return probit(b, scores)
        case _:
            return scores


def logistic(b: Builder, x: SSAValue) -> SSAValue:
    """Return 1 / (1 + exp(-x)), by an exponential that does not overflow."""
    one = scalar(b, 1, x)
    exponential = apply(b, "exp", apply(b, "neg", apply(b, "abs", x)))
    above = apply(b, "reciprocal", apply(b, "add", exponential, one))
    is_below = apply(b, "lt", x, scalar(b, 0, x))
    return apply(b, "select", is_below, apply(b, "sub", one, above), above)


def _softmax_zero(b: Builder, x: SSAValue) -> SSAValue:
    """Return softmax in which zeros stay zero, and are not in the sum."""
    largest = reduce(b, "maximum", x, [1])
    counts = apply(b, "gt", apply(b, "abs", x), scalar(b, np.float32(_NEARLY_ZERO), x))
    exponential = apply(b, "exp", apply(b, "sub", x, largest))
    scale = apply(b, "exp", apply(b, "neg", largest))
    kept = apply(b, "select", counts, exponential, scalar(b, 0, x))
    found = apply(b, "select", counts, exponential, apply(b, "mul", x, scale))
    return apply(b, "div", found, reduce(b, "add", kept, [1]))


def probit(b: Builder, x: SSAValue) -> SSAValue:
    """Return √2 · erf⁻¹(2x - 1), by the approximation that ONNX Runtime has."""

    def number(value: float) -> SSAValue:
        return scalar(b, np.float32(value), x)

    argument = apply(b, "sub", apply(b, "mul", x, number(2)), number(1))
    is_below = apply(b, "lt", argument, number(0))
    sides = apply(b, "sub", number(1), argument), apply(b, "add", number(1), argument)
    log = apply(b, "log", apply(b, "mul", *sides))
    half = apply(b, "mul", log, number(0.5))
    v = apply(b, "add", half, number(2 / (_PI * _ERROR_FUNCTION)))
    w = apply(b, "mul", log, number(1 / _ERROR_FUNCTION))
    root = apply(b, "sqrt", apply(b, "sub", apply(b, "mul", v, v), w))
    size = apply(b, "sqrt", apply(b, "sub", root, v))
    signed = apply(b, "select", is_below, apply(b, "neg", size), size)
    return apply(b, "mul", signed, number(math.sqrt(2)))


def two_columns(b: Builder, first: SSAValue, second: SSAValue) -> SSAValue:
    """Return the columns `[N, 1]` side by side."""
    return concat(b, [first, second], 1)


def opposite_pair(b: Builder, score: SSAValue, kind: str) -> SSAValue:
    """Return the scores of two classes, given `[N, 1]` of the second that may be negative."""
    opposite = apply(b, "neg", score)
    if kind == "LOGISTIC":
        return two_columns(b, logistic(b, opposite), logistic(b, score))
    return two_columns(b, opposite, score)


def complement_pair(b: Builder, score: SSAValue, kind: str) -> SSAValue:
    """Return the scores of two classes, given the probability `[N, 1]` of the second."""
    if kind == "LOGISTIC":
        return opposite_pair(b, score, kind)
    return two_columns(b, apply(b, "sub", scalar(b, 1, score), score), score)


def best_class(b: Builder, scores: SSAValue) -> SSAValue:
    """Return the first class with the largest score, `[N]`."""
    found = b.emit(ArgReduceOp.get(scores, "max", 1))
    return reshape(b, found, extents_of(found)[:1])


def class_where(b: Builder, condition: SSAValue, yes: int, no: int) -> SSAValue:
    """Return a number of a class `[N]` by a condition `[N, 1]`."""
    condition = reshape(b, condition, extents_of(condition)[:1])
    return apply(b, "select", condition, b.constant(np.array([yes])), b.constant(np.array([no])))


def class_labels(b: Builder, node: Node, integers: str) -> tuple[Sequence[int], bool]:
    """Return the labels of classes, of text as codes, and whether they are text.

    `integers` is the attribute for keys that are not text.
    """
    texts = node.texts("classlabels_strings", ())
    numbers = node.integers(integers, ())
    if texts and numbers:
        node.fail(f"both classlabels_strings and {integers} are given, expected one of them")
    if not texts and not numbers:
        node.fail(f"neither classlabels_strings nor {integers} is given, expected one of them")
    return ([b.texts.code(text) for text in texts], True) if texts else (numbers, False)


def labelled(b: Builder, classes: SSAValue, labels: Sequence[int], is_text: bool) -> SSAValue:
    """Return the labels of numbers of classes."""
    table = np.array(labels, np.int64)
    if not is_text and np.array_equal(table, np.arange(len(table))):
        return cast(b, classes, i64)
    found = b.emit(GatherOp.get(b.constant(table), classes, 0))
    return b.as_text(found) if is_text else found


def rows_of(b: Builder, node: Node, x: SSAValue) -> SSAValue:
    """Return features as rows `[N, F]`; a vector is one row."""
    shape = extents_of(x)
    if len(shape) == 1:
        return reshape(b, x, [1, *shape])
    if len(shape) != 2:
        node.fail(f"its input has {len(shape)} dims, expected 1 or 2")
    return x


def require_post_transform(node: Node) -> str:
    """Return the post transform of a node that names it by a string."""
    kind = node.text("post_transform", "NONE")
    if kind not in POST_TRANSFORMS:
        node.fail(f"post_transform is '{kind}', expected one of {', '.join(POST_TRANSFORMS)}")
    return kind


def column_scalars(b: Builder, values: Sequence[float], like: SSAValue) -> SSAValue:
    """Return numbers for the columns of `like`, `[1, C]`, in its type."""
    return b.constant(np.array(values, to_numpy(element_type_of(like))).reshape(1, -1))
