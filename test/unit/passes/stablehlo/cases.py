"""Ops of StableHLO in its custom form, by name; see `module_of`."""

_F = "tensor<3x4xf32>"
_I = "tensor<3x4xi32>"
_U = "tensor<3x4xui32>"
_B = "tensor<3x4xi1>"


def _unary(name: str, type: str) -> str:
    return f"%y = stablehlo.{name} %a: {type} : {type}"


def _binary(name: str, type: str) -> str:
    return f"%y = stablehlo.{name} %a: {type}, %b: {type} : {type}"


def _compare(direction: str, type: str, kind: str) -> str:
    return (
        f"%y = stablehlo.compare {direction}, %a: {type}, %b: {type}, {kind} : "
        f"({type}, {type}) -> {_B}"
    )


def _reduce(name: str, type: str, initial: str, dims: str, result: str) -> str:
    element = type.rpartition("x")[2].rstrip(">")
    return (
        f"%c = stablehlo.constant dense<{initial}> : tensor<{element}>\n"
        f"%y = stablehlo.reduce(%a: {type} init: %c) applies stablehlo.{name} across dimensions = "
        f"[{dims}] : ({type}, tensor<{element}>) -> {result}"
    )


def _window(name: str, initial: str, fields: str, result: str, type: str) -> str:
    return f"""%c = stablehlo.constant dense<{initial}> : tensor<f32>
%y = "stablehlo.reduce_window"(%a: {type}, %c) <{{{fields}}}> ({{
^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %r = stablehlo.{name} %p, %q : tensor<f32>
  stablehlo.return %r : tensor<f32>
}}) : ({type}, tensor<f32>) -> {result}"""


def _convolution(x: str, w: str, dims: str, window: str, groups: int, result: str) -> str:
    return (
        f"%y = stablehlo.convolution(%a: {x}, %b: {w}) dim_numbers = {dims}, window = {{{window}}} "
        f"{{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}} : "
        f"({x}, {w}) -> {result}"
    )


FLOAT_UNARY = [
    "abs",
    "cbrt",
    "ceil",
    "cosine",
    "exponential",
    "exponential_minus_one",
    "floor",
    "logistic",
    "negate",
    "round_nearest_afz",
    "round_nearest_even",
    "sign",
    "sine",
    "tan",
    "tanh",
]
ON_BOOLS = ["add", "multiply", "maximum", "minimum", "and"]
POSITIVE = ["log", "log_plus_one", "rsqrt", "sqrt"]
BINARY = ["add", "divide", "maximum", "minimum", "multiply", "remainder", "subtract"]
_NHWC = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
_NCHW = "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]"

CASES: dict[str, str] = {
    **{name: _unary(name, _F) for name in FLOAT_UNARY},
    **{
        name: f"%p = stablehlo.abs %a: {_F} : {_F}\n%y = stablehlo.{name} %p : {_F}"
        for name in POSITIVE
    },
    **{f"{name} f32": _binary(name, _F) for name in BINARY},
    **{f"{name} i32": _binary(name, _I) for name in BINARY},
    **{
        f"{name} i1": _binary(name, _B) for name in ["add", "multiply", "maximum", "minimum", "and"]
    },
    **{
        f"{name} i32": _binary(name, _I)
        for name in ["and", "or", "xor", "shift_left", "shift_right_arithmetic"]
    },
    "not": _unary("not", _B),
    "power": f"%p = stablehlo.abs %a: {_F} : {_F}\n%y = stablehlo.power %p, %b: {_F} : {_F}",
    "is_finite": f"%y = stablehlo.is_finite %a: {_F} : ({_F}) -> {_B}",
    **{f"compare {d}": _compare(d, _F, "FLOAT") for d in ["EQ", "NE", "GE", "GT", "LE", "LT"]},
    "compare unsigned": _compare("LT", _U, "UNSIGNED"),
    "compare signed": _compare("GE", _I, "SIGNED"),
    "select": f"%y = stablehlo.select %a: {_B}, %b: {_F}, %c: {_F} : {_B}, {_F}",
    "select by one": f"%y = stablehlo.select %a: tensor<i1>, %b: {_F}, %c: {_F} : tensor<i1>, {_F}",
    "clamp": "%l = stablehlo.constant dense<-0.5> : tensor<f32>\n"
    "%h = stablehlo.constant dense<0.75> : tensor<f32>\n"
    f"%y = stablehlo.clamp %l, %a: {_F}, %h : (tensor<f32>, {_F}, tensor<f32>) -> {_F}",
    "convert to i32": f"%y = stablehlo.convert %a: {_F} : ({_F}) -> {_I}",
    "convert to i1": f"%y = stablehlo.convert %a: {_I} : ({_I}) -> {_B}",
    "convert from i1": f"%y = stablehlo.convert %a: {_B} : ({_B}) -> {_F}",
    "bitcast_convert": f"%y = stablehlo.bitcast_convert %a: {_F} : ({_F}) -> {_I}",
    "constant": f"%c = stablehlo.constant dense<2.0> : {_F}\n"
    f"%y = stablehlo.add %a: {_F}, %c : {_F}",
    "iota": f"%i = stablehlo.iota dim = 1 : {_F}\n%y = stablehlo.add %a: {_F}, %i : {_F}",
    "broadcast_in_dim": "%y = stablehlo.broadcast_in_dim %a: tensor<4x1xf32>, dims = [2, 0] : "
    "(tensor<4x1xf32>) -> tensor<2x3x4xf32>",
    "broadcast_in_dim of a number": "%y = stablehlo.broadcast_in_dim %a: tensor<f32>, dims = [] : "
    f"(tensor<f32>) -> {_F}",
    "reshape": f"%y = stablehlo.reshape %a: {_F} : ({_F}) -> tensor<2x6xf32>",
    "transpose": "%y = stablehlo.transpose %a: tensor<2x3x4xf32>, dims = [2, 0, 1] : "
    "(tensor<2x3x4xf32>) -> tensor<4x2x3xf32>",
    "concatenate": f"%y = stablehlo.concatenate %a: {_F}, %b: tensor<3x2xf32>, dim = 1 : "
    f"({_F}, tensor<3x2xf32>) -> tensor<3x6xf32>",
    "slice": f"%y = stablehlo.slice %a: {_F} [1:3, 0:4:2] : ({_F}) -> tensor<2x2xf32>",
    "reverse": f"%y = stablehlo.reverse %a: {_F}, dims = [1] : {_F}",
    "pad": "%c = stablehlo.constant dense<9.0> : tensor<f32>\n"
    f"%y = stablehlo.pad %a: {_F}, %c, low = [1, -1], high = [0, 2], interior = [2, 1] : "
    f"({_F}, tensor<f32>) -> tensor<8x8xf32>",
    "dot_general": "%y = stablehlo.dot_general %a: tensor<2x5x3xf32>, %b: tensor<4x2x5xf32>, "
    "batching_dims = [0] x [1], contracting_dims = [1] x [2] : "
    "(tensor<2x5x3xf32>, tensor<4x2x5xf32>) -> tensor<2x3x4xf32>",
    "dot_general of two dims": "%y = stablehlo.dot_general %a: tensor<3x2x5xf32>, "
    "%b: tensor<5x2xf32>, contracting_dims = [2, 1] x [0, 1] : "
    "(tensor<3x2x5xf32>, tensor<5x2xf32>) -> tensor<3xf32>",
    "convolution NHWC": _convolution(
        "tensor<1x6x6x3xf32>",
        "tensor<3x3x3x4xf32>",
        _NHWC,
        "stride = [2, 2], pad = [[1, 1], [1, 1]]",
        1,
        "tensor<1x3x3x4xf32>",
    ),
    "convolution NCHW": _convolution(
        "tensor<2x4x6x5xf32>",
        "tensor<6x2x3x2xf32>",
        _NCHW,
        "pad = [[2, 1], [0, 1]], rhs_dilate = [2, 1]",
        2,
        "tensor<2x6x5x5xf32>",
    ),
    "convolution of a dilated input": _convolution(
        "tensor<1x3x3x2xf32>",
        "tensor<3x3x2x2xf32>",
        _NHWC,
        "pad = [[2, 1], [-1, 2]], lhs_dilate = [2, 2], reverse = [true, true]",
        1,
        "tensor<1x6x4x2xf32>",
    ),
    "reduce add": _reduce("add", "tensor<2x3x4xf32>", "0.0", "0, 2", "tensor<3xf32>"),
    "reduce maximum": _reduce("maximum", _F, "0xFF800000", "1", "tensor<3xf32>"),
    "reduce minimum": _reduce("minimum", _F, "0x7F800000", "1", "tensor<3xf32>"),
    "reduce from a value": _reduce("maximum", _F, "0.5", "1", "tensor<3xf32>"),
    "reduce multiply": _reduce("multiply", _I, "1", "0", "tensor<4xi32>"),
    "reduce or": _reduce("or", _B, "false", "1", "tensor<3xi1>"),
    "reduce and": _reduce("and", _B, "true", "1", "tensor<3xi1>"),
    "max pool": _window(
        "maximum",
        "0xFF800000",
        "window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>, "
        "padding = dense<[[0, 0], [1, 1], [1, 0], [0, 0]]> : tensor<4x2xi64>",
        "tensor<2x3x2x3xf32>",
        "tensor<2x6x5x3xf32>",
    ),
    "sum pool": _window(
        "add",
        "0.0",
        "window_dimensions = array<i64: 1, 2, 2>, window_dilations = array<i64: 1, 2, 1>",
        "tensor<2x4x4xf32>",
        "tensor<2x6x5xf32>",
    ),
    "min pool": _window(
        "minimum", "0x7F800000", "window_dimensions = array<i64: 2, 1>", "tensor<2x4xf32>", _F
    ),
    "cumulative sum": _window(
        "add",
        "0.0",
        "window_dimensions = array<i64: 1, 4>, padding = dense<[[0, 0], [3, 0]]> : tensor<2x2xi64>",
        _F,
        _F,
    ),
    "dynamic_slice": f"%y = stablehlo.dynamic_slice %a: {_F}, %b: tensor<i32>, %c: tensor<i32>, "
    f"sizes = [2, 3] : ({_F}, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>",
    "dynamic_update_slice": "%y = stablehlo.dynamic_update_slice %a: tensor<12x3xf32>, "
    "%b: tensor<2x2xf32>, %c: tensor<i32>, %d: tensor<i32> : "
    "(tensor<12x3xf32>, tensor<2x2xf32>, tensor<i32>, tensor<i32>) -> tensor<12x3xf32>",
    "gather of rows": '%y = "stablehlo.gather"(%a: tensor<7x3xf32>, %b: tensor<2x4xi32>) '
    "<{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], "
    "start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 3>}> : "
    "(tensor<7x3xf32>, tensor<2x4xi32>) -> tensor<2x4x3xf32>",
    "gather of columns": '%y = "stablehlo.gather"(%a: tensor<3x9xf32>, %b: tensor<5x1xi32>) '
    "<{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], "
    "start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 3, 1>}> : "
    "(tensor<3x9xf32>, tensor<5x1xi32>) -> tensor<3x5xf32>",
    "gather of elements": '%y = "stablehlo.gather"(%a: tensor<3x9xf32>, %b: tensor<4x2xi32>) '
    "<{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], "
    "start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : "
    "(tensor<3x9xf32>, tensor<4x2xi32>) -> tensor<4xf32>",
    "gather with kept dims": '%y = "stablehlo.gather"(%a: tensor<3x9x2xf32>, %b: tensor<4x1xi32>) '
    "<{dimension_numbers = #stablehlo.gather<offset_dims = [0, 2, 3], start_index_map = [1], "
    "index_vector_dim = 1>, slice_sizes = array<i64: 3, 1, 2>}> : "
    "(tensor<3x9x2xf32>, tensor<4x1xi32>) -> tensor<3x4x1x2xf32>",
    "gather along a dim": '%y = "stablehlo.gather"(%a: tensor<3x9xf32>, %b: tensor<3x4x1xi32>) '
    "<{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], "
    "operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], "
    "index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : "
    "(tensor<3x9xf32>, tensor<3x4x1xi32>) -> tensor<3x4xf32>",
    "optimization_barrier": f"%y = stablehlo.optimization_barrier %a: {_F} : {_F}",
    "if": f"""%p = stablehlo.exponential %a: {_F} : {_F}
%y = "stablehlo.if"(%b: tensor<i1>) ({{
  "stablehlo.return"(%p) : ({_F}) -> ()
}}, {{
  %q = stablehlo.negate %p : {_F}
  stablehlo.return %q : {_F}
}}) : (tensor<i1>) -> {_F}""",
    "case": f"""%y = "stablehlo.case"(%b: tensor<i32>) ({{
  %q = stablehlo.negate %a: {_F} : {_F}
  stablehlo.return %q : {_F}
}}, {{
  %r = stablehlo.abs %a : {_F}
  stablehlo.return %r : {_F}
}}, {{
  %s = stablehlo.tanh %a : {_F}
  stablehlo.return %s : {_F}
}}) : (tensor<i32>) -> {_F}""",
    "while": f"""%zero = stablehlo.constant dense<0> : tensor<i32>
%one = stablehlo.constant dense<1> : tensor<i32>
%n, %y = stablehlo.while(%i = %zero, %x = %a: {_F}) : tensor<i32>, {_F}
cond {{
  %go = stablehlo.compare LT, %i, %b: tensor<i32>, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %go : tensor<i1>
}} do {{
  %next = stablehlo.add %i, %one : tensor<i32>
  %z = stablehlo.add %x, %a : {_F}
  stablehlo.return %next, %z : tensor<i32>, {_F}
}}""",
}
