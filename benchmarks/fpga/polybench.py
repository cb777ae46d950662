"""Four kernels of polybench in f32 as HLS C++ whose stages stream to each other in one order.

python -m benchmarks.fpga.polybench --data DIR/vitis [--json FILE]

The orders differ from those of the published designs: a product takes what it reads in the order in
which it is made, so that all stages run at the same time, and stages that have time to spare share
operators (an interval above 1). Both texts go through the same reader and estimator; ours is
compiled and compared with numpy before.
"""

import argparse
import ctypes
import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.fpga.reader import read_design
from braid.lowering.fpga.cpp.check import check_rules
from braid.lowering.fpga.cpp.project import HEADERS, header
from braid.lowering.fpga.operators import vitis_operators
from braid.solvers.hls.estimate import estimate

Loops = Sequence[tuple[str, int]]


@dataclass(frozen=True)
class Kernel:
    """Shapes of the arrays of the top function, the last is written; products that must be made."""

    text: str
    shapes: tuple[tuple[int, ...], ...]
    products: int


def nest(loops: Loops, unrolled: Loops, body: Sequence[str], interval: int = 1) -> list[str]:
    lines: list[str] = []
    for depth, (name, trips) in enumerate((*loops, *unrolled)):
        lines.append("  " * depth + f"for (int {name} = 0; {name} < {trips}; {name}++) {{")
        if depth == len(loops) - 1:
            lines.append(f"#pragma HLS pipeline II={interval}")
    depth = len(loops) + len(unrolled)
    lines += ["  " * depth + line for line in body]
    return [*lines, *("  " * at + "}" for at in reversed(range(depth)))]


def function(name: str, parameters: Sequence[str], lines: Sequence[str]) -> str:
    inner = [line if line.startswith("#") else f"  {line}" for line in lines]
    return "\n".join([f"void {name}({', '.join(parameters)}) {{", *inner, "}", ""])


def partition(name: str, *factors: int) -> list[str]:
    return [
        f"#pragma HLS array_partition variable={name} cyclic dim={dim + 1} factor={factor}"
        for dim, factor in enumerate(factors)
        if factor > 1
    ]


def product(total: str, left: str, right: str, first: str, last: str, write: str) -> list[str]:
    return [
        *(f"if ({first}) {{", f"  {total} = 0.0f;", "}"),
        f"float old = {total};",
        f"float term = {left} * {right};",
        "float sum = old + term;",
        f"{total} = sum;",
        *(f"if ({last}) {{", f"  {write}.write(sum);", "}"),
    ]


def top(arrays: Sequence[tuple[str, str, Sequence[str]]], inside: Sequence[str]) -> str:
    pragmas = [line for _, _, lines in arrays for line in lines]
    parameters = [f"float {name}{shape}" for name, shape, _ in arrays]
    text = function("forward", parameters, ["#pragma HLS DATAFLOW", *pragmas, *inside])
    return 'extern "C" ' + text


def stream(name: str, shape: str, depth: int) -> list[str]:
    return [
        f"hls::stream<float> {name}{shape};",
        f"#pragma HLS STREAM variable={name} depth={depth}",
    ]


def scaled(name: str, shape: tuple[int, int], lanes: int, alpha: float, beta: float) -> str:
    """y = alpha * what comes + beta * c, with one multiplier for each factor."""
    rows, columns = shape
    body = [
        "float x = in[u].read();",
        f"float a = x * {alpha}f;",
        f"float b = c[i][u + j * {lanes}] * {beta}f;",
        "float s = a + b;",
        f"y[i][u + j * {lanes}] = s;",
    ]
    lines = nest((("i", rows), ("j", columns // lanes)), (("u", lanes),), body, lanes)
    array = f"[{rows}][{columns}]"
    return function(
        name, (f"hls::stream<float> in[{lanes}]", f"float c{array}", f"float y{array}"), lines
    )


def gemm() -> Kernel:
    rows, columns, depth, uk, uj = 200, 220, 240, 3, 11
    k, j = f"(w + k * {uk})", f"(u + j * {uj})"
    body = product(
        f"t[i][{j}]",
        f"a[i][{k}]",
        f"b[{k}][{j}]",
        f"{k} == 0",
        f"{k} == {depth - 1}",
        "out[u]",
    )
    loops = (("i", rows), ("k", depth // uk), ("j", columns // uj))
    lines = [
        f"float t[{rows}][{columns}];",
        *nest(loops, (("u", uj), ("w", uk)), body),
    ]
    a, b = f"[{rows}][{depth}]", f"[{depth}][{columns}]"
    c = f"[{rows}][{columns}]"
    parts = function(
        "multiply", (f"float a{a}", f"float b{b}", f"hls::stream<float> out[{uj}]"), lines
    )
    parts += scaled("add", (rows, columns), uj, 0.1, 0.1)
    inside = [*stream("s", f"[{uj}]", columns // uj), "multiply(a, b, s);", "add(s, c, y);"]
    arrays = (
        ("a", a, partition("a", 1, uk)),
        ("b", b, partition("b", uk, uj)),
        ("c", c, partition("c", 1, uj)),
        ("y", c, partition("y", 1, uj)),
    )
    shapes = ((rows, depth), (depth, columns), (rows, columns), (rows, columns))
    return Kernel(parts + top(arrays, inside), shapes, rows * columns * depth)


def atax() -> Kernel:
    """y = Aᵀ (A x): rows in blocks, of which a sum of each is made in turn."""
    rows, columns, ui, uj, blocks = 390, 410, 2, 10, 5
    inner = rows // ui // blocks
    i, j = f"(u + ii * {ui} + io * {ui * inner})", f"(w + j * {uj})"
    body = product(
        f"t[{i}]", f"a[{i}][{j}]", f"x[{j}]", f"{j} == 0", f"{j} == {columns - 1}", "out[u]"
    )
    loops = (("io", blocks), ("j", columns // uj), ("ii", inner))
    shape = f"[{rows}][{columns}]"
    parts = function(
        "first",
        (f"float a{shape}", f"float x[{columns}]", f"hls::stream<float> out[{ui}]"),
        [f"float t[{rows}];", *nest(loops, (("u", ui), ("w", uj)), body)],
    )
    i = f"(u + i * {ui})"
    body = [
        "if (j == 0 && w == 0) {",
        "  held[u] = in[u].read();",
        "}",
        "float z = held[u];",
        *product(f"t[{j}]", f"a[{i}][{j}]", "z", f"{i} == 0", f"{i} == {rows - 1}", "out[w]"),
    ]
    loops = (("i", rows // ui), ("j", columns // uj))
    parts += function(
        "second",
        (
            f"float a{shape}",
            f"hls::stream<float> in[{ui}]",
            f"hls::stream<float> out[{uj}]",
        ),
        [f"float t[{columns}];", f"float held[{ui}];", *nest(loops, (("w", uj), ("u", ui)), body)],
    )
    parts += function(
        "store",
        (f"hls::stream<float> in[{uj}]", f"float y[{columns}]"),
        nest(
            (("j", columns // uj),),
            (("w", uj),),
            ["float v = in[w].read();", f"y[{j}] = v;"],
        ),
    )
    inside = [
        *stream("s", f"[{ui}]", inner),
        *stream("r", f"[{uj}]", columns // uj),
        "first(a, x, s);",
        "second(a, s, r);",
        "store(r, y);",
    ]
    arrays = (
        ("a", shape, partition("a", ui, uj)),
        ("x", f"[{columns}]", partition("x", uj)),
        ("y", f"[{columns}]", partition("y", uj)),
    )
    shapes = ((rows, columns), (columns,), (columns,))
    return Kernel(parts + top(arrays, inside), shapes, 2 * rows * columns)


def lanes_loop(name: str, trips: int, body: Sequence[str]) -> list[str]:
    return [f"for (int {name} = 0; {name} < {trips}; {name}++) {{", *body, "}"]


def following(held: int, lanes: int, loops: Loops, body: Sequence[str]) -> list[str]:
    """Takes `held` numbers of another product at a time, each for all of the inner loops."""
    *_, inner = loops
    first = f"ki == 0 && {inner[0]} == 0"
    reads = [f"if ({first}) {{", "  held[v] = in[v].read();", "}"]
    lines = [*lanes_loop("v", held, reads), *lanes_loop("u", lanes, body)]
    return [f"float held[{held}];", *nest(loops, (), lines)]


def k2mm() -> Kernel:
    """y = 0.1 A B C + 0.1 D: rows of A B are taken as they come."""
    rows, depth, middle, columns, uk, uj, lanes = 180, 210, 190, 220, 2, 10, 22
    a, b, c = f"[{rows}][{depth}]", f"[{depth}][{middle}]", f"[{middle}][{columns}]"
    y = f"[{rows}][{columns}]"
    k, j = f"(w + k * {uk})", f"(u + j * {uj})"
    body = product(
        f"t[{j}]", f"a[i][{k}]", f"b[{k}][{j}]", f"{k} == 0", f"{k} == {depth - 1}", "out[u]"
    )
    loops = (("i", rows), ("k", depth // uk), ("j", middle // uj))
    text = function(
        "first",
        (f"float a{a}", f"float b{b}", f"hls::stream<float> out[{uj}]"),
        [f"float t[{middle}];", *nest(loops, (("u", uj), ("w", uk)), body)],
    )
    k, j = f"(ki + ko * {uj})", f"(u + j * {lanes})"
    body = product(
        f"t[{j}]", "held[ki]", f"c[{k}][{j}]", f"{k} == 0", f"{k} == {middle - 1}", "out[u]"
    )
    loops = (("i", rows), ("ko", middle // uj), ("ki", uj), ("j", columns // lanes))
    text += function(
        "second",
        (f"float c{c}", f"hls::stream<float> in[{uj}]", f"hls::stream<float> out[{lanes}]"),
        [f"float t[{columns}];", *following(uj, lanes, loops, body)],
    )
    text += scaled("add", (rows, columns), lanes, 0.1, 0.1)
    inside = [
        *stream("s", f"[{uj}]", 2 * middle // uj),
        *stream("r", f"[{lanes}]", columns // lanes),
        "first(a, b, s);",
        "second(c, s, r);",
        "add(r, d, y);",
    ]
    arrays = (
        ("a", a, partition("a", 1, uk)),
        ("b", b, partition("b", uk, uj)),
        ("c", c, partition("c", 1, lanes)),
        ("d", y, partition("d", 1, lanes)),
        ("y", y, partition("y", 1, lanes)),
    )
    shapes = ((rows, depth), (depth, middle), (middle, columns), (rows, columns), (rows, columns))
    products = rows * middle * (depth + columns)
    return Kernel(text + top(arrays, inside), shapes, products)


def k3mm() -> Kernel:
    """y = (A B) (C D): columns of A B and rows of C D are made at the same time, and added up."""
    rows, depth, middle, deep, columns, ui, uj = 180, 200, 190, 220, 210, 12, 15
    a, b = f"[{rows}][{depth}]", f"[{depth}][{middle}]"
    c, d, y = f"[{middle}][{deep}]", f"[{deep}][{columns}]", f"[{rows}][{columns}]"
    i = f"(u + i * {ui})"
    body = product(f"t[{i}]", f"a[{i}][k]", "b[k][j]", "k == 0", f"k == {depth - 1}", "out[u]")
    loops = (("j", middle), ("k", depth), ("i", rows // ui))
    text = function(
        "left",
        (f"float a{a}", f"float b{b}", f"hls::stream<float> out[{ui}]"),
        [f"float t[{rows}];", *nest(loops, (("u", ui),), body)],
    )
    j = f"(u + j * {uj})"
    body = product(f"t[{j}]", "c[i][k]", f"d[k][{j}]", "k == 0", f"k == {deep - 1}", "out[u]")
    loops = (("i", middle), ("k", deep), ("j", columns // uj))
    text += function(
        "right",
        (f"float c{c}", f"float d{d}", f"hls::stream<float> out[{uj}]"),
        [f"float t[{columns}];", *nest(loops, (("u", uj),), body)],
    )
    i = f"(ki + ko * {ui})"
    take = [f"if ({i} == 0) {{", f"  row[{j}] = more[u].read();", "}"]
    body = product(
        f"t[{i}][{j}]", "held[ki]", f"row[{j}]", "k == 0", f"k == {middle - 1}", "out[u]"
    )
    loops = (("k", middle), ("ko", rows // ui), ("ki", ui), ("j", columns // uj))
    text += function(
        "both",
        (
            f"hls::stream<float> in[{ui}]",
            f"hls::stream<float> more[{uj}]",
            f"hls::stream<float> out[{uj}]",
        ),
        [
            f"float t[{rows}][{columns}];",
            f"float row[{columns}];",
            *following(ui, uj, loops, [*take, *body]),
        ],
    )
    text += function(
        "store",
        (f"hls::stream<float> in[{uj}]", f"float y{y}"),
        nest(
            (("i", rows), ("j", columns // uj)),
            (("u", uj),),
            ["float v = in[u].read();", f"y[i][{j}] = v;"],
        ),
    )
    inside = [
        *stream("s", f"[{ui}]", 4 * rows // ui),
        *stream("q", f"[{uj}]", 4 * columns // uj),
        *stream("r", f"[{uj}]", columns // uj),
        *("left(a, b, s);", "right(c, d, q);", "both(s, q, r);", "store(r, y);"),
    ]
    arrays = (
        ("a", a, partition("a", ui)),
        ("b", b, []),
        ("c", c, []),
        ("d", d, partition("d", 1, uj)),
        ("y", y, partition("y", 1, uj)),
    )
    shapes = ((rows, depth), (depth, middle), (middle, deep), (deep, columns), (rows, columns))
    products = rows * middle * (depth + columns) + middle * deep * columns
    return Kernel(text + top(arrays, inside), shapes, products)


KERNELS = {"atax": atax, "gemm": gemm, "k2mm": k2mm, "k3mm": k3mm}


def expected(name: str, given: list[np.ndarray]) -> np.ndarray:
    wide = [array.astype(np.float64) for array in given]
    if name == "gemm":
        return 0.1 * (wide[0] @ wide[1]) + 0.1 * wide[2]
    if name == "k2mm":
        return 0.1 * (wide[0] @ wide[1] @ wide[2]) + 0.1 * wide[3]
    if name == "k3mm":
        return (wide[0] @ wide[1]) @ (wide[2] @ wide[3])
    return wide[0].T @ (wide[0] @ wide[1])


def run(text: str, kernel: Kernel, given: list[np.ndarray]) -> np.ndarray:
    """What the C++ compiler makes of it."""
    check_rules(text)
    with tempfile.TemporaryDirectory() as folder:
        for file in HEADERS:
            (Path(folder) / file).write_text(header(file))
        (Path(folder) / "k.cpp").write_text(text)
        command = ("g++", "-std=c++17", "-O1", "-ffp-contract=off", "-fPIC", "-shared", "-I.")
        rest = ("-Wno-unknown-pragmas", "-o", "k.so", "k.cpp")
        subprocess.run((*command, *rest), cwd=folder, check=True)
        output = np.zeros(kernel.shapes[-1], np.float32)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*given, output)]
        ctypes.CDLL(str(Path(folder) / "k.so")).forward(*pointers)
    return output


def measure(name: str, published: Path) -> dict[str, Any]:
    kernel = KERNELS[name]()
    text = "#include <hls_stream.h>\n\n" + kernel.text
    worst = 0.0
    for seed in (1, 2, 3):
        rng = np.random.default_rng(seed)
        given = [rng.normal(size=shape).astype(np.float32) for shape in kernel.shapes[:-1]]
        correct = expected(name, given)
        difference = np.abs(run(text, kernel, given) - correct).max()
        worst = max(worst, float(difference / np.abs(correct).max()))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.cpp"
        path.write_text(text)
        ours = estimate(read_design(path), vitis_operators())
    theirs = estimate(read_design(published), vitis_operators())
    # A multiplier has three DSPs and makes one product a cycle; adders may have none.
    bound = -(-kernel.products // (theirs.resources.dsps // 3))
    return {
        "kernel": name,
        "cycles": ours.cycles,
        "dsps": ours.resources.dsps,
        "published cycles": theirs.cycles,
        "published dsps": theirs.resources.dsps,
        "bound": bound,
        "relative error": worst,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    folder = arguments.data / "designs"
    rows = [
        measure(name, folder / f"polybench-streamhls-220_DSPs-opt5-{name}.cpp") for name in KERNELS
    ]
    table = Table(*rows[0])
    for row in rows:
        table.add_row(
            *(f"{one:.2g}" if isinstance(one, float) else str(one) for one in row.values())
        )
    Console().print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
