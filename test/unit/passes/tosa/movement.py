"""Ops of TOSA that move elements, with where they move them."""

import numpy as np

from test.unit.passes.tosa.case import Array, Case, shape


def resized(x: Array, mode: str) -> Array:
    """Twice as large: `(o · 2 - 1) / 4` for o of the result, by the specification's formulas."""
    unit = 4 if np.issubdtype(x.dtype, np.integer) else 1
    y = np.zeros((1, 6, 6, 2), np.float64)
    for o, p in np.ndindex(6, 6):
        (i, ry), (j, rx) = divmod(2 * o - 1, 4), divmod(2 * p - 1, 4)
        if mode == "nearest":
            rows, columns = {int(i + (ry >= 2)): 1.0}, {int(j + (rx >= 2)): 1.0}
        else:
            rows = {i: unit * (1 - ry / 4), i + 1: unit * ry / 4}
            columns = {j: unit * (1 - rx / 4), j + 1: unit * rx / 4}
        for row, a in rows.items():
            for column, b in columns.items():
                y[:, o, p] += a * b * x[:, np.clip(row, 0, 2), np.clip(column, 0, 2)]
    return y


def resize(mode: str, element: str, result: str) -> Case:
    lines = shape("%s", 4, 2, 4, 2) + shape("%o", -1, -1) + shape("%e", 1, 1)
    lines += (
        f"%y = tosa.resize %a, %s, %o, %e {{mode = {mode}}} : (tensor<1x3x3x2x{element}>, "
        f"!tosa.shape<4>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<1x6x6x2x{result}>"
    )
    how = "nearest" if mode == "NEAREST_NEIGHBOR" else "bilinear"
    return Case(lines, f"1x3x3x2x{element}", f"1x6x6x2x{result}", lambda a: resized(a, how))


CASES: dict[str, Case] = {
    "reshape": Case(
        shape("%s", 3, 2)
        + "%y = tosa.reshape %a, %s : (tensor<2x3xf32>, !tosa.shape<2>) -> tensor<3x2xf32>",
        "2x3xf32",
        "3x2xf32",
        lambda a: a.reshape(3, 2),
    ),
    "transpose": Case(
        "%y = tosa.transpose %a {perms = array<i32: 2, 0, 1>} "
        ": (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>",
        "2x3x4xf32",
        "4x2x3xf32",
        lambda a: a.transpose(2, 0, 1),
    ),
    "concat": Case(
        "%y = tosa.concat %a, %b {axis = 1 : i32} "
        ": (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>",
        "2x3xf32 2x1xf32",
        "2x4xf32",
        lambda a, b: np.concatenate([a, b], 1),
    ),
    "slice": Case(
        shape("%s", 0, 1)
        + shape("%t", 2, 2)
        + "%y = tosa.slice %a, %s, %t : (tensor<2x3xf32>, !tosa.shape<2>, !tosa.shape<2>) "
        "-> tensor<2x2xf32>",
        "2x3xf32",
        "2x2xf32",
        lambda a: a[:, 1:],
    ),
    "reverse": Case(
        "%y = tosa.reverse %a {axis = 1 : i32} : (tensor<2x3xf32>) -> tensor<2x3xf32>",
        "2x3xf32",
        "2x3xf32",
        lambda a: a[:, ::-1],
    ),
    "pad": Case(
        '%v = "tosa.const"() <{values = dense<1.5> : tensor<1xf32>}> : () -> tensor<1xf32>\n'
        + shape("%s", 0, 1, 2, 0)
        + "%y = tosa.pad %a, %s, %v : (tensor<2x3xf32>, !tosa.shape<4>, tensor<1xf32>) "
        "-> tensor<3x5xf32>",
        "2x3xf32",
        "3x5xf32",
        lambda a: np.pad(a, [(0, 1), (2, 0)], constant_values=1.5),
    ),
    "tile": Case(
        shape("%s", 2, 3)
        + "%y = tosa.tile %a, %s : (tensor<2x3xf32>, !tosa.shape<2>) -> tensor<4x9xf32>",
        "2x3xf32",
        "4x9xf32",
        lambda a: np.tile(a, (2, 3)),
    ),
    "gather": Case(
        '%i = "tosa.const"() <{values = dense<[[2, 0], [1, 1]]> : tensor<2x2xi32>}> '
        ": () -> tensor<2x2xi32>\n"
        "%y = tosa.gather %a, %i : (tensor<2x3x4xf32>, tensor<2x2xi32>) -> tensor<2x2x4xf32>",
        "2x3x4xf32",
        "2x2x4xf32",
        lambda a: np.stack([a[0, [2, 0]], a[1, [1, 1]]]),
    ),
    "resize to the nearest": resize("NEAREST_NEIGHBOR", "f32", "f32"),
    "resize": resize("BILINEAR", "f32", "f32"),
    "resize of integers": resize("BILINEAR", "i8", "i32"),
}
