"""`TreeEnsembleClassifier` and `TreeEnsembleRegressor`."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_evaluation import fixed
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import apply, cast, scalar, slice_dim
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.ops.ml.node_tables import CLASSES, TARGETS, floats, forest_of
from braid.frontends.onnx.ops.ml.scores import (
    DOMAIN,
    best_class,
    class_labels,
    class_where,
    column_scalars,
    complement_pair,
    labelled,
    opposite_pair,
    probit,
    require_post_transform,
    rows_of,
    transformed,
    two_columns,
)
from braid.frontends.onnx.ops.ml.tree_scores import (
    Scores,
    features_of,
    known_scores,
    tree_scores,
)

COMBINES = {"SUM": "add", "AVERAGE": "add", "MIN": "minimum", "MAX": "maximum"}


@importer("TreeEnsembleRegressor", domain=DOMAIN)
def tree_ensemble_regressor(b: Builder, node: Node) -> SSAValue:
    """Import `[N, features]` to `[N, targets]` of f32."""
    x = features_of(b, rows_of(b, node, node.input(0)))
    targets, how = node.integer("n_targets"), node.text("aggregate_function", "SUM")
    if how not in COMBINES:
        node.fail(f"aggregate_function is '{how}', expected one of {', '.join(COMBINES)}")
    if targets < 1:
        node.fail(f"n_targets is {targets}, expected at least 1")
    dtype = to_numpy(element_type_of(x))
    features = fixed(extents_of(x)[1], "the features of a row")
    base = floats(node, "base_values", dtype)
    if len(base) not in (0, targets):
        node.fail(f"base_values has {len(base)} elements, expected none or {targets}")
    kind = require_post_transform(node)
    forest = forest_of(node, TARGETS, features, targets, dtype)
    scores = tree_scores(b, node, x, forest, targets, COMBINES[how])
    return cast(b, aggregated(b, scores, how, len(forest.roots), base, kind), f32)


def aggregated(
    b: Builder, scores: Scores, how: str, trees: int, base: Array, kind: str
) -> SSAValue:
    """Return the scores of a regression: shares of the trees, base values, post transform."""
    values = known_scores(b, scores, COMBINES[how])
    if how == "AVERAGE":
        values = apply(b, "div", values, scalar(b, trees, values))
    if len(base):
        values = apply(b, "add", values, column_scalars(b, base.tolist(), values))
    if extents_of(values)[1] == 1:  # of which ONNX Runtime transforms only this one
        return probit(b, values) if kind == "PROBIT" else values
    return transformed(b, values, kind)


@importer("TreeEnsembleClassifier", domain=DOMAIN)
def tree_ensemble_classifier(b: Builder, node: Node) -> Sequence[SSAValue]:
    """Import `[N, features]` to labels `[N]` and scores `[N, classes]` of f32."""
    x = features_of(b, rows_of(b, node, node.input(0)))
    labels, is_text = class_labels(b, node, "classlabels_int64s")
    dtype, count = to_numpy(element_type_of(x)), len(labels)
    features = fixed(extents_of(x)[1], "the features of a row")
    base = floats(node, "base_values", dtype)
    if len(base) not in (0, 1, count):
        node.fail(f"base_values has {len(base)} elements, expected none or {count}")
    kind = require_post_transform(node)
    forest = forest_of(node, CLASSES, features, count, dtype)
    scores = tree_scores(b, node, x, forest, count, "add")
    if count > 2:
        classes, values = _of_several(b, scores, base, kind)
        return labelled(b, classes, labels, is_text), cast(b, values, f32)
    if count == 1:
        node.unsupported("its only class has no other one beside it")
    is_positive = bool((forest.weights >= 0).all())
    is_binary = len(np.unique(forest.targets)) == 1
    given = scores.is_scored
    if isinstance(given, SSAValue):
        node.unsupported("some leaves of a tree have weights of one class, others of both")
    if kind == "PROBIT" and not given[1] and len(base) < 2:
        node.unsupported("post_transform is PROBIT where one score is that of two classes")
    classes, values = _of_two(b, scores.values, given, base, kind, is_binary, is_positive)
    return labelled(b, classes, labels, is_text), cast(b, values, f32)


def _of_several(b: Builder, scores: Scores, base: Array, kind: str) -> tuple[SSAValue, SSAValue]:
    values, given = scores.values, scores.is_scored
    if len(base):
        return _best(b, apply(b, "add", values, column_scalars(b, base.tolist(), values)), kind)
    if not isinstance(given, SSAValue) and given.all():
        return _best(b, values, kind)
    condition = (
        apply(b, "gt", given, scalar(b, 0, given))
        if isinstance(given, SSAValue)
        else b.constant(given.reshape(1, -1))
    )
    # A class that no leaf speaks of is not chosen, even if all others are below 0.
    seen = apply(b, "select", condition, values, scalar(b, -np.inf, values))
    return best_class(b, seen), transformed(b, values, kind)


def _best(b: Builder, values: SSAValue, kind: str) -> tuple[SSAValue, SSAValue]:
    return best_class(b, values), transformed(b, values, kind)


def _of_two(
    b: Builder,
    values: SSAValue,
    given: Array,
    base: Array,
    kind: str,
    is_binary: bool,
    is_positive: bool,
) -> tuple[SSAValue, SSAValue]:
    """Return the classes and scores as ONNX Runtime defines them; the standard does not define
    them.

    One class alone is the positive one, with a score or a probability by the signs of weights.
    """
    first, second = (slice_dim(b, values, 1, column, 1) for column in (0, 1))
    has_first, has_second = given.tolist()
    nothing = apply(b, "mul", first, scalar(b, 0, first))
    pair: tuple[SSAValue, SSAValue] | None = (first, second) if has_second else None

    def plus(value: SSAValue, number: float) -> SSAValue:
        return apply(b, "add", value, scalar(b, number, value))

    decisive = second if has_second else first
    if len(base) == 2 and has_second:
        decisive = plus(first, base[1])
        pair = (apply(b, "neg", decisive) if has_first else nothing), decisive
    elif len(base) == 2:
        decisive = plus(first, base[0])
        pair = decisive, nothing
    elif len(base) == 1:
        first = plus(first, base[0])
        pair = ((first if has_first else nothing), second) if has_second else None
        decisive = second if has_second else first
    threshold = 0.5 if is_binary and is_positive else 0.0
    chosen = apply(b, "gt", decisive, scalar(b, threshold, decisive))
    classes = class_where(b, chosen, 1, 0)
    if pair is not None:
        return classes, transformed(b, two_columns(b, *pair), kind)
    if is_binary and is_positive:
        return classes, complement_pair(b, first, kind)
    return classes, opposite_pair(b, first, kind)
