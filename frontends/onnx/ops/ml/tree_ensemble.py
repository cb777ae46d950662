"""`TreeEnsemble`: nodes that ask and leaves in lists of their own."""

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_evaluation import fixed
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import cast
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.ops.ml.forest import MEMBER, Forest
from braid.frontends.onnx.ops.ml.scores import DOMAIN, POST_TRANSFORMS
from braid.frontends.onnx.ops.ml.tree_models import COMBINES, aggregated
from braid.frontends.onnx.ops.ml.tree_scores import features_of, tree_scores

_AGGREGATIONS = ("AVERAGE", "SUM", "MIN", "MAX")


@importer("TreeEnsemble", domain=DOMAIN)
def tree_ensemble(b: Builder, node: Node) -> SSAValue:
    """Import `[N, features]` to `[N, targets]`."""
    given = node.input(0)
    x = features_of(b, given)
    if len(extents_of(x)) != 2:
        node.fail(f"its input has {len(extents_of(x))} dims, expected 2")
    targets = node.integer("n_targets")
    kind = _named(node, "post_transform", 0, POST_TRANSFORMS)
    how = _named(node, "aggregate_function", 1, _AGGREGATIONS)
    features = fixed(extents_of(x)[1], "the features of a row")
    forest = _forest(node, features, targets, to_numpy(element_type_of(x)))
    scores = tree_scores(b, node, x, forest, targets, COMBINES[how])
    nothing = np.zeros(0)
    found = aggregated(b, scores, how, len(forest.roots), nothing, kind)
    return cast(b, found, element_type_of(given))


def _named(node: Node, name: str, default: int, names: tuple[str, ...]) -> str:
    number = node.integer(name, default)
    if not 0 <= number < len(names):
        node.fail(f"{name} is {number}, expected one from 0 up to {len(names) - 1}")
    return names[number]


def _forest(node: Node, features: int, targets: int, dtype: np.dtype) -> Forest:
    """Return the node's trees, which decide by `features` features.

    Raises BraidError where the attributes contradict each other.
    """
    ids = _column(node, "nodes_featureids", bound=features)
    target = _column(node, "leaf_targetids", targets)
    asking, leaves = len(ids), len(target)
    modes = _table(node, "nodes_modes", asking)
    if len(wrong := modes[modes > MEMBER]):
        node.fail(f"nodes_modes has {wrong[0]}, expected at most {MEMBER}")
    if node.has("nodes_hitrates"):
        _table(node, "nodes_hitrates", asking)
    splits = _table(node, "nodes_splits", asking)
    children = [_children_of(node, side, asking, leaves) for side in ("true", "false")]
    weights = _table(node, "leaf_weights", leaves)
    roots = _column(node, "tree_roots", bound=asking)
    # A tree of one leaf is written as a node whose ways both lead to it.
    is_leaf = (children[0] == children[1]) & (children[0] < leaves)
    missing = np.zeros(asking, np.int64)
    if node.has("nodes_missing_value_tracks_true"):
        missing = _column(node, "nodes_missing_value_tracks_true", bound=2, count=asking)
    return Forest(
        features=ids,
        modes=modes.astype(np.int64),
        splits=splits.astype(dtype),
        members=_members(node, modes),
        takes_missing=missing.astype(np.bool_),
        if_true=children[0],
        if_false=children[1],
        roots=np.where(is_leaf[roots], children[0][roots], leaves + 1 + roots),
        leaf_count=leaves + 1,
        leaves=np.arange(leaves),
        targets=target,
        weights=weights.astype(dtype),
    )


def _column(node: Node, name: str, bound: int, count: int | None = None) -> Array:
    """Return a list of integers in [0, bound) with `count` entries, or if that is None any but
    0."""
    found = np.array(node.integers(name), np.int64)
    if len(found) != count if count is not None else not len(found):
        node.fail(f"{name} has {len(found)} elements, expected {count or 'at least one'}")
    if len(wrong := found[(found < 0) | (found >= bound)]):
        node.fail(f"{name} has {wrong[0]}, expected a number from 0 up to {bound - 1}")
    return found


def _table(node: Node, name: str, count: int) -> Array:
    """Return a tensor that is a vector of `count` elements."""
    found = node.tensor(name)
    if found.shape != (count,):
        node.fail(f"{name} has shape {list(found.shape)}, expected [{count}]")
    return found


def _children_of(node: Node, side: str, interior: int, leaves: int) -> Array:
    """Return the positions of the children on one side: leaves, then an invalid one, then nodes."""
    to_leaf = _column(node, f"nodes_{side}leafs", bound=2, count=interior) == 1
    name = f"nodes_{side}nodeids"
    ids = _column(node, name, bound=max(interior, leaves), count=interior)
    limits = np.where(to_leaf, leaves, interior)
    if len(wrong := np.flatnonzero(ids >= limits)):
        place = wrong[0]
        kind = "leaves" if to_leaf[place] else "nodes"
        node.fail(f"{name} has {ids[place]} of {limits[place]} {kind} at {place}")
    return ids + (leaves + 1) * ~to_leaf


def _members(node: Node, modes: Array) -> dict[int, Array]:
    """Return the sets of nodes that ask for membership; in the attribute NaN ends each of them."""
    values = node.tensor("membership_values") if node.has("membership_values") else np.zeros(0)
    ends = np.flatnonzero(np.isnan(values))
    sets = np.split(values, ends + 1)[: len(ends)]
    asking = np.flatnonzero(modes == MEMBER).tolist()
    if len(asking) != len(sets):
        node.fail(f"{len(sets)} sets of members, expected {len(asking)}")
    return dict(zip(asking, sets, strict=True))
