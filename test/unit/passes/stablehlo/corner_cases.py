"""What the reader of StableHLO's specification would doubt, by name; see `module_of`."""

_F = "tensor<3x4xf32>"
_I = "tensor<3x4xi32>"


def _window(element: str, name: str, initial: str, fields: str, x: str, result: str) -> str:
    """Return a window over `%a`, or over the constant `x`."""
    operand = "%a: tensor<3x4xf32>"
    constant = ""
    if x:
        operand, constant = "%k", f"%k = stablehlo.constant dense<{x}> : tensor<1x3x{element}>\n"
    type = f"tensor<1x3x{element}>" if x else _F
    return f"""{constant}%c = stablehlo.constant dense<{initial}> : tensor<{element}>
%y = "stablehlo.reduce_window"({operand}, %c) <{{{fields}}}> ({{
^bb0(%p: tensor<{element}>, %q: tensor<{element}>):
  %r = stablehlo.{name} %p, %q : tensor<{element}>
  stablehlo.return %r : tensor<{element}>
}}) : ({type}, tensor<{element}>) -> tensor<{result}x{element}>"""


def _two(element: str, name: str, initial: str, x: str) -> str:
    """Windows of two of the three elements `x`."""
    return _window(element, name, initial, "window_dimensions = array<i64: 1, 2>", x, "1x2")


def _unary(name: str, numbers: str, count: int) -> str:
    type = f"tensor<{count}xf32>"
    return f"%n = stablehlo.constant dense<[{numbers}]> : {type}\n%y = stablehlo.{name} %n : {type}"


_SPECIAL = "0x7FC00000, 0x7F800000, 0xFF800000, 0.0, -0.0, 1.0e-10"

CORNER_CASES: dict[str, str] = {
    # The order of integers is not that of their negatives.
    "min pool of the least integer": _two("i32", "minimum", "2147483647", "[[-2147483648, 3, 4]]"),
    "min pool of unsigned integers": _two("ui8", "minimum", "255", "[[0, 3, 4]]"),
    "max pool of unsigned integers": _two("ui8", "maximum", "0", "[[200, 3, 4]]"),
    "max pool of NaN": _two("f32", "maximum", "0xFF800000", "[[0x7FC00000, 3.0, 4.0]]"),
    "max pool from a finite number": _window(
        "f32", "maximum", "0.5", "window_dimensions = array<i64: 1, 2>", "", "3x3"
    ),
    "max pool from a finite number, padded": _window(
        "f32",
        "maximum",
        "0.5",
        "window_dimensions = array<i64: 1, 2>, padding = dense<[[0, 0], [2, 0]]> : tensor<2x2xi64>",
        "",
        "3x5",
    ),
    "windows of one element": _window(
        "f32", "maximum", "0xFF800000", "window_dimensions = array<i64: 1, 1>", "", "3x4"
    ),
    "windows of a dilated operand": _window(
        "f32",
        "minimum",
        "0x7F800000",
        "window_dimensions = array<i64: 1, 2>, base_dilations = array<i64: 2, 3>, "
        "padding = dense<[[0, 0], [1, 0]]> : tensor<2x2xi64>",
        "",
        "5x10",
    ),
    "windows without the edge": _window(
        "f32",
        "add",
        "0.0",
        "window_dimensions = array<i64: 1, 2>, "
        "padding = dense<[[0, 0], [-1, 1]]> : tensor<2x2xi64>",
        "",
        "3x3",
    ),
    "reduce over no dims": "%c = stablehlo.constant dense<1.0> : tensor<f32>\n"
    f"%y = stablehlo.reduce(%a: {_F} init: %c) applies stablehlo.add across dimensions = [] : "
    f"({_F}, tensor<f32>) -> {_F}",
    "reduce in a wider type": f"""%c = stablehlo.constant dense<0.0> : tensor<f32>
%h = stablehlo.convert %a: {_F} : ({_F}) -> tensor<3x4xf16>
%y = "stablehlo.reduce"(%h, %c) <{{dimensions = array<i64: 1>}}> ({{
^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %r = stablehlo.add %p, %q : tensor<f32>
  stablehlo.return %r : tensor<f32>
}}) : (tensor<3x4xf16>, tensor<f32>) -> tensor<3xf32>""",
    "case of one branch": f"""%y = "stablehlo.case"(%b: tensor<i32>) ({{
  %q = stablehlo.negate %a: {_F} : {_F}
  stablehlo.return %q : {_F}
}}) : (tensor<i32>) -> {_F}""",
    # Indices are narrower than the places that they are clamped to, or counted from.
    "dynamic_slice at an i8": "%y = stablehlo.dynamic_slice %a: tensor<300xf32>, %b: tensor<i8>, "
    "sizes = [200] : (tensor<300xf32>, tensor<i8>) -> tensor<200xf32>",
    "dynamic_slice before the start": f"%n = stablehlo.negate %b: tensor<i32> : tensor<i32>\n"
    f"%y = stablehlo.dynamic_slice %a: {_F}, %n, %n, sizes = [2, 3] : "
    f"({_F}, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>",
    "dynamic_update_slice at an i8": "%y = stablehlo.dynamic_update_slice %a: tensor<300xf32>, "
    "%b: tensor<2xf32>, %c: tensor<i8> : (tensor<300xf32>, tensor<2xf32>, tensor<i8>) "
    "-> tensor<300xf32>",
    "dynamic_update_slice at an unsigned": "%y = stablehlo.dynamic_update_slice "
    "%a: tensor<12xf32>, %b: tensor<2xf32>, %c: tensor<ui32> : "
    "(tensor<12xf32>, tensor<2xf32>, tensor<ui32>) -> tensor<12xf32>",
    "dynamic_update_slice of nothing": "%y = stablehlo.dynamic_update_slice "
    "%a: tensor<12xf32>, %b: tensor<0xf32>, %c: tensor<i32> : "
    "(tensor<12xf32>, tensor<0xf32>, tensor<i32>) -> tensor<12xf32>",
    "gather at ui8": '%y = "stablehlo.gather"(%a: tensor<300x3xf32>, %b: tensor<4xui8>) '
    "<{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], "
    "start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : "
    "(tensor<300x3xf32>, tensor<4xui8>) -> tensor<4x3xf32>",
    # More is taken away on one side than there is.
    "convolution that crops more than there is": "%y = stablehlo.convolution("
    "%a: tensor<1x2x4x3xf32>, %b: tensor<3x3x3x4xf32>) dim_numbers = "
    "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[-3, 6], [1, 1]]} "
    "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
    "(tensor<1x2x4x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x3x4x4xf32>",
    "pad that crops more than there is": "%c = stablehlo.constant dense<1.5> : tensor<f32>\n"
    f"%y = stablehlo.pad %a: {_F}, %c, low = [-4, 0], high = [6, 0], interior = [0, 0] : "
    f"({_F}, tensor<f32>) -> tensor<5x4xf32>",
    "pad of nothing": "%c = stablehlo.constant dense<1.5> : tensor<f32>\n"
    "%y = stablehlo.pad %a: tensor<0x4xf32>, %c, low = [1, 0], high = [2, 0], interior = [3, 0] "
    ": (tensor<0x4xf32>, tensor<f32>) -> tensor<3x4xf32>",
    "pad of bools": "%c = stablehlo.constant dense<true> : tensor<i1>\n"
    "%y = stablehlo.pad %a: tensor<3xi1>, %c, low = [1], high = [2], interior = [1] : "
    "(tensor<3xi1>, tensor<i1>) -> tensor<8xi1>",
    "constant of nothing": "%y = stablehlo.constant dense<> : tensor<0xf32>",
    "reverse of nothing": "%y = stablehlo.reverse %a: tensor<0x4xf32>, dims = [0, 1] : "
    "tensor<0x4xf32>",
    "dot_general of bools": "%y = stablehlo.dot_general %a: tensor<2x3xi1>, %b: tensor<3x2xi1>, "
    "contracting_dims = [1] x [0] : (tensor<2x3xi1>, tensor<3x2xi1>) -> tensor<2x2xi1>",
    "dot_general in a wider type": "%y = stablehlo.dot_general %a: tensor<2x3xi8>, "
    "%b: tensor<3x2xi8>, contracting_dims = [1] x [0] : "
    "(tensor<2x3xi8>, tensor<3x2xi8>) -> tensor<2x2xi32>",
    "compare of bools": "%y = stablehlo.compare LT, %a: tensor<3x4xi1>, %b: tensor<3x4xi1>, "
    "UNSIGNED : (tensor<3x4xi1>, tensor<3x4xi1>) -> tensor<3x4xi1>",
    "compare NE of NaN": f"%n = stablehlo.constant dense<0x7FC00000> : {_F}\n"
    f"%y = stablehlo.compare NE, %a: {_F}, %n, FLOAT : ({_F}, {_F}) -> tensor<3x4xi1>",
    "compare GE of NaN": f"%n = stablehlo.constant dense<0x7FC00000> : {_F}\n"
    f"%y = stablehlo.compare GE, %n, %a: {_F}, FLOAT : ({_F}, {_F}) -> tensor<3x4xi1>",
    "divide and remainder of negatives": f"%n = stablehlo.negate %a: {_I} : {_I}\n"
    f"%q = stablehlo.divide %n, %b: {_I} : {_I}\n%r = stablehlo.remainder %n, %b : {_I}\n"
    f"%s = stablehlo.constant dense<100> : {_I}\n%t = stablehlo.multiply %q, %s : {_I}\n"
    f"%y = stablehlo.add %t, %r : {_I}",
    "power to negatives": f"%n = stablehlo.negate %b: {_I} : {_I}\n"
    f"%y = stablehlo.power %a: {_I}, %n : {_I}",
    "shift by more than there is": f"%k = stablehlo.constant dense<40> : {_I}\n"
    f"%n = stablehlo.negate %a: {_I} : {_I}\n"
    f"%y = stablehlo.shift_right_arithmetic %n, %k : {_I}",
    **{
        f"{name} of special numbers": _unary(name, _SPECIAL, 6)
        for name in ["cbrt", "exponential_minus_one", "log_plus_one", "sign"]
    },
    "round_nearest_afz of halves": _unary(
        "round_nearest_afz", f"{_SPECIAL}, 0.5, -1.5, 0.49999997, 8388609.0", 10
    ),
}
