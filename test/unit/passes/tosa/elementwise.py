"""Elementwise ops of TOSA and reductions, with what they compute."""

from collections.abc import Callable

import numpy as np

from test.unit.passes.tosa.case import Array, Case


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


def rescaled(a: Array) -> Array:
    scaled = (a.astype(np.int64) - 3) * 1234567 + (1 << 20) >> 21
    return np.clip(scaled + 3, -128, 127).astype(np.int8)


CASES: dict[str, Case] = {
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
    "logical_right_shift": Case(
        "%y = tosa.logical_right_shift %a, %b "
        ": (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>",
        "2x3xi32 2x3xi32",
        "2x3xi32",
        lambda a, b: (a.view(np.uint32) >> b.view(np.uint32)).view(np.int32),
    ),
    "clz": Case(
        "%y = tosa.clz %a : (tensor<2x3xi32>) -> tensor<2x3xi32>",
        "2x3xi32",
        "2x3xi32",
        lambda a: np.vectorize(lambda n: 32 - int(n).bit_length())(a.view(np.uint32)),
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
}
