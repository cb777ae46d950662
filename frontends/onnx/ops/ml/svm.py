"""`SVMClassifier` and `SVMRegressor`."""

import itertools
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from braid.dialects.braid.base import extents_of
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_evaluation import fixed
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    cast,
    matmul,
    reduce,
    reshape,
    scalar,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.ops.ml.coupling import coupled_probabilities
from braid.frontends.onnx.ops.ml.scores import (
    DOMAIN,
    best_class,
    class_labels,
    column_scalars,
    complement_pair,
    labelled,
    logistic,
    opposite_pair,
    require_post_transform,
    rows_of,
    transformed,
)

_KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
_LEAST_PROBABILITY = 1e-7


@importer("SVMRegressor", domain=DOMAIN)
def svm_regressor(b: Builder, node: Node) -> SSAValue:
    """Import `[N, features]` to `[N, 1]` of f32; 1 or -1 by the sign for one class."""
    require_post_transform(node)  # which ONNX Runtime does not apply
    x = cast(b, rows_of(b, node, node.input(0)), f32)
    supports, rho = node.integer("n_supports", 0), node.numbers("rho", ())
    if not rho:
        node.fail("rho is empty, expected one number")
    features = fixed(extents_of(x)[1], "the features of a row")
    if supports > 0:
        found = _products(b, node, x, _table(node, "support_vectors", supports, features))
        coefficients = _table(node, "coefficients", 1, supports)
    else:
        _kernel(node)
        found, coefficients = x, _table(node, "coefficients", 1, features)
    total = matmul(b, found, b.constant(np.ascontiguousarray(coefficients.T)))
    total = apply(b, "add", total, scalar(b, np.float32(rho[0]), total))
    if not node.integer("one_class", 0):
        return total
    one = scalar(b, 1, total)
    above = apply(b, "gt", total, scalar(b, 0, total))
    return apply(b, "select", above, one, scalar(b, -1, total))


def _table(node: Node, name: str, rows: int, columns: int) -> Array:
    """Return a list of floats as `[rows, columns]`."""
    found = np.array(node.numbers(name, ()), np.float32)
    if len(found) != rows * columns:
        node.fail(f"{name} has {len(found)} elements, expected {rows} · {columns}")
    return found.reshape(rows, columns)


def _kernel(node: Node) -> tuple[str, Sequence[float]]:
    """Return the kernel function, with gamma, the summand and the degree."""
    kind, parameters = node.text("kernel_type", "LINEAR"), node.numbers("kernel_params", ())
    if kind not in _KERNELS:
        node.fail(f"kernel_type is '{kind}', expected one of {', '.join(_KERNELS)}")
    if len(parameters) not in (0, 3):
        node.fail(f"kernel_params has {len(parameters)} elements, expected 3")
    return kind, parameters or (0.0, 0.0, 0.0)


def _products(b: Builder, node: Node, x: SSAValue, vectors: Array) -> SSAValue:
    """Return the kernel function of rows and support vectors, `[N, vectors]`."""
    kind, (gamma, summand, degree) = _kernel(node)
    if kind == "RBF":
        # Not by |x|² + |v|² - 2xv: of near vectors this would leave rounding errors.
        rows, features = extents_of(x)
        apart = apply(b, "sub", reshape(b, x, [rows, 1, features]), b.constant(vectors[None]))
        squares = reduce(b, "add", apply(b, "mul", apart, apart), [2])
        squares = reshape(b, squares, [rows, len(vectors)])
        return apply(b, "exp", apply(b, "mul", squares, scalar(b, np.float32(-gamma), squares)))
    dots = matmul(b, x, b.constant(np.ascontiguousarray(vectors.T)))
    if kind == "LINEAR":
        return dots
    scaled = apply(b, "mul", dots, scalar(b, np.float32(gamma), dots))
    scaled = apply(b, "add", scaled, scalar(b, np.float32(summand), dots))
    if kind == "SIGMOID":
        return apply(b, "tanh", scaled)
    if degree in (2.0, 3.0):
        square = apply(b, "mul", scaled, scaled)
        return square if degree == 2.0 else apply(b, "mul", square, scaled)
    return apply(b, "pow", scaled, scalar(b, np.float32(degree), scaled))


@importer("SVMClassifier", domain=DOMAIN)
def svm_classifier(b: Builder, node: Node) -> Sequence[SSAValue]:
    """Import `[N, features]` to labels `[N]` and scores of f32.

    Scores are those of classes if it is linear or has probabilities, else of pairs of classes.
    """
    x = cast(b, rows_of(b, node, node.input(0)), f32)
    labels, is_text = class_labels(b, node, "classlabels_ints")
    kind, rho = require_post_transform(node), node.numbers("rho", ())
    per_class = node.integers("vectors_per_class", ())
    if min(per_class, default=0) < 0:
        node.fail(f"vectors_per_class has {min(per_class)}, expected no negative number")
    if not sum(per_class):
        classes, values = _linear(b, node, x, len(labels), rho)
        return labelled(b, classes, labels, is_text), transformed(b, values, kind)
    if len(per_class) != len(labels):
        node.fail(f"vectors_per_class has {len(per_class)} elements, expected {len(labels)}")
    if len(labels) < 2:
        node.fail("there is one label, expected at least 2")
    values = _pair_scores(b, node, x, per_class, rho)
    classes = labelled(b, _most_votes(b, values, len(labels)), labels, is_text)
    slopes, offsets = node.numbers("prob_a", ()), node.numbers("prob_b", ())
    if slopes or offsets:
        pairs = _probabilities(b, node, values, slopes, offsets)
        return classes, transformed(b, coupled_probabilities(b, node, pairs, len(labels)), kind)
    if len(labels) > 2:
        return classes, transformed(b, values, kind)
    if kind == "PROBIT":
        node.unsupported("post_transform is PROBIT where one score is that of two classes")
    pair = opposite_pair if kind == "NONE" else complement_pair
    return classes, pair(b, values, kind)


def _linear(
    b: Builder, node: Node, x: SSAValue, count: int, rho: Sequence[float]
) -> tuple[SSAValue, SSAValue]:
    """Return the classes and scores of a model without support vectors."""
    _kernel(node)
    for name in ("support_vectors", "prob_a", "prob_b"):
        node.has(name)
    if not rho:
        node.fail("rho is empty, expected at least one number")
    features = fixed(extents_of(x)[1], "the features of a row")
    table = _table(node, "coefficients", count, features)
    values = matmul(b, x, b.constant(np.ascontiguousarray(table.T)))
    values = apply(b, "add", values, scalar(b, np.float32(rho[0]), values))
    classes = best_class(b, values)
    if count != 2:
        return classes, values
    # Of two classes the second, if any score is large enough.
    is_positive, most = bool((table >= 0).all()), reduce(b, "maximum", values, [1])
    enough = apply(
        b, "ge" if is_positive else "gt", most, scalar(b, 0.5 if is_positive else 0, most)
    )
    enough = reshape(b, enough, extents_of(enough)[:1])
    return apply(b, "select", enough, b.constant(np.array([1])), classes), values


def _pairs(count: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(count), 2))


def _pair_scores(
    b: Builder, node: Node, x: SSAValue, per_class: Sequence[int], rho: Sequence[float]
) -> SSAValue:
    """Return the score of each pair of classes, positive for the first, `[N, pairs]`."""
    count, total = len(per_class), sum(per_class)
    pairs = _pairs(count)
    if len(rho) < len(pairs):
        node.fail(f"rho has {len(rho)} elements, expected {len(pairs)}")
    features = fixed(extents_of(x)[1], "the features of a row")
    products = _products(b, node, x, _table(node, "support_vectors", total, features))
    coefficients = _table(node, "coefficients", count - 1, total)
    ends = np.cumsum(per_class)
    vectors = [slice(end - size, end) for end, size in zip(ends, per_class, strict=True)]
    table = np.zeros((total, len(pairs)), np.float32)
    for number, (first, second) in enumerate(pairs):
        table[vectors[first], number] = coefficients[second - 1, vectors[first]]
        table[vectors[second], number] = coefficients[first, vectors[second]]
    found = matmul(b, products, b.constant(table))
    return apply(b, "add", found, column_scalars(b, rho[: len(pairs)], found))


def _most_votes(b: Builder, scores: SSAValue, count: int) -> SSAValue:
    """Return the class that wins the most pairs, `[N]`."""
    turn = np.zeros((count * (count - 1) // 2, count), np.float32)
    lost = np.zeros(count, np.float32)
    for number, (first, second) in enumerate(_pairs(count)):
        turn[number, first], turn[number, second] = 1, -1
        lost[second] += 1
    wins = cast(b, apply(b, "gt", scores, scalar(b, 0, scores)), f32)
    votes = matmul(b, wins, b.constant(turn))
    return best_class(b, apply(b, "add", votes, column_scalars(b, lost.tolist(), votes)))


def _probabilities(
    b: Builder, node: Node, scores: SSAValue, slopes: Sequence[float], offsets: Sequence[float]
) -> SSAValue:
    """Return for each pair the probability of its first class, `[N, pairs]`."""
    pairs = fixed(extents_of(scores)[1], "the pairs of classes")
    if len(slopes) != len(offsets) or len(slopes) < pairs:
        node.fail(
            f"prob_a and prob_b have {len(slopes)} and {len(offsets)} elements, expected {pairs}"
        )
    line = apply(b, "mul", scores, column_scalars(b, slopes[:pairs], scores))
    line = apply(b, "add", line, column_scalars(b, offsets[:pairs], line))
    found = apply(b, "sub", scalar(b, 1, line), logistic(b, line))
    least = np.float32(_LEAST_PROBABILITY)
    found = apply(b, "maximum", found, scalar(b, least, found))
    return apply(b, "minimum", found, scalar(b, np.float32(1) - least, found))
