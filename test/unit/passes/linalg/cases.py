"""Functions in upstream's dialects, and the op of braid that each is converted to."""


def _matmul(name: str, a: str, b: str, c: str, extra: str = "") -> str:
    return f"""func.func @main(%a: tensor<{a}>, %b: tensor<{b}>, %c: tensor<{c}>) -> tensor<{c}> {{
  %y = linalg.{name} {extra} ins(%a, %b : tensor<{a}>, tensor<{b}>)
    outs(%c : tensor<{c}>) -> tensor<{c}>
  return %y : tensor<{c}>
}}"""


def _windows(name: str, x: str, w: str, y: str, fields: str = "", start: str | None = None) -> str:
    """Return a convolution with a weight, or a pooling whose window is an empty tensor."""
    is_pool = name.startswith("pooling")
    weight = f"%w = tensor.empty() : tensor<{w}>" if is_pool else ""
    given = "" if is_pool else f", %w: tensor<{w}>"
    first = (
        f"%z = arith.constant {start} : {y.rpartition('x')[2]}\n"
        f"  %s = linalg.fill ins(%z : {y.rpartition('x')[2]}) outs(%c : tensor<{y}>)"
        f" -> tensor<{y}>"
        if start
        else f"%s = tensor.cast %c : tensor<{y}> to tensor<{y}>"
    )
    return f"""func.func @main(%x: tensor<{x}>{given}, %c: tensor<{y}>) -> tensor<{y}> {{
  {weight}
  {first}
  %y = linalg.{name} {fields} ins(%x, %w : tensor<{x}>, tensor<{w}>)
    outs(%s : tensor<{y}>) -> tensor<{y}>
  return %y : tensor<{y}>
}}"""


def _elementwise(name: str, type: str = "3x4xf32", count: int = 1) -> str:
    args = ", ".join(f"%a{i}: tensor<{type}>" for i in range(count))
    values = ", ".join(f"%a{i}" for i in range(count))
    types = ", ".join([f"tensor<{type}>"] * count)
    return f"""func.func @main({args}) -> tensor<{type}> {{
  %e = tensor.empty() : tensor<{type}>
  %y = linalg.{name} ins({values} : {types}) outs(%e : tensor<{type}>) -> tensor<{type}>
  return %y : tensor<{type}>
}}"""


def _plain(arguments: str, result: str, *lines: str) -> str:
    body = "\n  ".join(lines)
    return f"func.func @main({arguments}) -> {result} {{\n  {body}\n  return %y : {result}\n}}"


def _generic(maps: str, kinds: str, ins: str, outs: str, body: str, result: str) -> str:
    names = [f"%i{i}" for i in range(len(ins.split(";")))] if ins else []
    types = ins.split(";") if ins else []
    arguments = ", ".join(f"{n}: tensor<{t}>" for n, t in zip(names, types, strict=True))
    given = f"ins({', '.join(names)} : {', '.join(f'tensor<{t}>' for t in types)})" if ins else ""
    return f"""func.func @main({arguments}{", " if ins else ""}%o: tensor<{outs}>) -> {result} {{
  %y = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
    {given} outs(%o : tensor<{outs}>) {{
  {body}
  }} -> {result}
  return %y : {result}
}}"""


P, R = '"parallel"', '"reduction"'

CASES: dict[str, tuple[str, str]] = {
    "matmul": (_matmul("matmul", "3x4xf32", "4x5xf32", "3x5xf32"), "matmul"),
    "matmul_f16": (_matmul("matmul", "3x4xf16", "4x5xf16", "3x5xf32"), "matmul"),
    "matmul_i8": (_matmul("matmul", "3x4xi8", "4x5xi8", "3x5xi32"), "matmul"),
    "matmul_transposed": (
        _matmul(
            "matmul",
            "3x4xf32",
            "5x4xf32",
            "3x5xf32",
            "indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,"
            " affine_map<(m, n, k) -> (m, n)>]",
        ),
        "matmul",
    ),
    "batch_matmul": (_matmul("batch_matmul", "2x3x4xf32", "2x4x5xf32", "2x3x5xf32"), "matmul"),
    "batch_reduce_matmul": (
        _matmul("batch_reduce_matmul", "2x3x4xf32", "2x4x5xf32", "3x5xf32"),
        "matmul",
    ),
    "matvec": (_matmul("matvec", "3x4xf32", "4xf32", "3xf32"), "matmul"),
    "vecmat": (_matmul("vecmat", "4xf32", "4x5xf32", "5xf32"), "matmul"),
    "dot": (_matmul("dot", "4xf32", "4xf32", "f32"), "matmul"),
    "mmt4d": (_matmul("mmt4d", "2x3x4x5xf32", "6x3x2x5xf32", "2x6x4x2xf32"), "matmul"),
    "conv_2d_nhwc_hwcf": (
        _windows("conv_2d_nhwc_hwcf", "1x7x8x2xf32", "3x2x2x4xf32", "1x3x7x4xf32",
                 "{strides = dense<[2, 1]> : tensor<2xi64>}"), "conv",
    ),
    "conv_2d_nchw_fchw": (
        _windows("conv_2d_nchw_fchw", "1x2x7x8xf32", "4x2x2x2xf32", "1x4x5x6xf32",
                 "{dilations = dense<2> : tensor<2xi64>}"), "conv",
    ),
    "conv_2d_ngchw_fgchw": (
        _windows("conv_2d_ngchw_fgchw", "1x3x2x7x8xf32", "4x3x2x2x2xf32", "1x3x4x6x7xf32"), "conv",
    ),
    "conv_1d_nwc_wcf": (_windows("conv_1d_nwc_wcf", "2x7x2xf32", "3x2x4xf32", "2x5x4xf32"), "conv"),
    "conv_2d": (_windows("conv_2d", "7x8xf32", "3x2xf32", "5x7xf32"), "conv"),
    "conv_3d": (
        _windows("conv_3d_ndhwc_dhwcf", "1x4x5x6x2xf32", "2x2x2x2x3xf32", "1x3x4x5x3xf32"), "conv",
    ),
    "depthwise": (
        _windows("depthwise_conv_2d_nhwc_hwc", "1x7x8x3xf32", "2x2x3xf32", "1x6x7x3xf32"), "conv",
    ),
    "depthwise_multiplier": (
        _windows("depthwise_conv_2d_nhwc_hwcm", "1x7x8x3xf32", "2x2x3x2xf32", "1x6x7x3x2xf32"),
        "conv",
    ),
    "pool_max": (
        _windows("pooling_nhwc_max", "1x7x8x3xf32", "3x2xf32", "1x3x4x3xf32",
                 "{strides = dense<2> : tensor<2xi64>}", "0xFF800000"), "pool",
    ),
    "pool_min": (_windows("pooling_nhwc_min", "1x7x8x3xf32", "3x2xf32", "1x5x7x3xf32"), "pool"),
    "pool_sum": (
        _windows("pooling_nchw_sum", "1x3x7x8xf32", "3x2xf32", "1x3x5x7xf32", "", "0.0"), "pool",
    ),
    "pool_i32": (_windows("pooling_nhwc_max", "1x5x5x2xi32", "2x2xi32", "1x4x4x2xi32"), "pool"),
    **{
        name: (_elementwise(name), expected)
        for name, expected in {
            "abs": "abs", "ceil": "ceil", "erf": "erf", "exp": "exp", "floor": "floor",
            "log": "log", "negf": "neg", "reciprocal": "div", "rsqrt": "rsqrt", "sqrt": "sqrt",
            "square": "mul", "tanh": "tanh",
        }.items()
    },
    **{
        f"{name}_{type[4:]}": (_elementwise(name, type, 2), expected)
        for name, expected in {
            "add": "add", "sub": "sub", "mul": "mul", "max": "maximum", "min": "minimum",
        }.items()
        for type in ("3x4xf32", "3x4xi32", "3x4xi8", "3x4xbf16")
    },
    "div": (_elementwise("div", count=2), "div"),
    "div_unsigned": (_elementwise("div_unsigned", "3x4xi32", 2), "div"),
    "powf": (_elementwise("powf", count=2), "pow"),
    "copy": (_elementwise("copy"), ""),
    "transpose": (
        _plain("%x: tensor<3x4xf32>", "tensor<4x3xf32>", "%e = tensor.empty() : tensor<4x3xf32>",
               "%y = linalg.transpose ins(%x : tensor<3x4xf32>) outs(%e : tensor<4x3xf32>)"
               " permutation = [1, 0]"), "transpose",
    ),
    "broadcast": (
        _plain("%x: tensor<4xf32>", "tensor<3x4xf32>", "%e = tensor.empty() : tensor<3x4xf32>",
               "%y = linalg.broadcast ins(%x : tensor<4xf32>) outs(%e : tensor<3x4xf32>)"
               " dimensions = [0]"), "broadcast",
    ),
    "reduce": (
        _plain("%x: tensor<3x4xf32>, %o: tensor<3xf32>", "tensor<3xf32>",
               "%y = linalg.reduce { arith.maximumf } ins(%x : tensor<3x4xf32>)"
               " outs(%o : tensor<3xf32>) dimensions = [1]"), "reduce",
    ),
    "map": (
        _plain("%x: tensor<3x4xf32>", "tensor<3x4xf32>",
               "%e = tensor.empty() : tensor<3x4xf32>",
               "%y = linalg.map { math.absf } ins(%x : tensor<3x4xf32>)"
               " outs(%e : tensor<3x4xf32>)"),
        "abs",
    ),
    "softmax": (
        _plain("%x: tensor<3x4xf32>", "tensor<3x4xf32>", "%e = tensor.empty() : tensor<3x4xf32>",
               "%y = linalg.softmax dimension(1) ins(%x : tensor<3x4xf32>)"
               " outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>"), "softmax",
    ),
    "pack": (
        _plain("%x: tensor<7x9xf32>", "tensor<2x3x4x4xf32>", "%k = arith.constant 2.5 : f32",
               "%e = tensor.empty() : tensor<2x3x4x4xf32>",
               "%y = linalg.pack %x padding_value(%k : f32) inner_dims_pos = [0, 1]"
               " inner_tiles = [4, 4] into %e : tensor<7x9xf32> -> tensor<2x3x4x4xf32>"), "pad",
    ),
    "pack_permuted": (
        _plain("%x: tensor<8x6xf32>", "tensor<3x2x2x4xf32>",
               "%e = tensor.empty() : tensor<3x2x2x4xf32>",
               "%y = linalg.pack %x outer_dims_perm = [1, 0] inner_dims_pos = [1, 0]"
               " inner_tiles = [2, 4] into %e : tensor<8x6xf32> -> tensor<3x2x2x4xf32>"),
        "transpose",
    ),
    "unpack": (
        _plain("%x: tensor<2x3x4x4xf32>", "tensor<7x9xf32>",
               "%e = tensor.empty() : tensor<7x9xf32>",
               "%y = linalg.unpack %x inner_dims_pos = [0, 1] inner_tiles = [4, 4] into %e"
               " : tensor<2x3x4x4xf32> -> tensor<7x9xf32>"), "slice",
    ),
    "unpack_permuted": (
        _plain("%x: tensor<3x2x2x4xf32>", "tensor<8x6xf32>",
               "%e = tensor.empty() : tensor<8x6xf32>",
               "%y = linalg.unpack %x outer_dims_perm = [1, 0] inner_dims_pos = [1, 0]"
               " inner_tiles = [2, 4] into %e : tensor<3x2x2x4xf32> -> tensor<8x6xf32>"),
        "transpose",
    ),
    "pad": (
        _plain("%x: tensor<3x4xf32>", "tensor<5x7xf32>", "%k = arith.constant 1.5 : f32",
               "%y = tensor.pad %x low[1, 0] high[1, 3] {", "^bb0(%i: index, %j: index):",
               "tensor.yield %k : f32", "} : tensor<3x4xf32> to tensor<5x7xf32>"), "pad",
    ),
    "insert_slice": (
        _plain("%x: tensor<2x3xf32>, %w: tensor<4x6xf32>", "tensor<4x6xf32>",
               "%y = tensor.insert_slice %x into %w[1, 2] [2, 3] [1, 1]"
               " : tensor<2x3xf32> into tensor<4x6xf32>"), "concat",
    ),
    "extract_slice": (
        _plain("%x: tensor<4x6xf32>", "tensor<3xf32>",
               "%y = tensor.extract_slice %x[1, 0] [1, 3] [1, 2]"
               " : tensor<4x6xf32> to tensor<3xf32>"), "slice",
    ),
    "concat": (
        _plain("%x: tensor<2x3xf32>, %w: tensor<2x1xf32>", "tensor<2x4xf32>",
               "%y = tensor.concat dim(1) %x, %w"
               " : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>"), "concat",
    ),
    "two_results": (
        """func.func @main(%x: tensor<3x4xf32>, %o: tensor<4x3xf32>)
    -> (tensor<3x4xf32>, tensor<4x3xf32>) {
  %e = tensor.empty() : tensor<3x4xf32>
  %y:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
    affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>],
    iterator_types = ["parallel", "parallel"]} ins(%x : tensor<3x4xf32>)
    outs(%e, %o : tensor<3x4xf32>, tensor<4x3xf32>) {
  ^bb0(%a: f32, %p: f32, %q: f32):
    %s = arith.addf %a, %q : f32
    %m = math.exp %a : f32
    linalg.yield %m, %s : f32, f32
  } -> (tensor<3x4xf32>, tensor<4x3xf32>)
  return %y#0, %y#1 : tensor<3x4xf32>, tensor<4x3xf32>
}""",
        "exp",
    ),
    "kept_dim": (
        _generic("affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, 0)>", f"{P}, {R}",
                 "3x4xf32", "3x1xf32",
                 "^bb0(%a: f32, %s: f32):\n %m = arith.mulf %a, %a : f32\n"
                 " %t = arith.addf %s, %m : f32\n linalg.yield %t : f32", "tensor<3x1xf32>"),
        "matmul",
    ),
    "places": (
        _generic("affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>", f"{P}, {P}",
                 "4x3xi32", "3x4xi32",
                 "^bb0(%a: i32, %s: i32):\n %i = linalg.index 0 : index\n"
                 " %j = linalg.index 1 : index\n %k = arith.addi %i, %j : index\n"
                 " %n = arith.index_cast %k : index to i32\n %t = arith.addi %n, %a : i32\n"
                 " linalg.yield %t : i32", "tensor<3x4xi32>"),
        "iota",
    ),
}  # fmt: skip


def _binary(op: str, type: str, result: str | None = None) -> str:
    return _plain(
        f"%a: tensor<7x{type}>, %b: tensor<7x{type}>",
        f"tensor<7x{result or type}>",
        f"%y = arith.{op} %a, %b : tensor<7x{type}>",
    )


PREDICATES = "oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno".split()  # noqa: SIM905

ARITH: dict[str, str] = {
    **{f"cmpf_{p}": _binary(f"cmpf {p},", "f32", "i1") for p in PREDICATES},
    **{
        f"cmpi_{p}_{type}": _binary(f"cmpi {p},", type, "i1")
        for p in "eq ne slt sle sgt sge ult ule ugt uge".split()  # noqa: SIM905
        for type in ("i32", "i8", "i1")
    },
    **{
        f"{op}_{type}": _binary(op, type)
        for op in "maxsi minsi maxui minui andi ori xori addi subi muli".split()  # noqa: SIM905
        for type in ("i8", "i1", "i64")
    },
    **{f"{op}": _binary(op, "f32") for op in ("maxnumf", "minnumf", "maximumf", "minimumf")},
    "select": _plain(
        "%c: tensor<7xi1>, %a: tensor<7xi32>, %b: tensor<7xi32>",
        "tensor<7xi32>",
        "%y = arith.select %c, %a, %b : tensor<7xi1>, tensor<7xi32>",
    ),
    **{
        f"{op}_{source}_{target}": _plain(
            f"%a: tensor<7x{source}>",
            f"tensor<7x{target}>",
            f"%y = arith.{op} %a : tensor<7x{source}> to tensor<7x{target}>",
        )
        for op, source, target in (
            ("extsi", "i8", "i32"), ("extui", "i8", "i32"), ("extui", "i1", "i8"),
            ("extsi", "i1", "i8"), ("trunci", "i32", "i8"), ("trunci", "i32", "i1"),
            ("sitofp", "i8", "f32"), ("uitofp", "i8", "f32"), ("uitofp", "i1", "f32"),
            ("sitofp", "i1", "f32"), ("fptosi", "f32", "i32"), ("extf", "f16", "f32"),
            ("truncf", "f32", "bf16"), ("bitcast", "f32", "i32"), ("bitcast", "i16", "f16"),
        )
    },
}  # fmt: skip
