"""Decision trees as tables, in the one form that `braid.tree_ensemble` walks. No IR."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from braid.dialects.braid.relayout import Array

LE, LT, GE, GT, EQ, NE, MEMBER = range(7)
"""The tests of a node on its feature, in the order of ONNX's TreeEnsemble."""
_MOST_STEPS = 4096
_MOST_WEIGHTS = 1 << 28
_Node = tuple[int, float, int, int]
"""A feature with the way of NaN, a split, and the places where it holds and where not."""


class ForestError(Exception):
    """Tables that are not trees; the message gives the reason."""


@dataclass(frozen=True)
class Forest:
    """Trees: leaves, whose places count from 0 on, then nodes that ask.

    The last leaf is in no tree: it serves as a tree that adds nothing. The tables from `features`
    to `if_false` have an entry for each node that asks, and `members` the sets of those that ask
    for membership. Entry i of `leaves`, `targets` and `weights` adds weight i to target i where a
    walk ends at leaf i.
    """

    features: Array
    modes: Array
    splits: Array
    members: Mapping[int, Array]
    takes_missing: Array
    if_true: Array
    if_false: Array
    roots: Array
    leaf_count: int
    leaves: Array
    targets: Array
    weights: Array


@dataclass(frozen=True)
class Packed:
    """Nodes as `braid.tree_ensemble` has them, and the most steps of a walk."""

    nodes: Array
    depth: int
    tracks_missing: bool


def packed(forest: Forest) -> Packed:
    """Return the nodes of a forest, each of which asks whether its feature is at most a split.

    x < s is x ≤ the number before s; equality and membership become several nodes.
    Raises ForestError for trees with a cycle, or deeper than 4096 decisions.
    """
    dtype, modes = forest.splits.dtype, forest.modes
    word = np.dtype(f"i{dtype.itemsize}")
    # Comparisons with NaN are false; membership tests become other nodes below.
    is_never = np.isnan(forest.splits) | (modes == MEMBER)
    is_swapped = np.isin(modes, (GE, GT)) & ~is_never
    splits = np.where(np.isin(modes, (LT, GE)), _before(forest.splits), forest.splits)
    splits[is_never] = np.nan
    missing_first = np.where(is_swapped, ~forest.takes_missing, forest.takes_missing)
    first = np.where(is_swapped, forest.if_false, forest.if_true)
    second = np.where(is_swapped, forest.if_true, forest.if_false)
    second = np.where(is_never & (modes == NE), forest.if_true, second)
    leaves = np.arange(forest.leaf_count)
    table = np.zeros((forest.leaf_count + len(modes), 4), word)
    table[leaves, 2] = table[leaves, 3] = leaves
    asking = table[forest.leaf_count :]
    asking[:, 0] = 2 * forest.features + missing_first
    asking[:, 1] = splits.astype(dtype).view(word)
    asking[:, 2], asking[:, 3] = first, second
    added: list[_Node] = []
    wanted = np.isin(modes, (EQ, NE)) & ~is_never | (modes == MEMBER)
    for place in np.flatnonzero(wanted).tolist():
        node = _expanded(forest, place, len(table), added)
        asking[place] = _words([node], dtype, word)[0]
    nodes = np.concatenate([table, _words(added, dtype, word)]) if added else table
    depth = _depth(nodes, forest.roots, forest.leaf_count)
    return Packed(nodes, depth, bool((nodes[:, 0] & 1).any()))


def _before(splits: Array) -> Array:
    """Return the largest numbers below these: NaN, with which nothing compares, below -inf."""
    before = np.nextafter(splits, np.array(-np.inf, splits.dtype))
    before[np.isneginf(splits)] = np.nan
    return before


def _words(nodes: Sequence[_Node], dtype: np.dtype, word: np.dtype) -> Array:
    table = np.array([(feature, 0, *children) for feature, _, *children in nodes], word)
    table[:, 1] = np.array([split for _, split, *_ in nodes], dtype).view(word)
    return table


def _expanded(forest: Forest, place: int, first: int, added: list[_Node]) -> _Node:
    """Return the node that replaces one that tests equality or membership.

    Appends the other nodes to `added`; the first one will have the index `first`.
    """
    feature, missing = 2 * int(forest.features[place]), bool(forest.takes_missing[place])
    yes, no = int(forest.if_true[place]), int(forest.if_false[place])
    mode = int(forest.modes[place])
    if mode == NE:  # which holds for NaN
        yes, no, missing = no, yes, False
    dtype = forest.splits.dtype
    members = forest.members[place] if mode == MEMBER else forest.splits[place : place + 1]
    members = np.unique(members[~np.isnan(members)]).astype(dtype)

    def put(node: _Node) -> int:
        added.append(node)
        return first + len(added) - 1

    def within(low: int, high: int) -> _Node:
        """Return the node that looks among the members from `low` up to `high`."""
        if high - low == 1:
            member = members[low:high]
            less = put((feature, float(_before(member)[0]), no, yes))
            # A NaN goes the second way at all splits before the last member's.
            is_last = missing and high == len(members)
            return (feature + is_last, float(member[0]), less, no)
        middle = (low + high) // 2
        sides = put(within(low, middle)), put(within(middle, high))
        return (feature, float(members[middle - 1]), *sides)

    if not len(members):
        return (feature + missing, float("nan"), yes, no)
    return within(0, len(members))


def distinct(numbers: Array) -> Array:
    """Return the numbers in order, each once; numpy's `unique`, by hashing, takes far longer."""
    found = np.sort(numbers.reshape(-1))
    return found[np.concatenate([[True], found[1:] != found[:-1]])] if len(found) else found


def _depth(nodes: Array, roots: Array, leaf_count: int) -> int:
    """Return the most steps from a root to a leaf."""
    level, depth = distinct(roots), 0
    while True:
        level = level[level >= leaf_count]
        if not len(level):
            return depth
        if depth == _MOST_STEPS:
            raise ForestError(
                f"the trees have a cycle, or are more than {_MOST_STEPS} decisions deep"
            )
        level, depth = distinct(nodes[level, 2:]), depth + 1


def trees_of_leaves(forest: Forest) -> Array:
    """Return the tree of each leaf, -1 of one that none has, -2 of one that several share."""
    found = np.full(forest.leaf_count, -1)
    place, tree = forest.roots, np.arange(len(forest.roots))
    while len(place):
        at_leaf = place < forest.leaf_count
        leaf, own = place[at_leaf], tree[at_leaf]
        is_other = (found[leaf] != -1) & (found[leaf] != own)
        found[leaf] = np.where(is_other, -2, own)
        asking, own = place[~at_leaf] - forest.leaf_count, tree[~at_leaf]
        next_place = np.concatenate([forest.if_true[asking], forest.if_false[asking]])
        count = len(forest.roots)
        place, tree = np.divmod(distinct(next_place * count + np.tile(own, 2)), count)
    return found


@dataclass(frozen=True)
class Weights:
    """Roots `[G, T]` and weights `[L, C]` of a forest whose targets are G groups or C classes.

    `is_given` says for each entry whether the model has it; missing ones are `neutral`.
    """

    roots: Array
    weights: Array
    is_given: Array


def grouped_weights(forest: Forest, trees: Array, targets: int, neutral: float) -> Weights:
    """Return the weights of a forest: by trees if each has one target, else for all targets.

    `trees` are those of the leaves, see `trees_of_leaves`.

    Raises ForestError where they take too much memory.
    """
    own = trees[forest.leaves]
    if targets > 1 and len(forest.targets) and not (trees == -2).any():
        lowest = np.full(len(forest.roots), targets)
        highest = np.full(len(forest.roots), -1)
        used = own >= 0
        np.minimum.at(lowest, own[used], forest.targets[used])
        np.maximum.at(highest, own[used], forest.targets[used])
        if (lowest == highest).all():
            counts = np.bincount(lowest, minlength=targets)
            dense = forest.leaf_count * targets
            if counts.max() * targets <= 2 * len(forest.roots) or dense > _MOST_WEIGHTS:
                return _by_tree(forest, lowest, counts, neutral)
    if forest.leaf_count * targets > _MOST_WEIGHTS:
        raise ForestError(f"{forest.leaf_count} leaves have weights of {targets} targets each")
    shape = (forest.leaf_count, targets)
    return _filled(forest, forest.roots[None, :], shape, forest.targets, neutral)


def _by_tree(forest: Forest, target: Array, counts: Array, neutral: float) -> Weights:
    """Return one group for each target; groups with fewer trees get more that add nothing."""
    roots = np.full((len(counts), int(counts.max())), forest.leaf_count - 1)
    order = np.argsort(target, kind="stable")
    place = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    roots[target[order], place] = forest.roots[order]
    shape = (forest.leaf_count, 1)
    zero = np.zeros_like(forest.targets)
    return _filled(forest, roots, shape, zero, neutral)


def _filled(
    forest: Forest,
    roots: Array,
    shape: tuple[int, int],
    columns: Array,
    neutral: float,
) -> Weights:
    weights, is_given = np.full(shape, neutral, forest.weights.dtype), np.zeros(shape, np.bool_)
    index = forest.leaves, columns
    is_given[index] = True
    combine = np.add if neutral == 0 else np.minimum if neutral > 0 else np.maximum
    combine.at(weights, index, forest.weights)
    return Weights(roots, weights, is_given)
