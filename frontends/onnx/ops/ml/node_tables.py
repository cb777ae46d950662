"""The trees of TreeEnsembleClassifier and TreeEnsembleRegressor: lists of nodes with ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from braid.dialects.braid.relayout import Array
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.ops.ml.forest import EQ, GE, GT, LE, LT, NE, Forest, distinct

_LEAF = -1
_MODES: Mapping[str, int] = {
    "BRANCH_LEQ": LE,
    "BRANCH_LT": LT,
    "BRANCH_GTE": GE,
    "BRANCH_GT": GT,
    "BRANCH_EQ": EQ,
    "BRANCH_NEQ": NE,
    "LEAF": _LEAF,
}


_AS_TENSOR: Mapping[str, str] = {
    "base_values": "base_values_as_tensor",
    "class_weights": "class_weights_as_tensor",
    "nodes_values": "nodes_values_as_tensor",
    "target_weights": "target_weights_as_tensor",
}


@dataclass(frozen=True)
class LeafLists:
    """The names of the lists of targets and of the leaves' contributions to them."""

    trees: str
    nodes: str
    targets: str
    weights: str


CLASSES = LeafLists("class_treeids", "class_nodeids", "class_ids", "class_weights")
TARGETS = LeafLists("target_treeids", "target_nodeids", "target_ids", "target_weights")


@dataclass(frozen=True)
class _Ids:
    """Nodes by the ids of their trees and their own ids; each pair identifies one node."""

    node: Node
    trees: Array
    ids: Array
    keys: Array
    order: Array

    @staticmethod
    def of(node: Node, trees: Array, ids: Array) -> "_Ids":
        """Return the ids of nodes. Raises BraidError where two nodes have the same."""
        own = _Ids(node, distinct(trees), distinct(ids), np.zeros(0), np.zeros(0))
        keys = own._keys(np.searchsorted(own.trees, trees), np.searchsorted(own.ids, ids))
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        twice = np.flatnonzero(keys[1:] == keys[:-1])
        if len(twice):
            place = order[twice[0]]
            node.fail(f"node {ids[place]} of tree {trees[place]} is there twice")
        return _Ids(node, own.trees, own.ids, keys, order)

    def _keys(self, trees: Array, ids: Array) -> Array:
        return trees * len(self.ids) + ids

    def places(self, name: str, trees: Array, ids: Array) -> Array:
        """Return where these nodes stand. Raises BraidError for one that does not exist."""
        tree = np.minimum(np.searchsorted(self.trees, trees), len(self.trees) - 1)
        own = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        key = self._keys(tree, own)
        at = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        is_known = (self.trees[tree] == trees) & (self.ids[own] == ids) & (self.keys[at] == key)
        if len(wrong := np.flatnonzero(~is_known)):
            self.node.fail(
                f"{name} has node {ids[wrong[0]]} of tree {trees[wrong[0]]} at {wrong[0]}, which "
                "does not exist"
            )
        return self.order[at]


def integers(node: Node, name: str, count: int | None = None) -> Array:
    """Return a list of integers, as long as `count` says if it says so."""
    found = np.array(node.integers(name, ()), np.int64)
    if count is not None and len(found) != count:
        node.fail(f"{name} has {len(found)} elements, expected {count}")
    return found


def floats(node: Node, name: str, dtype: np.dtype, count: int | None = None) -> Array:
    """Return a list of floats, which may be a tensor in another attribute."""
    tensor = _AS_TENSOR[name]
    if node.has(tensor) and node.has(name):
        node.fail(f"both {name} and {tensor} are given, expected one of them")
    if node.has(tensor):
        name, found = tensor, node.tensor(tensor)
        if found.ndim != 1:
            node.fail(f"{tensor} has shape {list(found.shape)}, expected a vector")
    else:
        found = np.array(node.numbers(name, ()), np.float32)
    if count is not None and len(found) != count:
        node.fail(f"{name} has {len(found)} elements, expected {count}")
    return found.astype(dtype)


def forest_of(node: Node, lists: LeafLists, features: int, targets: int, dtype: np.dtype) -> Forest:
    """Return the trees of a node, whose leaves' weights are in the attributes `lists`.

    Raises BraidError where the attributes contradict each other.
    """
    ids = integers(node, "nodes_nodeids")
    count = len(ids)
    if count == 0:
        node.fail("nodes_nodeids is empty, expected at least one node")
    trees = integers(node, "nodes_treeids", count)
    feature = integers(node, "nodes_featureids", count)
    modes = _modes(node, count)
    splits = floats(node, "nodes_values", dtype, count)
    for name in ("nodes_hitrates", "nodes_hitrates_as_tensor"):
        node.has(name)
    missing = np.zeros(count, np.bool_)
    if len(given := integers(node, "nodes_missing_value_tracks_true")):
        if len(given) != count:
            node.fail(
                f"nodes_missing_value_tracks_true has {len(given)} elements, expected {count}"
            )
        missing = given != 0
    known, is_leaf = _Ids.of(node, trees, ids), modes == _LEAF
    asking = np.flatnonzero(~is_leaf)
    outside = asking[(feature[asking] < 0) | (feature[asking] >= features)]
    if len(outside):
        node.fail(
            f"nodes_featureids has {feature[outside[0]]}, expected a number from 0 up to "
            f"{features - 1}"
        )
    children = [
        known.places(name, trees[asking], integers(node, name, count)[asking])
        for name in ("nodes_truenodeids", "nodes_falsenodeids")
    ]
    leaf_count = count - len(asking) + 1
    place = np.zeros(count, np.int64)
    place[is_leaf] = np.arange(leaf_count - 1)
    place[asking] = leaf_count + np.arange(len(asking))
    weights = _weights(node, lists, known, targets, dtype)
    at_leaf = is_leaf[weights[0]]  # ONNX Runtime reads this, too
    leaves, ids_of, values = (each[at_leaf] for each in weights)
    if targets == 1:  # a leaf without a weight has 0
        bare = np.setdiff1d(np.flatnonzero(is_leaf), leaves)
        leaves = np.concatenate([leaves, bare])
        ids_of = np.concatenate([ids_of, np.zeros_like(bare)])
        values = np.concatenate([values, np.zeros(len(bare), dtype)])
    return Forest(
        features=feature[asking],
        modes=modes[asking],
        splits=splits[asking],
        members={},
        takes_missing=missing[asking],
        if_true=place[children[0]],
        if_false=place[children[1]],
        roots=place[_roots(node, trees, asking, children)],
        leaf_count=leaf_count,
        leaves=place[leaves],
        targets=ids_of,
        weights=values,
    )


def _modes(node: Node, count: int) -> Array:
    texts = node.texts("nodes_modes", ())
    if len(texts) != count:
        node.fail(f"nodes_modes has {len(texts)} elements, expected {count}")
    if unknown := set(texts) - set(_MODES):
        node.fail(f"nodes_modes has '{min(unknown)}', expected one of {', '.join(_MODES)}")
    return np.array([_MODES[text] for text in texts])


def _roots(node: Node, trees: Array, asking: Array, children: Sequence[Array]) -> Array:
    """Return the first node of each tree that is no child, by the order of trees in the list.

    Raises BraidError if it is missing, or if inner nodes form a cycle outside of the tree.
    """
    is_child = np.zeros(len(trees), np.bool_)
    for side in children:
        is_child[side] = True
    orphans = np.flatnonzero(~is_child)
    found, first = np.unique(trees[orphans], return_index=True)
    if len(lost := np.setdiff1d(trees, found)):
        node.fail(f"tree {lost[0]} has no root: each of its nodes is a child of another")
    roots = np.sort(orphans[first])
    links = np.full((2, len(trees)), -1)
    links[:, asking] = children
    reached = np.zeros(len(trees), np.bool_)
    level = roots
    while len(level):
        reached[level] = True
        below = links[:, level].reshape(-1)
        level = distinct(below[below >= 0])
        level = level[~reached[level]]
    if len(lost := asking[~reached[asking]]):
        node.fail(
            f"nodes of tree {trees[lost[0]]} have a cycle, or do not hang together: node "
            f"{lost[0]} of the list is in no tree that begins at a root"
        )
    return roots


def _weights(
    node: Node, lists: LeafLists, known: _Ids, targets: int, dtype: np.dtype
) -> tuple[Array, Array, Array]:
    """Return the places of leaves, their targets and weights."""
    target = integers(node, lists.targets)
    places = known.places(
        lists.nodes,
        integers(node, lists.trees, len(target)),
        integers(node, lists.nodes, len(target)),
    )
    weights = floats(node, lists.weights, dtype, len(target))
    if len(wrong := target[(target < 0) | (target >= targets)]):
        node.fail(f"{lists.targets} has {wrong[0]}, expected a number from 0 up to {targets - 1}")
    return places, target, weights
