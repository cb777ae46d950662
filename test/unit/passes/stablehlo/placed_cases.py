"""Sorts, scatters, gathers of slices and reductions by any region, by name; see `module_of`."""

_F = "tensor<3x4xf32>"


def _sort(types: list[str], dim: int, comparison: str, result: str) -> str:
    """Sort `%a`, `%b`, … of these types, each of 3x5; `result` makes %y of the results %s#0, ….

    `comparison` makes %p of %a0, %a1, %b0, ….
    """
    names = "ab"[: len(types)]
    full = [f"tensor<3x5x{type}>" for type in types]
    listed = ", ".join(f"%{name}: {type}" for name, type in zip(names, full, strict=True))
    arguments = ", ".join(
        f"%{name}{side}: tensor<{type}>"
        for name, type in zip(names, types, strict=True)
        for side in (0, 1)
    )
    return f"""%s:{len(types)} = "stablehlo.sort"({listed}) <{{dimension = {dim} : i64,
  is_stable = true}}> ({{
^bb0({arguments}):
{comparison}
  stablehlo.return %p : tensor<i1>
}}) : ({", ".join(full)}) -> ({", ".join(full)})
{result}"""


def _compare(name: str, direction: str, left: str, right: str, type: str, kind: str) -> str:
    return (
        f"  %{name} = stablehlo.compare {direction}, {left}, {right}, {kind} : "
        f"(tensor<{type}>, tensor<{type}>) -> tensor<i1>"
    )


_FIRST = "%y = stablehlo.negate %s#0 : tensor<3x5xf32>"
_SECOND = "%y = stablehlo.negate %s#1 : tensor<3x5xi32>"
_LOGIC = "  %e = stablehlo.and %q, %r : tensor<i1>\n  %p = stablehlo.or %e, %o : tensor<i1>"
_CANONICAL = """  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<0x7FC00000> : tensor<f32>
""" + "\n".join(
    f"""  %e{i} = stablehlo.compare EQ, %a{i}, %z, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %f{i} = stablehlo.select %e{i}, %z, %a{i} : tensor<i1>, tensor<f32>
  %g{i} = stablehlo.compare NE, %a{i}, %a{i}, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %h{i} = stablehlo.select %g{i}, %n, %f{i} : tensor<i1>, tensor<f32>"""
    for i in (0, 1)
)

SORTS = {
    "sort": _sort(["f32"], 1, _compare("p", "LT", "%a0", "%a1", "f32", "FLOAT"), _FIRST),
    "sort downward": _sort(["f32"], 0, _compare("p", "LT", "%a1", "%a0", "f32", "FLOAT"), _FIRST),
    "sort in the total order": _sort(
        ["f32"], 1, _compare("p", "GT", "%a0", "%a1", "f32", "TOTALORDER"), _FIRST
    ),
    "sort as JAX does": _sort(
        ["f32", "i32"],
        1,
        f"{_CANONICAL}\n{_compare('p', 'LT', '%h0', '%h1', 'f32', 'TOTALORDER')}",
        _SECOND,
    ),
    "sort by a computed key": _sort(
        ["f32", "i32"],
        1,
        "  %m = stablehlo.abs %a0 : tensor<f32>\n  %n = stablehlo.abs %a1 : tensor<f32>\n"
        + _compare("p", "LT", "%m", "%n", "f32", "FLOAT"),
        _SECOND,
    ),
    **{
        f"first of {name} sorted": _sort(
            ["f32", "i32"],
            1,
            _compare("p", "GT", "%a0", "%a1", "f32", "FLOAT"),
            f"%y = stablehlo.slice {name} [0:3, 0:2] : (tensor<3x5x{type}>) -> tensor<3x2x{type}>",
        )
        for name, type in (("%s#0", "f32"), ("%s#1", "i32"))
    },
    "sort by two keys": _sort(
        ["f32", "i32"],
        0,
        "\n".join(
            [
                _compare("o", "GT", "%b0", "%b1", "i32", "SIGNED"),
                _compare("q", "EQ", "%b0", "%b1", "i32", "SIGNED"),
                _compare("r", "LT", "%a0", "%a1", "f32", "FLOAT"),
                _LOGIC,
            ]
        ),
        _FIRST,
    ),
    "sort by no key": _sort(
        ["f32", "i32"],
        1,
        "  %d = stablehlo.subtract %a1, %a0 : tensor<f32>\n"
        "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        + _compare("p", "GT", "%d", "%z", "f32", "FLOAT"),
        _SECOND,
    ),
}


def _scatter(
    types: tuple[str, str, str], dims: str, region: str, element: str = "f32", unique: str = "false"
) -> str:
    value, indices, update = types
    return f"""%y = "stablehlo.scatter"(%a: {value}, %b: {indices}, %c: {update}) <{{
  scatter_dimension_numbers = #stablehlo.scatter<{dims}>, unique_indices = {unique}}}> ({{
^bb0(%o: tensor<{element}>, %n: tensor<{element}>):
{region}
}}) : ({value}, {indices}, {update}) -> {value}"""


def _by(name: str, element: str = "f32") -> str:
    return (
        f"  %r = stablehlo.{name} %o, %n : tensor<{element}>\n"
        f"  stablehlo.return %r : tensor<{element}>"
    )


_REPLACE = "  stablehlo.return %n : tensor<f32>"
_ROWS = "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
_OF_ROWS = ("tensor<5x3xf32>", "tensor<6x1xi32>", "tensor<6x3xf32>")
_WINDOWS = ("tensor<6x9xf32>", "tensor<2x2xi32>", "tensor<2x2x3xf32>")
_IN_WINDOWS = "update_window_dims = [1, 2], scatter_dims_to_operand_dims = [1, 0], "

SCATTERS = {
    **{
        f"scatter {name}": _scatter(_OF_ROWS, f"{_ROWS}index_vector_dim = 1", _by(name))
        for name in ("add", "multiply", "maximum", "minimum", "subtract")
    },
    "scatter or": _scatter(
        ("tensor<5xi1>", "tensor<4x1xi32>", "tensor<4xi1>"),
        "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1",
        _by("or", "i1"),
        "i1",
    ),
    "scatter at one place": _scatter(
        ("tensor<12x3xf32>", "tensor<1xi32>", "tensor<3xf32>"),
        "update_window_dims = [0], inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 0",
        _REPLACE,
    ),
    "scatter outside": _scatter(
        ("tensor<4xf32>", "tensor<1xi8>", "tensor<f32>"),
        "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0",
        _REPLACE,
    ),
    "scatter of windows": _scatter(_WINDOWS, f"{_IN_WINDOWS}index_vector_dim = 1", _by("add")),
    "scatter of windows at columns": _scatter(
        _WINDOWS, f"{_IN_WINDOWS}index_vector_dim = 0", _by("maximum")
    ),
    "scatter of parts that are not indexed": _scatter(
        ("tensor<9x4xf32>", "tensor<3x1xui32>", "tensor<2x3xf32>"),
        "update_window_dims = [0], inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 1",
        _by("add"),
    ),
    "scatter in batches": _scatter(
        ("tensor<2x3x9xf32>", "tensor<3x4x2x1xi32>", "tensor<3x4x2xf32>"),
        "inserted_window_dims = [2], input_batching_dims = [0, 1], "
        "scatter_indices_batching_dims = [2, 0], scatter_dims_to_operand_dims = [2], "
        "index_vector_dim = 3",
        _by("add"),
    ),
    "scatter of everything": _scatter(
        ("tensor<3x4xf32>", "tensor<0xi32>", "tensor<3x4xf32>"),
        "update_window_dims = [0, 1], index_vector_dim = 0",
        _by("multiply"),
    ).replace("%b: tensor<0xi32>", "%none"),
    "scatter by any region": _scatter(
        ("tensor<9x3xf32>", "tensor<1x1xi32>", "tensor<1x3xf32>"),
        f"{_ROWS}index_vector_dim = 1",
        "  %m = stablehlo.multiply %o, %n : tensor<f32>\n"
        "  %r = stablehlo.subtract %m, %o : tensor<f32>\n"
        "  stablehlo.return %r : tensor<f32>",
        unique="true",
    ),
}
SCATTERS["scatter of everything"] = (
    "%none = stablehlo.constant dense<> : tensor<0xi32>\n" + SCATTERS["scatter of everything"]
)


def _gather(types: tuple[str, str, str], dims: str, sizes: str) -> str:
    return (
        f'%y = "stablehlo.gather"(%a: {types[0]}, %b: {types[1]}) <{{dimension_numbers = '
        f"#stablehlo.gather<{dims}>, slice_sizes = array<i64: {sizes}>}}> : "
        f"({types[0]}, {types[1]}) -> {types[2]}"
    )


GATHERS = {
    "gather of slices": _gather(
        ("tensor<9x10x5xf32>", "tensor<4x2xi32>", "tensor<4x2x3x5xf32>"),
        "offset_dims = [1, 2, 3], start_index_map = [1, 0], index_vector_dim = 1",
        "2, 3, 5",
    ),
    "gather of slices at columns": _gather(
        ("tensor<9x10x5xf32>", "tensor<2x4xi8>", "tensor<2x4x4xf32>"),
        "offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = [1, 2], "
        "index_vector_dim = 0",
        "2, 1, 4",
    ),
    "gather of slices in batches": _gather(
        ("tensor<3x9x7xf32>", "tensor<4x3x1xi32>", "tensor<4x3x2x7xf32>"),
        "offset_dims = [2, 3], operand_batching_dims = [0], start_indices_batching_dims = [1], "
        "start_index_map = [1], index_vector_dim = 2",
        "1, 2, 7",
    ),
    "gather of whole slices": _gather(
        ("tensor<2x3xf32>", "tensor<4x2xi32>", "tensor<4x2x3xf32>"),
        "offset_dims = [1, 2], start_index_map = [0, 1], index_vector_dim = 1",
        "2, 3",
    ),
    "gather of nothing": _gather(
        ("tensor<9x4xf32>", "tensor<4x1xi32>", "tensor<4x0x4xf32>"),
        "offset_dims = [1, 2], start_index_map = [0], index_vector_dim = 1",
        "0, 4",
    ),
}


def _pairs(name: str, region: str, initial: str, fields: str, result: str) -> str:
    """Apply an op to `%a` and a count along its dim 1; %y are the counts."""
    kind = _F.replace("f32", "i32")
    return f"""%i = stablehlo.iota dim = 1 : {kind}
%u = stablehlo.constant dense<{initial}> : tensor<f32>
%v = stablehlo.constant dense<0> : tensor<i32>
%s:2 = "stablehlo.{name}"(%a: {_F}, %i, %u, %v) <{{{fields}}}> ({{
^bb0(%p: tensor<f32>, %k: tensor<i32>, %q: tensor<f32>, %l: tensor<i32>):
{region}
}}) : ({_F}, {kind}, tensor<f32>, tensor<i32>) -> (tensor<{result}xf32>, tensor<{result}xi32>)
%z = stablehlo.convert %s#1 : (tensor<{result}xi32>) -> tensor<{result}xf32>
%y = stablehlo.add %s#0, %z : tensor<{result}xf32>"""


def _extreme(direction: str) -> str:
    return f"""  %0 = stablehlo.compare {direction}, %p, %q, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %1 = stablehlo.compare NE, %p, %p, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %2 = stablehlo.or %0, %1 : tensor<i1>
  %3 = stablehlo.compare EQ, %p, %q, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %4 = stablehlo.compare LT, %k, %l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %5 = stablehlo.and %3, %4 : tensor<i1>
  %6 = stablehlo.or %2, %5 : tensor<i1>
  %7 = stablehlo.select %2, %p, %q : tensor<i1>, tensor<f32>
  %8 = stablehlo.select %6, %k, %l : tensor<i1>, tensor<i32>
  stablehlo.return %7, %8 : tensor<f32>, tensor<i32>"""  # noqa: E501  as JAX writes it


_SUMS = """  %r = stablehlo.add %p, %q : tensor<f32>
  %m = stablehlo.maximum %k, %l : tensor<i32>
  stablehlo.return %r, %m : tensor<f32>, tensor<i32>"""
_FARTHEST = """  %b = stablehlo.abs %p : tensor<f32>
  %c = stablehlo.abs %q : tensor<f32>
  %g = stablehlo.compare GE, %b, %c, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %r = stablehlo.select %g, %p, %q : tensor<i1>, tensor<f32>
  %m = stablehlo.select %g, %k, %l : tensor<i1>, tensor<i32>
  stablehlo.return %r, %m : tensor<f32>, tensor<i32>"""
_ROWS_OF_A = "dimensions = array<i64: 1>"
_PADDED = (
    "window_dimensions = array<i64: 2, 3>, window_strides = array<i64: 1, 2>, "
    "padding = dense<[[0, 0], [1, 2]]> : tensor<2x2xi64>"
)


def _window(name: str, initial: str, fields: str, result: str) -> str:
    return f"""%u = stablehlo.constant dense<{initial}> : tensor<f32>
%y = "stablehlo.reduce_window"(%a: {_F}, %u) <{{{fields}}}> ({{
^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %r = stablehlo.{name} %p, %q : tensor<f32>
  stablehlo.return %r : tensor<f32>
}}) : ({_F}, tensor<f32>) -> tensor<{result}xf32>"""


REDUCTIONS = {
    "argmax": _pairs("reduce", _extreme("GT"), "0xFF800000", _ROWS_OF_A, "3"),
    "argmin": _pairs("reduce", _extreme("LT"), "0x7F800000", _ROWS_OF_A, "3"),
    "argmax from a number": _pairs("reduce", _extreme("GT"), "1.0", _ROWS_OF_A, "3"),
    "argmax of another dim": _pairs(
        "reduce", _extreme("GT"), "0xFF800000", "dimensions = array<i64: 0>", "4"
    ),
    "reduce of two values": _pairs("reduce", _SUMS, "0.5", _ROWS_OF_A, "3"),
    "reduce by any region": _pairs("reduce", _FARTHEST, "0.0", _ROWS_OF_A, "3"),
    "reduce of all by any region": _pairs(
        "reduce", _FARTHEST, "0.0", "dimensions = array<i64: 0, 1>", ""
    ).replace("<x", "<"),
    "windows of two values": _pairs("reduce_window", _SUMS, "0.5", _PADDED, "2x3"),
    "windows by any region": _pairs("reduce_window", _FARTHEST, "0.0", _PADDED, "2x3"),
    "product pool": _window(
        "multiply",
        "1.0",
        "window_dimensions = array<i64: 2, 3>, window_dilations = array<i64: 2, 1>, "
        "base_dilations = array<i64: 1, 2>",
        "1x5",
    ),
    **{
        f"cumulative {name} {sides}": _window(
            name,
            initial,
            "window_dimensions = array<i64: 3, 1>, "
            f"padding = dense<[{sides}, [0, 0]]> : tensor<2x2xi64>",
            "3x4",
        )
        for name, initial in (("add", "0.0"), ("multiply", "1.0"), ("maximum", "0xFF800000"))
        for sides in ("[2, 0]", "[0, 2]")
    },
    "sum pool from a number": _window("add", "0.5", _PADDED, "2x3"),
    "windows larger than the tensor": _window(
        "multiply", "1.0", "window_dimensions = array<i64: 5, 3>", "0x2"
    ),
}


def _selection(direction: str, fields: str, source: str) -> str:
    return f"""%u = stablehlo.constant dense<0.0> : tensor<f32>
%y = "stablehlo.select_and_scatter"(%a: tensor<2x6x5xf32>, %b: {source}, %u) <{{{fields}}}> ({{
^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %r = stablehlo.compare {direction}, %p, %q, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %r : tensor<i1>
}}, {{
^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %r = stablehlo.add %p, %q : tensor<f32>
  stablehlo.return %r : tensor<f32>
}}) : (tensor<2x6x5xf32>, {source}, tensor<f32>) -> tensor<2x6x5xf32>"""


SELECTIONS = {
    "gradient of a max pool": _selection(
        "GE",
        "window_dimensions = array<i64: 1, 2, 2>, window_strides = array<i64: 1, 2, 2>, "
        "padding = dense<[[0, 0], [0, 0], [0, 1]]> : tensor<3x2xi64>",
        "tensor<2x3x3xf32>",
    ),
    "gradient of a min pool": _selection(
        "LE",
        "window_dimensions = array<i64: 1, 3, 3>, window_strides = array<i64: 1, 1, 2>, "
        "padding = dense<[[0, 0], [1, 1], [1, 1]]> : tensor<3x2xi64>",
        "tensor<2x6x3xf32>",
    ),
}

_EDGES = "0x7FC00000, 0x7F800000, 0xFF800000, -0.0, 65519.9, 65520.1, 5.96e-8, 1.00048828125"
_PRECISIONS = [
    ("f32", "e5m10", _EDGES),
    ("f32", "e8m7", _EDGES),
    ("f32", "e4m3", "0.3, -1.0625, 1.1875, 240.1, 247.9, 248.1, 0.0156, -0.001"),
    ("f64", "e8m23", "0.1, -0.1, 1.0e300, -1.0e-300, 3.5, 16777217.0, 16777219.0, 1.0e-45"),
]

OTHERS = {
    "convolution of batch groups": "%y = stablehlo.convolution(%a: tensor<6x5x2xf32>, "
    "%b: tensor<3x2x4xf32>) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]}"
    " {batch_group_count = 2 : i64, feature_group_count = 1 : i64} : "
    "(tensor<6x5x2xf32>, tensor<3x2x4xf32>) -> tensor<3x5x4xf32>",
    "map": f"""%y = "stablehlo.map"(%a: {_F}, %b: {_F}) <{{dimensions = array<i64: 0, 1>}}> ({{
^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %r = stablehlo.abs %p : tensor<f32>
  %s = stablehlo.power %r, %q : tensor<f32>
  stablehlo.return %s : tensor<f32>
}}) : ({_F}, {_F}) -> {_F}""",
    **{
        f"{name} {type}": f"%n = stablehlo.negate %a: tensor<5x{type}> : tensor<5x{type}>\n"
        f"%m = stablehlo.multiply %n, %n : tensor<5x{type}>\n"
        f"%s = stablehlo.subtract %m, %b: tensor<5x{type}> : tensor<5x{type}>\n"
        f"%y = stablehlo.{name} %s : tensor<5x{type}>"
        for name in ("popcnt", "count_leading_zeros")
        for type in ("i8", "ui16", "i32", "ui64")
    },
    **{
        f"reduce_precision {bits}": f"%k = stablehlo.constant dense<[{numbers}]> : tensor<8x{type}>"
        f"\n%y = stablehlo.reduce_precision %k, format = {bits} : tensor<8x{type}>"
        for type, bits, numbers in _PRECISIONS
    },
    **{
        f"bitcast_convert {name}": f"%y = stablehlo.bitcast_convert %a: {x} : ({x}) -> {y}"
        for name, x, y in [
            ("to wider", "tensor<3x4xi8>", "tensor<3xi32>"),
            ("to wider floats", "tensor<3x2xui32>", "tensor<3xf64>"),
            ("to narrower", "tensor<3x2xf32>", "tensor<3x2x2xi16>"),
            ("of a number", "tensor<f32>", "tensor<4xui8>"),
        ]
    },
    "pad by a computed number": "%s = stablehlo.negate %b: tensor<f32> : tensor<f32>\n"
    f"%y = stablehlo.pad %a: {_F}, %s, low = [1, -1], high = [0, 2], interior = [2, 1] : "
    f"({_F}, tensor<f32>) -> tensor<8x8xf32>",
}

PLACED_CASES = OTHERS | SORTS | SCATTERS | GATHERS | REDUCTIONS | SELECTIONS
