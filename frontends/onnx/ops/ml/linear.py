"""`LinearClassifier` and `LinearRegressor`."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from braid.dialects.braid.base import extents_of
from braid.dialects.braid.size_evaluation import fixed
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import apply, cast, matmul, scalar
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.ops.ml.scores import (
    DOMAIN,
    best_class,
    class_labels,
    class_where,
    column_scalars,
    complement_pair,
    labelled,
    probit,
    require_post_transform,
    rows_of,
    transformed,
)


def linear_scores(
    b: Builder, node: Node, x: SSAValue, targets: int, intercepts: Sequence[float]
) -> SSAValue:
    """Return x · coefficientsᵀ + intercepts, `[N, targets]`; there may be no intercepts."""
    coefficients = np.array(node.numbers("coefficients", ()), np.float32)
    features = fixed(extents_of(x)[1], "the features of a row")
    if len(coefficients) != targets * features:
        node.fail(f"coefficients has {len(coefficients)} elements, expected {targets} · {features}")
    if len(intercepts) not in (0, targets):
        node.fail(f"intercepts has {len(intercepts)} elements, expected none or {targets}")
    table = np.ascontiguousarray(coefficients.reshape(targets, features).T)
    found = matmul(b, x, b.constant(table))
    if not intercepts:
        return found
    return apply(b, "add", found, column_scalars(b, intercepts, found))


@importer("LinearRegressor", domain=DOMAIN)
def linear_regressor(b: Builder, node: Node) -> SSAValue:
    """Import `[N, features]` to `[N, targets]` of f32; of one target, only PROBIT transforms."""
    targets, kind = node.integer("targets", 1), require_post_transform(node)
    if targets < 1:
        node.fail(f"targets is {targets}, expected at least 1")
    x = cast(b, rows_of(b, node, node.input(0)), f32)
    values = linear_scores(b, node, x, targets, node.numbers("intercepts", ()))
    if targets == 1:
        return probit(b, values) if kind == "PROBIT" else values
    return transformed(b, values, kind)


@importer("LinearClassifier", domain=DOMAIN)
def linear_classifier(b: Builder, node: Node) -> Sequence[SSAValue]:
    """Import `[N, features]` to labels `[N]` and scores `[N, classes]` of f32.

    There are as many scores as intercepts; one of two classes is the probability of the second.
    """
    node.has("multi_class")  # only the meaning of the scores depends on it
    kind, intercepts = require_post_transform(node), node.numbers("intercepts", ())
    labels, is_text = class_labels(b, node, "classlabels_ints")
    count = len(intercepts) or len(labels)
    x = cast(b, rows_of(b, node, node.input(0)), f32)
    values = linear_scores(b, node, x, count, intercepts)
    if count > 1:
        if len(labels) != count:
            node.fail(f"there are {len(labels)} labels, expected {count}")
        classes = labelled(b, best_class(b, values), labels, is_text)
        return classes, transformed(b, values, kind)
    if len(labels) > 2:
        node.fail(f"there are {len(labels)} labels of one score, expected 1 or 2")
    is_above = apply(b, "gt", values, scalar(b, 0, values))
    if len(labels) != 2:
        labels = [b.texts.code(text) for text in "01"] if is_text else [0, 1]
        classes = class_where(b, is_above, 1, 0)
        scores = probit(b, values) if kind == "PROBIT" else values
        return labelled(b, classes, labels, is_text), scores
    if kind == "PROBIT":
        node.unsupported("post_transform is PROBIT where one score is that of two classes")
    classes = class_where(b, is_above, 1, 0)
    return labelled(b, classes, labels, is_text), complement_pair(b, values, kind)
