"""`TreeEnsemble` and other ops of classical machine learning."""

import math
from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import f32, i64, to_numpy
from braid.dialects.braid.indexing import GatherElementsOp, GatherOp
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_evaluation import fixed, fixed_shape
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    broadcast,
    cast,
    reduce,
    reshape,
    scalar,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer

DOMAIN = "ai.onnx.ml"

_COMPARISONS = ("le", "lt", "ge", "gt", "eq", "ne")
"""The modes of a node in ONNX's order; the next one asks whether a value is in a set."""
_MEMBER = len(_COMPARISONS)
_AGGREGATIONS = ("add", "add", "minimum", "maximum")
"""Average, sum, minimum, maximum."""


@importer("ArrayFeatureExtractor", domain=DOMAIN)
def array_feature_extractor(b: Builder, node: Node) -> SSAValue:
    """Elements of the last dim; a vector is taken for a row."""
    x, indices = node.input(0), node.input(1)
    shape = extents_of(x)
    rows = x if len(shape) > 1 else reshape(b, x, [1, *shape])
    flat = reshape(b, indices, [math.prod(extents_of(indices))])
    return b.emit(GatherOp.get(rows, flat, len(extents_of(rows)) - 1))


@importer("Binarizer", domain=DOMAIN)
def binarizer(b: Builder, node: Node) -> SSAValue:
    """1 where x is above the threshold, 0 elsewhere."""
    x = node.input(0)
    above = apply(b, "gt", x, scalar(b, node.number("threshold", 0.0), x))
    return cast(b, above, element_type_of(x))


@dataclass(frozen=True)
class _Forest:
    """Tables by node: the interior nodes, then the leaves, which are their own children.

    `members` holds a row of values for every node, filled up with NaN.
    """

    features: Array
    modes: Array
    splits: Array
    members: Array
    takes_missing: Array
    if_true: Array
    if_false: Array
    roots: Array
    leaves_from: int

    @property
    def depth(self) -> int:
        """The most decisions on the way to a leaf."""
        level, depth = set(self.roots.tolist()), 0
        while any(place < self.leaves_from for place in level):
            if depth > self.leaves_from:
                return -1
            level = {int(t[place]) for place in level for t in (self.if_true, self.if_false)}
            depth += 1
        return depth


def _forest(node: Node, features: int) -> _Forest:
    """Return the tables of the node's trees, which decide by `features` features.

    Raises BraidError where the attributes contradict each other.
    """
    ids = _column(node, "nodes_featureids", bound=features)
    interior, leaves = len(ids), len(_column(node, "leaf_targetids", node.integer("n_targets")))
    modes = _table(node, "nodes_modes", interior)
    if len(wrong := modes[modes > _MEMBER]):
        node.fail(f"nodes_modes has {wrong[0]}, expected at most {_MEMBER}")
    splits = _table(node, "nodes_splits", interior)
    if node.has("nodes_hitrates"):
        _table(node, "nodes_hitrates", interior)
    own = np.arange(interior, interior + leaves)
    children = [_children_of(node, side, interior, leaves) for side in ("true", "false")]
    roots = _column(node, "tree_roots", bound=interior)
    is_leaf = (children[0] == children[1]) & (children[0] >= interior)
    missing = np.zeros(interior, np.int64)
    if node.has("nodes_missing_value_tracks_true"):
        missing = _column(node, "nodes_missing_value_tracks_true", bound=2, count=interior)
    nothing = np.zeros(leaves, np.int64)
    return _Forest(
        features=np.concatenate([ids, nothing]),
        modes=np.concatenate([modes.astype(np.int64), nothing]),
        splits=np.concatenate([splits, nothing.astype(splits.dtype)]),
        members=_members(node, modes, splits.dtype, interior + leaves),
        takes_missing=np.concatenate([missing, nothing]).astype(np.bool_),
        if_true=np.concatenate([children[0], own]),
        if_false=np.concatenate([children[1], own]),
        roots=np.where(is_leaf[roots], children[0][roots], roots),
        leaves_from=interior,
    )


def _column(node: Node, name: str, bound: int, count: int | None = None) -> Array:
    """Return a list of integers in [0, bound), which is as long as `count` says or not empty."""
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
    """Return the children on one side: interior nodes first, and leaves after all of them."""
    to_leaf = _column(node, f"nodes_{side}leafs", bound=2, count=interior) == 1
    name = f"nodes_{side}nodeids"
    ids = _column(node, name, bound=max(interior, leaves), count=interior)
    limits = np.where(to_leaf, leaves, interior)
    if len(wrong := np.flatnonzero(ids >= limits)):
        place = wrong[0]
        kind = "leaves" if to_leaf[place] else "nodes"
        node.fail(f"{name} has {ids[place]} of {limits[place]} {kind} at {place}")
    return ids + interior * to_leaf


def _members(node: Node, modes: Array, dtype: np.dtype, count: int) -> Array:
    """The sets of the nodes that ask for membership; in the attribute NaN ends each of them."""
    values = node.tensor("membership_values") if node.has("membership_values") else np.zeros(0)
    ends = np.flatnonzero(np.isnan(values))
    sets = np.split(values, ends + 1)[: len(ends)]
    asking = np.flatnonzero(modes == _MEMBER)
    if len(asking) != len(sets):
        node.fail(f"{len(sets)} sets of members, expected {len(asking)}")
    table = np.full((count, max((len(s) for s in sets), default=1)), np.nan, dtype)
    for place, members in zip(asking, sets, strict=True):
        table[place, : len(members)] = members
    return table


@importer("TreeEnsemble", domain=DOMAIN)
def tree_ensemble(b: Builder, node: Node) -> SSAValue:
    """`[N, features]` to `[N, targets]`: all trees go down one level at a time."""
    x = node.input(0)
    if len(extents_of(x)) != 2:
        node.fail(f"its input has {len(extents_of(x))} dims, expected 2")
    forest = _forest(node, fixed_shape(x)[1])
    if node.integer("post_transform", 0):
        node.unsupported("only post_transform 0 (none) is supported")
    if forest.depth < 0:
        node.fail("the trees have a cycle")
    place = broadcast(b, b.constant(forest.roots[None, :]), [extents_of(x)[0], len(forest.roots)])
    for _ in range(forest.depth):
        decision = _decision(b, forest, x, place)
        chosen = (b.emit(GatherOp.get(b.constant(t), place, 0)) for t in _children(forest))
        place = apply(b, "select", decision, *chosen)
    leaf = apply(b, "sub", place, scalar(b, forest.leaves_from, place))
    return _aggregated(b, node, leaf)


def _children(forest: _Forest) -> tuple[Array, Array]:
    return forest.if_true, forest.if_false


def _decision(b: Builder, forest: _Forest, x: SSAValue, place: SSAValue) -> SSAValue:
    """Return which way each row goes at each place, `[N, trees]`."""

    def at_place(table: Array) -> SSAValue:
        return b.emit(GatherOp.get(b.constant(table), place, 0))

    value = b.emit(GatherElementsOp.get(x, at_place(forest.features), 1))
    split, mode = cast(b, at_place(forest.splits), element_type_of(x)), at_place(forest.modes)
    result: SSAValue | None = None
    for number in sorted({int(mode) for mode in forest.modes[: forest.leaves_from]}):
        if number == _MEMBER:
            answer = _is_member(b, value, cast(b, at_place(forest.members), element_type_of(x)))
        else:
            answer = apply(b, _COMPARISONS[number], value, split)
        asked = apply(b, "eq", mode, scalar(b, number, mode))
        result = answer if result is None else apply(b, "select", asked, answer, result)
    assert result is not None
    if forest.takes_missing.any():
        missing = apply(b, "and", apply(b, "isnan", value), at_place(forest.takes_missing))
        result = apply(b, "or", result, missing)
    return result


def _is_member(b: Builder, value: SSAValue, members: SSAValue) -> SSAValue:
    shape = extents_of(value)
    equal = apply(b, "eq", reshape(b, value, [*shape, 1]), members)
    count = reduce(b, "maximum", cast(b, equal, f32), [len(shape)])
    return reshape(b, apply(b, "gt", count, scalar(b, 0, count)), shape)


def _aggregated(b: Builder, node: Node, leaf: SSAValue) -> SSAValue:
    """The weights of the leaves `[N, trees]`, combined by target."""
    rows, trees = extents_of(leaf)[0], fixed(extents_of(leaf)[1], "the trees")
    targets, kind = node.integer("n_targets"), node.integer("aggregate_function", 1)
    if not 0 <= kind < len(_AGGREGATIONS):
        node.fail(f"aggregate_function is {kind}, expected one from 0 up to 3")
    ids = _column(node, "leaf_targetids", bound=targets)
    weights = _table(node, "leaf_weights", len(ids))
    weight = b.emit(GatherOp.get(b.constant(weights), leaf, 0))
    target = b.emit(GatherOp.get(b.constant(ids), leaf, 0))
    wanted = b.constant(np.arange(targets)[None, None, :])
    meant = apply(b, "eq", reshape(b, cast(b, target, i64), [rows, trees, 1]), wanted)
    wide = reshape(b, weight, [rows, trees, 1])
    limits = np.finfo(to_numpy(element_type_of(wide)))
    rest = scalar(b, (0, 0, limits.max, limits.min)[kind], wide)
    total = reduce(b, _AGGREGATIONS[kind], apply(b, "select", meant, wide, rest), [1])
    if kind == 0:
        total = apply(b, "mul", total, scalar(b, 1 / trees, total))
    return reshape(b, total, [rows, targets])
