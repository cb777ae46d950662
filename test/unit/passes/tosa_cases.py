"""Ops of TOSA with what they compute, in numpy, by the TOSA specification."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

CONSTANTS = {
    "%z": "dense<0.0> : tensor<1xf32>",
    "%z8": "dense<0> : tensor<1xi8>",
    "%three8": "dense<3> : tensor<1xi8>",
    "%z32": "dense<0> : tensor<1xi32>",
}


class Case(NamedTuple):
    """An op (or more, the last named %y) on %a, %b, …; `shapes` are the types of these."""

    lines: str
    types: str
    result: str
    expected: Callable[..., Array]


def shape(name: str, *extents: int) -> str:
    """A line that defines a list of extents."""
    values = f"dense<{list(extents)}> : tensor<{len(extents)}xindex>"
    type = f"!tosa.shape<{len(extents)}>"
    return f"{name} = tosa.const_shape {{values = {values}}} : () -> {type}\n"


def unary(name: str, function: Callable[..., Array], type: str = "2x3xf32") -> Case:
    t = f"tensor<{type}>"
    return Case(f"%y = tosa.{name} %a : ({t}) -> {t}", type, type, function)


def binary(name: str, function: Callable[..., Array], type: str, result: str = "") -> Case:
    t = f"tensor<{type}>"
    out = result or type
    line = f"%y = tosa.{name} %a, %b : ({t}, {t}) -> tensor<{out}>"
    return Case(line, f"{type} {type}", out, function)


def reduction(name: str, function: Callable[..., Array], element: str = "f32") -> Case:
    line = (
        f"%y = tosa.{name} %a {{axis = 1 : i32}} : (tensor<2x3x{element}>) -> tensor<2x1x{element}>"
    )
    return Case(line, f"2x3x{element}", f"2x1x{element}", lambda a: function(a, 1, keepdims=True))


def convolved(x: Array, w: Array, bias: Array, stride: int, pad: int) -> Array:
    """A convolution on `[N, H, W, C]` with weights `[O, KH, KW, I]`, by its definition."""
    x = np.pad(x, [(0, 0), (pad, pad), (pad, pad), (0, 0)])
    kernel = w.shape[1]
    extent = (x.shape[1] - kernel) // stride + 1
    y = np.empty((x.shape[0], extent, extent, w.shape[0]), x.dtype)
    for i in range(extent):
        for j in range(extent):
            window = x[:, i * stride : i * stride + kernel, j * stride : j * stride + kernel]
            y[:, i, j] = np.einsum("nhwc,ohwc->no", window, w)
    return y + bias


def depthwise(x: Array, w: Array, bias: Array) -> Array:
    """One filter of `[KH, KW, C, M]` after the other."""
    channels, multiplier = w.shape[2:]
    parts = [
        convolved(x[..., [c]], w[None, :, :, [c], m], np.zeros(1, x.dtype), 1, 0)
        for c in range(channels)
        for m in range(multiplier)
    ]
    return np.concatenate(parts, -1) + bias


def pooled(x: Array, reduce: Callable[..., Array], fill: float) -> Array:
    """Windows of 2×2 with stride 2 and padding 1; `fill` does not count."""
    x = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)], constant_values=fill)
    blocks = x.reshape(1, 3, 2, 3, 2, 2)
    return reduce(blocks, (2, 4))


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


_WINDOW = "dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 2, 2>"
_POOL = "kernel = array<i64: 2, 2>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 2, 2>"
_POOLED = "(tensor<1x4x4x2xf32>) -> tensor<1x3x3x2xf32>"


def rescaled(a: Array) -> Array:
    scaled = (a.astype(np.int64) - 3) * 1234567 + (1 << 20) >> 21
    return np.clip(scaled + 3, -128, 127).astype(np.int8)


CASES = {
    **{
        name: unary(name, function)
        for name, function in {
            "abs": np.abs,
            "ceil": np.ceil,
            "cos": np.cos,
            "exp": np.exp,
            "floor": np.floor,
            "identity": np.copy,
            "log": np.log,
            "reciprocal": np.reciprocal,
            "rsqrt": lambda a: 1 / np.sqrt(a),
            "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
            "sin": np.sin,
            "tanh": np.tanh,
        }.items()
    },
    "bitwise_not": unary("bitwise_not", np.invert, "2x3xi32"),
    "logical_not": unary("logical_not", np.invert, "2x3xi1"),
    **{
        name: binary(name, function, type, result)
        for name, function, type, result in [
            ("add", np.add, "2x3xf32", ""),
            ("sub", np.subtract, "2x3xi32", ""),
            ("maximum", np.maximum, "2x3xf32", ""),
            ("minimum", np.minimum, "2x3xf32", ""),
            ("pow", np.power, "2x3xf32", ""),
            ("intdiv", lambda a, b: np.trunc(a / b), "2x3xi32", ""),
            ("equal", np.equal, "2x3xi32", "2x3xi1"),
            ("greater", np.greater, "2x3xf32", "2x3xi1"),
            ("greater_equal", np.greater_equal, "2x3xf32", "2x3xi1"),
            ("logical_and", np.logical_and, "2x3xi1", ""),
            ("logical_or", np.logical_or, "2x3xi1", ""),
            ("logical_xor", np.logical_xor, "2x3xi1", ""),
            ("bitwise_and", np.bitwise_and, "2x3xi32", ""),
            ("bitwise_or", np.bitwise_or, "2x3xi32", ""),
            ("bitwise_xor", np.bitwise_xor, "2x3xi32", ""),
            ("logical_left_shift", np.left_shift, "2x3xi32", ""),
        ]
    },
    "mul": Case(
        "%y = tosa.mul %a, %b, %z8 : (tensor<2x3xf32>, tensor<2x1xf32>, tensor<1xi8>) "
        "-> tensor<2x3xf32>",
        "2x3xf32 2x1xf32",
        "2x3xf32",
        np.multiply,
    ),
    "mul with a shift": Case(
        "%y = tosa.mul %a, %b, %three8 : (tensor<2x3xi32>, tensor<2x3xi32>, tensor<1xi8>) "
        "-> tensor<2x3xi32>",
        "2x3xi32 2x3xi32",
        "2x3xi32",
        lambda a, b: a * b + 4 >> 3,
    ),
    "arithmetic_right_shift": Case(
        "%y = tosa.arithmetic_right_shift %a, %b {round = true} "
        ": (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>",
        "2x3xi32 2x3xi32",
        "2x3xi32",
        lambda a, b: np.floor(a / 2.0**b + 0.5),
    ),
    "negate": Case(
        "%y = tosa.negate %a, %three8, %z8 "
        ": (tensor<2x3xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<2x3xi8>",
        "2x3xi8",
        "2x3xi8",
        lambda a: 3 - a,
    ),
    "select": Case(
        "%y = tosa.select %a, %b, %c : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) "
        "-> tensor<2x3xf32>",
        "2x3xi1 2x3xf32 2x3xf32",
        "2x3xf32",
        np.where,
    ),
    "clamp": Case(
        "%y = tosa.clamp %a {min_val = 1.0 : f32, max_val = 2.5 : f32} "
        ": (tensor<2x3xf32>) -> tensor<2x3xf32>",
        "2x3xf32",
        "2x3xf32",
        lambda a: np.clip(a, 1.0, 2.5),
    ),
    "cast to integer": Case(
        "%y = tosa.cast %a : (tensor<2x3xf32>) -> tensor<2x3xi8>",
        "2x3xf32",
        "2x3xi8",
        np.rint,
    ),
    "cast to float": Case(
        "%y = tosa.cast %a : (tensor<2x3xi32>) -> tensor<2x3xf32>", "2x3xi32", "2x3xf32", np.copy
    ),
    "cast to bool": Case(
        "%y = tosa.cast %a : (tensor<2x3xi32>) -> tensor<2x3xi1>",
        "2x3xi32",
        "2x3xi1",
        lambda a: a != 0,
    ),
    "rescale": Case(
        '%m = "tosa.const"() <{values = dense<1234567> : tensor<1xi32>}> : () -> tensor<1xi32>\n'
        '%s = "tosa.const"() <{values = dense<21> : tensor<1xi8>}> : () -> tensor<1xi8>\n'
        "%y = tosa.rescale %a, %m, %s, %three8, %three8 {scale32 = true, per_channel = false, "
        "rounding_mode = SINGLE_ROUND, input_unsigned = false, output_unsigned = false} : "
        "(tensor<2x3xi8>, tensor<1xi32>, tensor<1xi8>, tensor<1xi8>, tensor<1xi8>) "
        "-> tensor<2x3xi8>",
        "2x3xi8",
        "2x3xi8",
        rescaled,
    ),
    "table": Case(
        '%t = "tosa.const"() <{values = dense<5> : tensor<256xi8>}> : () -> tensor<256xi8>\n'
        "%y = tosa.table %a, %t : (tensor<2x3xi8>, tensor<256xi8>) -> tensor<2x3xi8>",
        "2x3xi8",
        "2x3xi8",
        lambda a: np.full_like(a, 5),
    ),
    "reduce_sum": reduction("reduce_sum", np.sum),
    "reduce_max": reduction("reduce_max", np.max),
    "reduce_min": reduction("reduce_min", np.min),
    "reduce_product": reduction("reduce_product", np.prod),
    "reduce_all": reduction("reduce_all", np.all, "i1"),
    "reduce_any": reduction("reduce_any", np.any, "i1"),
    "argmax": Case(
        "%y = tosa.argmax %a {axis = 1 : i32} : (tensor<2x3xf32>) -> tensor<2xi32>",
        "2x3xf32",
        "2xi32",
        lambda a: np.argmax(a, 1),
    ),
    "matmul": Case(
        "%y = tosa.matmul %a, %b, %z, %z : (tensor<2x3x4xf32>, tensor<2x4x5xf32>, tensor<1xf32>, "
        "tensor<1xf32>) -> tensor<2x3x5xf32>",
        "2x3x4xf32 2x4x5xf32",
        "2x3x5xf32",
        np.matmul,
    ),
    "matmul of integers": Case(
        "%y = tosa.matmul %a, %b, %three8, %z8 : (tensor<2x3x4xi8>, tensor<2x4x5xi8>, "
        "tensor<1xi8>, tensor<1xi8>) -> tensor<2x3x5xi32>",
        "2x3x4xi8 2x4x5xi8",
        "2x3x5xi32",
        lambda a, b: np.matmul(a.astype(np.int32) - 3, b.astype(np.int32)),
    ),
    "conv2d": Case(
        f"%y = tosa.conv2d %a, %b, %c, %z, %z {{acc_type = f32, {_WINDOW}}} : "
        "(tensor<2x7x7x3xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>, tensor<1xf32>, tensor<1xf32>) "
        "-> tensor<2x4x4x4xf32>",
        "2x7x7x3xf32 4x3x3x3xf32 4xf32",
        "2x4x4x4xf32",
        lambda a, b, c: convolved(a, b, c, 2, 1),
    ),
    "conv2d of integers": Case(
        f"%y = tosa.conv2d %a, %b, %c, %three8, %z8 {{acc_type = i32, {_WINDOW}}} : "
        "(tensor<2x7x7x3xi8>, tensor<4x3x3x3xi8>, tensor<4xi32>, tensor<1xi8>, tensor<1xi8>) "
        "-> tensor<2x4x4x4xi32>",
        "2x7x7x3xi8 4x3x3x3xi8 4xi32",
        "2x4x4x4xi32",
        lambda a, b, c: convolved(a.astype(np.int32) - 3, b.astype(np.int32), c, 2, 1),
    ),
    "depthwise_conv2d": Case(
        "%y = tosa.depthwise_conv2d %a, %b, %c, %z, %z {acc_type = f32, dilation = array<i64: 1, "
        "1>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<1x5x5x3xf32>, "
        "tensor<3x3x3x2xf32>, tensor<6xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x3x3x6xf32>",
        "1x5x5x3xf32 3x3x3x2xf32 6xf32",
        "1x3x3x6xf32",
        depthwise,
    ),
    "transpose_conv2d": Case(
        "%y = tosa.transpose_conv2d %a, %b, %c, %z, %z {acc_type = f32, out_pad = array<i64: 0, "
        "0, 0, 0>, stride = array<i64: 2, 2>} : (tensor<1x3x3x2xf32>, tensor<4x2x2x2xf32>, "
        "tensor<4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x6x6x4xf32>",
        "1x3x3x2xf32 4x2x2x2xf32 4xf32",
        "1x6x6x4xf32",
        lambda a, b, c: np.einsum("nhwc,oijc->nhiwjo", a, b).reshape(1, 6, 6, 4) + c,
    ),
    "max_pool2d": Case(
        f"%y = tosa.max_pool2d %a {{{_POOL}}} : {_POOLED}",
        "1x4x4x2xf32",
        "1x3x3x2xf32",
        lambda a: pooled(a, np.max, -np.inf),
    ),
    "avg_pool2d": Case(
        f"%y = tosa.avg_pool2d %a, %z, %z {{acc_type = f32, {_POOL}}} : "
        "(tensor<1x4x4x2xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x3x3x2xf32>",
        "1x4x4x2xf32",
        "1x3x3x2xf32",
        lambda a: pooled(a, np.nanmean, np.nan),
    ),
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


def module_of(case: Case) -> str:
    """A module with the case as its only function, in TOSA's custom syntax."""
    arguments = [
        f"%{name}: tensor<{t}>" for name, t in zip("abc", case.types.split(), strict=False)
    ]
    lines = [
        f'{name} = "tosa.const"() <{{values = {value}}}> : () -> {value.partition(" : ")[2]}'
        for name, value in CONSTANTS.items()
        if f"{name}," in case.lines or f"{name} " in case.lines
    ]
    return (
        f"func.func @main({', '.join(arguments)}) -> tensor<{case.result}> {{\n"
        + "\n".join([*lines, case.lines])
        + f"\nreturn %y : tensor<{case.result}>\n}}\n"
    )


def random_inputs(types: str) -> list[Array]:
    """Positive floats and small integers, none of them 0."""
    random = np.random.default_rng(0)
    arrays: list[Array] = []
    for type in types.split():
        *extents, element = type.split("x")
        dims = [int(extent) for extent in extents]
        match element:
            case "f32":
                arrays.append(random.uniform(0.1, 4.0, dims).astype(np.float32))
            case "i1":
                arrays.append(random.integers(0, 2, dims).astype(np.bool_))
            case _:
                arrays.append(random.integers(1, 9, dims).astype(f"int{element[1:]}"))
    return arrays
