"""From a forest to the scores of its targets."""

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.tree_ensemble import TreeEnsembleOp
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import apply, cast, reshape, scalar
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.ops.ml.forest import (
    Forest,
    ForestError,
    distinct,
    grouped_weights,
    packed,
    trees_of_leaves,
)

NEUTRAL = {"add": 0.0, "minimum": np.inf, "maximum": -np.inf}


@dataclass(frozen=True)
class Scores:
    """The sums of a forest, `[N, targets]`, and which targets a row has weights of.

    `is_scored` is a tensor of 0 and 1 where that depends on the row, else one flag per target.
    """

    values: SSAValue
    is_scored: SSAValue | Array


def tree_scores(
    b: Builder, node: Node, x: SSAValue, forest: Forest, targets: int, kind: str
) -> Scores:
    """Return the weights of all trees, combined by target; `x` is `[N, F]` of f32 or f64."""
    try:
        nodes = packed(forest)
        trees = trees_of_leaves(forest)
        weights = grouped_weights(forest, trees, targets, NEUTRAL[kind])
    except ForestError as error:
        node.fail(str(error))
    word, dtype = nodes.nodes.dtype, to_numpy(element_type_of(x))
    table = b.parameter(_key(node, "nodes"), nodes.nodes)
    roots = b.parameter(_key(node, "roots"), weights.roots.astype(word))

    def walked(values: Array, name: str, kind: str) -> SSAValue:
        leaves = b.parameter(_key(node, name), values.astype(dtype))
        op = TreeEnsembleOp.get(
            x, table, roots, leaves, kind, nodes.depth, tracks_missing=nodes.tracks_missing
        )
        found = b.emit(op)
        return reshape(b, found, [extents_of(found)[0], targets])

    values = walked(weights.weights, "weights", kind)
    always, ever = _coverage(forest, trees, targets)
    if np.array_equal(always, ever):
        return Scores(values, always)
    return Scores(values, walked(weights.is_given, "given", "maximum"))


def _key(node: Node, name: str) -> str:
    return f"{node.proto.output[-1] or node.proto.output[0]}/{name}"


def _coverage(forest: Forest, trees: Array, targets: int) -> tuple[Array, Array]:
    """Return whether every row has a weight of each target, and whether any may have one."""
    ever = np.zeros(targets, np.bool_)
    ever[forest.targets] = True
    always = np.zeros(targets, np.bool_)
    used = trees >= 0
    leaves_of = np.bincount(trees[used], minlength=len(forest.roots))
    leaf, target = np.divmod(distinct(forest.leaves * targets + forest.targets), targets)
    own = trees[leaf]
    known = own >= 0
    key = own[known] * targets + target[known]
    tree_target, count = np.unique(key, return_counts=True)
    whole = (count == leaves_of[tree_target // targets]) & ~(trees == -2).any()
    always[tree_target[whole] % targets] = True
    return always, ever


def known_scores(b: Builder, scores: Scores, kind: str) -> SSAValue:
    """Return the scores, 0 of the targets that a row has no weight of."""
    values = scores.values
    if kind == "add":
        return values
    given = scores.is_scored
    if isinstance(given, SSAValue):
        condition = apply(b, "gt", given, scalar(b, 0, given))
    elif given.all():
        return values
    else:
        condition = b.constant(given.reshape(1, -1))
    return apply(b, "select", condition, values, scalar(b, 0, values))


def features_of(b: Builder, x: SSAValue) -> SSAValue:
    """Return features in the type that trees compare in: f64 if they are, else f32."""
    return x if element_type_of(x) == f64 else cast(b, x, f32)
