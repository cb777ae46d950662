"""Kernels of decision trees against what the op is defined as."""

from pathlib import Path

import numpy as np
import pytest

import braid

WORDS = {"f32": np.int32, "f64": np.int64}
FLOATS = {"f32": np.float32, "f64": np.float64}


def forest(
    random: np.random.Generator, trees: int, depth: int, features: int, *, missing: bool
) -> tuple[np.ndarray, np.ndarray, int]:
    """Nodes as rows of feature, split and children; roots; the number of leaves, the first nodes.

    Every third tree is a single leaf, and ways end early.
    """
    asking: list[list[float]] = []
    leaves = 0

    def grow(left: int) -> tuple[int, bool]:
        nonlocal leaves
        if left == 0 or (left < depth and random.random() < 0.2):
            leaves += 1
            return leaves - 1, True
        place = len(asking)
        feature = 2 * random.integers(features) + (missing and random.integers(2))
        asking.append([float(feature), random.standard_normal(), 0, 0])
        ways = [grow(left - 1) for _ in range(2)]
        asking[place][2:] = [child if is_leaf else -1 - child for child, is_leaf in ways]
        return place, False

    ends = [grow(0 if tree % 3 == 2 else depth) for tree in range(trees)]
    roots = np.array([place if is_leaf else leaves + place for place, is_leaf in ends])
    table = np.zeros((leaves + len(asking), 4))
    table[:leaves, 2:] = np.arange(leaves)[:, None]
    for place, row in enumerate(asking):
        children = [leaves - 1 - child if child < 0 else child for child in row[2:]]
        table[leaves + place] = [*row[:2], *children]
    return table, roots, leaves


@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize(
    ("trees", "groups", "classes", "depth", "missing", "kind"),
    [
        (11, 1, 1, 6, True, "add"),
        (4, 3, 1, 3, False, "add"),
        (9, 1, 20, 5, False, "add"),
        (8, 2, 3, 14, True, "maximum"),
        (3, 1, 1, 12, False, "minimum"),
        (2, 1, 1, 0, False, "add"),
    ],
)
def test_any_number_of_rows(
    tmp_path: Path,
    element: str,
    trees: int,
    groups: int,
    classes: int,
    depth: int,
    missing: bool,
    kind: str,
) -> None:
    random = np.random.default_rng(trees)
    word, number = WORDS[element], FLOATS[element]
    table, roots, leaves = forest(random, trees * groups, depth, 5, missing=missing)
    nodes = table.astype(word)
    nodes[:, 1] = table[:, 1].astype(number).view(word)
    weights = random.standard_normal((leaves, classes)).astype(number)
    integer = np.dtype(word).name.replace("int", "i")
    path = tmp_path / "trees.mlir"
    types = (
        f"tensor<?x5x{element}>, tensor<{len(nodes)}x4x{integer}>, "
        f"tensor<{groups}x{trees}x{integer}>, tensor<{leaves}x{classes}x{element}>"
    )
    result = f"tensor<?x{groups}x{classes}x{element}>"
    arguments = ", ".join(
        f'%{name}: {type} {{braid.name = "{name}"}}'
        for name, type in zip("xnrw", types.split(", "), strict=True)
    )
    path.write_text(
        f"""func.func @main({arguments}) -> ({result} {{braid.name = "y"}}) {{
  %y = braid.tree_ensemble %x, %n, %r, %w {{kind = "{kind}", depth = {depth} : i64,
    tracks_missing = {str(missing).lower()}}} : ({types}) -> {result}
  func.return %y : {result}
}}
"""
    )
    tables = (nodes, roots.reshape(groups, trees).astype(word), weights)
    compiled, defined = braid.compile(path), braid.interpret(path)
    for rows in (0, 1, 7, 8, 64, 83, 130):
        x = random.standard_normal((rows, 5)).astype(number)
        x[random.random(x.shape) < 0.1] = np.nan
        expected = defined(x, *tables)
        np.testing.assert_allclose(compiled(x, *tables), expected, rtol=1e-5, atol=1e-5)


def test_tables_that_lead_nowhere_are_not_read_outside(tmp_path: Path) -> None:
    """Places and features outside of the tables have no meaning, and end no process."""
    path = tmp_path / "trees.mlir"
    types = "tensor<70x2xf32>, tensor<3x4xi32>, tensor<1x8xi32>, tensor<2x1xf32>"
    arguments = ", ".join(
        f'%{name}: {type} {{braid.name = "{name}"}}'
        for name, type in zip("xnrw", types.split(", "), strict=True)
    )
    path.write_text(
        f"""func.func @main({arguments}) -> (tensor<70x1x1xf32> {{braid.name = "y"}}) {{
  %y = braid.tree_ensemble %x, %n, %r, %w {{kind = "add", depth = 3 : i64, tracks_missing = true}}
    : ({types}) -> tensor<70x1x1xf32>
  func.return %y : tensor<70x1x1xf32>
}}
"""
    )
    model, random = braid.compile(path), np.random.default_rng(0)
    for _ in range(5):
        nodes, roots = (
            random.integers(-(2**31), 2**31, shape).astype(np.int32) for shape in ((3, 4), (1, 8))
        )
        y = model(np.ones((70, 2), np.float32), nodes, roots, np.ones((2, 1), np.float32))
        assert (y == 8).all()
