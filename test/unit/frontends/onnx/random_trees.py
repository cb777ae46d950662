"""Random trees as attributes of ONNX's ops, and their results by definition."""

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import numpy_helper

from test.unit.frontends.onnx.conftest import Array

POST_TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
_MODES = [f"BRANCH_{mode}" for mode in ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")]
_COMPARISONS = (
    operator.le, operator.lt, operator.ge, operator.gt, operator.eq, operator.ne,
)  # fmt: skip
_MEMBER = len(_COMPARISONS)
Random = np.random.Generator


def floats(random: Random, count: int) -> list[float]:
    return random.standard_normal(count).astype(np.float32).tolist()


def pick(random: Random, choices: Sequence[Any]) -> Any:
    return choices[int(random.integers(len(choices)))]


def split(random: Random) -> float:
    """Return a number that some features equal, or any."""
    return float(random.integers(-2, 3)) if random.random() < 0.5 else floats(random, 1)[0]


def random_node_lists(
    random: Random, features: int
) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """Attributes of nodes with ids, and the ids of trees and leaves."""
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    lists: dict[str, list[Any]] = {name: [] for name in (*names, "missing_value_tracks_true")}
    leaves: list[tuple[int, int]] = []
    modes = pick(random, [*([mode] for mode in _MODES), _MODES])

    def grow(tree: int, depth: int) -> int:
        place = len(lists["modes"])
        own = lists["treeids"].count(tree)
        is_leaf = depth == 0 or random.random() < 0.15
        entry = (
            tree,
            own,
            0 if is_leaf else int(random.integers(features)),
            0.0 if is_leaf else split(random),
            "LEAF" if is_leaf else pick(random, modes),
            0,
            0,
            0 if is_leaf else int(random.integers(2)),
        )
        for values, value in zip(lists.values(), entry, strict=True):
            values.append(value)
        if is_leaf:
            leaves.append((tree, own))
        else:
            lists["truenodeids"][place] = grow(tree, depth - 1)
            lists["falsenodeids"][place] = grow(tree, depth - 1)
        return own

    for tree in range(int(random.integers(1, 6))):
        grow(tree, int(random.integers(0, 5)))
    if random.random() < 0.4:
        del lists["missing_value_tracks_true"]
    return {f"nodes_{name}": values for name, values in lists.items()}, leaves


def random_leaf_lists(
    random: Random, leaves: Sequence[tuple[int, int]], targets: int, kind: str
) -> tuple[dict[str, list[Any]], bool]:
    """Attributes of leaves, and whether every row has a weight of each target.

    Leaves have weights for all targets, for one in each tree, or for one in all trees.
    """
    style, one = pick(random, ["all", "by tree", "one"]), int(random.integers(targets))
    lists: dict[str, list[Any]] = {f"{kind}_{name}": [] for name in ("treeids", "nodeids", "ids")}
    for tree, leaf in leaves:
        wanted = {"all": range(targets), "by tree": [tree % targets], "one": [one]}[style]
        for target in wanted:
            for values, value in zip(lists.values(), (tree, leaf, target), strict=True):
                values.append(value)
    seen = lists[f"{kind}_ids"]
    covers = len(set(seen)) == targets
    return {**lists, f"{kind}_weights": floats(random, len(seen))}, covers


def with_doubles(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes with tensors of f64 in place of lists of floats."""
    names = ("nodes_values", "target_weights", "class_weights", "base_values")
    return {
        f"{name}_as_tensor" if name in names else name: numpy_helper.from_array(
            np.array(value, np.float64), name
        )
        if name in names
        else value
        for name, value in attributes.items()
    }


def random_tree_ensemble(random: Random, features: int, dtype: np.dtype[Any]) -> dict[str, Any]:
    """Attributes of TreeEnsemble."""
    asking: list[list[Any]] = []
    leaves: list[int] = []
    sets: dict[int, list[float]] = {}
    roots: list[int] = []
    targets = int(random.integers(1, 4))
    modes = pick(random, [*([mode] for mode in range(7)), list(range(7))])

    def grow(depth: int) -> tuple[int, int]:
        if depth == 0 or random.random() < 0.15:
            leaves.append(int(random.integers(targets)))
            return len(leaves) - 1, 1
        place, mode = len(asking), pick(random, modes)
        number = 0.0 if mode == _MEMBER else split(random)
        if mode == _MEMBER:
            sets[place] = (random.permutation(7)[: random.integers(1, 6)] - 3.0).tolist()
        asking.append([int(random.integers(features)), mode, number, int(random.integers(2))])
        asking[place] += grow(depth - 1)
        asking[place] += grow(depth - 1)
        return place, 0

    for _ in range(int(random.integers(1, 6))):
        root = len(asking)
        roots.append(root)
        place, is_leaf = grow(int(random.integers(1, 5)))
        if is_leaf:
            asking.append([0, 0, 0.0, 0, place, 1, place, 1])
    feature, mode, number, missing, *children = (
        list(column) for column in zip(*asking, strict=True)
    )
    found: dict[str, Any] = {
        "n_targets": targets,
        "aggregate_function": int(random.integers(4)),
        "tree_roots": roots,
        "nodes_featureids": feature,
        "nodes_modes": numpy_helper.from_array(np.array(mode, np.uint8)),
        "nodes_splits": numpy_helper.from_array(np.array(number, dtype)),
        "nodes_missing_value_tracks_true": missing,
        "leaf_targetids": leaves,
        "leaf_weights": numpy_helper.from_array(np.array(floats(random, len(leaves)), dtype)),
    }
    names = ("truenodeids", "trueleafs", "falsenodeids", "falseleafs")
    found |= {f"nodes_{name}": column for name, column in zip(names, children, strict=True)}
    if sets:
        members = [n for _, own in sorted(sets.items()) for n in (*own, np.nan)]
        found["membership_values"] = numpy_helper.from_array(np.array(members, dtype))
    return found


def has_members(attributes: Mapping[str, Any]) -> bool:
    """Whether a node asks for membership, which ONNX Runtime 1.32 answers wrongly at roots."""
    return "membership_values" in attributes


def walked(attributes: Mapping[str, Any], x: Array) -> Array:
    """Return the definition of TreeEnsemble without post transform, row by row."""
    tables = {
        name: numpy_helper.to_array(value) if hasattr(value, "dims") else value
        for name, value in attributes.items()
    }
    sets = iter(_sets(tables.get("membership_values", ())))
    members = [next(sets) if mode == _MEMBER else () for mode in tables["nodes_modes"]]

    def leaf_of(row: Array, place: int) -> int:
        while True:
            value = row[tables["nodes_featureids"][place]]
            mode, number = tables["nodes_modes"][place], tables["nodes_splits"][place]
            holds = (
                value in members[place]
                if mode == _MEMBER
                else bool(_COMPARISONS[mode](value, number))
            ) or bool(np.isnan(value) and tables["nodes_missing_value_tracks_true"][place])
            side = "true" if holds else "false"
            is_leaf = tables[f"nodes_{side}leafs"][place]
            place = tables[f"nodes_{side}nodeids"][place]
            if is_leaf:
                return place

    how = (np.mean, np.sum, np.min, np.max)[attributes["aggregate_function"]]
    trees, targets = len(tables["tree_roots"]), attributes["n_targets"]
    result = np.zeros((len(x), targets))
    for number, row in enumerate(x):
        ends = [leaf_of(row, root) for root in tables["tree_roots"]]
        for target in range(targets):
            own = [tables["leaf_weights"][e] for e in ends if tables["leaf_targetids"][e] == target]
            if own:
                share = len(own) / trees if attributes["aggregate_function"] == 0 else 1
                result[number, target] = how(own) * share
    return result.astype(x.dtype)


def _sets(values: Sequence[float]) -> list[list[float]]:
    found: list[list[float]] = [[]]
    for value in values:
        if np.isnan(value):
            found.append([])
        else:
            found[-1].append(float(value))
    return found
