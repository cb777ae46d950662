"""Seven kernels of polybench in f32: HLS C++ of `lower-floats-to-cpp` beside published designs.

python -m benchmarks.fpga.polybench --data DIR/vitis [--every-adder-has-dsps] [--json FILE]

Each kernel is a function of the dialect, and gets the DSPs that the estimator counts in the
published design for 220. Both texts go through the same reader and estimator; ours is compiled and
compared with numpy before. `--every-adder-has-dsps` drops the estimator's rule that adders of sums
which return soon have none.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
from rich.console import Console
from rich.table import Table
from xdsl.parser import Parser

from benchmarks.command import run_command
from benchmarks.fpga.reader import read_design
from braid.lowering.fpga.convert.design_of import known_values
from braid.lowering.fpga.convert_braid_to_hls import function_named
from braid.lowering.fpga.floats.nodes import graph_of
from braid.lowering.fpga.floats.project import run_design, text_of
from braid.lowering.fpga.floats.select import Selected, select_orders
from braid.lowering.fpga.operators import vitis_operators
from braid.solvers.hls.estimate import estimate
from braid.solvers.hls.schedule import Operators
from braid.universe import make_context

Array = np.ndarray[Any, Any]
Shape = tuple[int, int]


@dataclass(frozen=True)
class Kernel:
    """Arguments with their shapes, lines of the function, results, and numpy's results."""

    arguments: dict[str, Shape]
    lines: Sequence[str]
    results: dict[str, Shape]
    expected: Callable[..., Sequence[Array]]

    @property
    def text(self) -> str:
        """The function."""
        given = ", ".join(f"%{name}: {_type(shape)}" for name, shape in self.arguments.items())
        types = ", ".join(map(_type, self.results.values()))
        names = ", ".join(f"%{name}" for name in self.results)
        body = "\n  ".join([*self.lines, f"func.return {names} : {types}"])
        return f"func.func @main({given}) -> ({types}) {{\n  {body}\n}}\n"


def _type(shape: Shape) -> str:
    return f"tensor<{shape[0]}x{shape[1]}xf32>"


def _op(result: str, name: str, *operands: tuple[str, Shape], made: Shape, rest: str = "") -> str:
    names = ", ".join(f"%{one}" for one, _ in operands)
    types = ", ".join(_type(shape) for _, shape in operands)
    return f"%{result} = braid.{name} {names} {rest} : ({types}) -> {_type(made)}"


def product(result: str, a: tuple[str, Shape], b: tuple[str, Shape]) -> str:
    return _op(result, "matmul", a, b, made=(a[1][0], b[1][1]))


def turned(result: str, a: tuple[str, Shape]) -> str:
    rows, columns = a[1]
    rest = "{permutation = array<i64: 1, 0>}"
    return _op(result, "transpose", a, made=(columns, rows), rest=rest)


def scaled_sum(result: str, shape: Shape, *terms: tuple[str, float]) -> list[str]:
    """Return the sum of two terms, each times a number."""
    lines: list[str] = []
    for name, factor in terms:
        kind = _type((1, 1))
        lines.append(f"%k_{name} = braid.constant {{value = dense<{factor}> : {kind}}} : {kind}")
        scaled = (name, shape), (f"k_{name}", (1, 1))
        lines.append(_op(f"s_{name}", "mul", *scaled, made=shape))
    both = [(f"s_{name}", shape) for name, _ in terms]
    return [*lines, _op(result, "add", *both, made=shape)]


KERNELS: dict[str, Kernel] = {
    "atax": Kernel(
        {"a": (390, 410), "x": (410, 1)},
        [
            product("t", ("a", (390, 410)), ("x", (410, 1))),
            turned("b", ("a", (390, 410))),
            product("y", ("b", (410, 390)), ("t", (390, 1))),
        ],
        {"y": (410, 1)},
        lambda a, x: [a.T @ (a @ x)],
    ),
    "bicg": Kernel(
        {"a": (410, 390), "r": (410, 1), "p": (390, 1)},
        [
            turned("b", ("a", (410, 390))),
            product("s", ("b", (390, 410)), ("r", (410, 1))),
            product("q", ("a", (410, 390)), ("p", (390, 1))),
        ],
        {"s": (390, 1), "q": (410, 1)},
        lambda a, r, p: [a.T @ r, a @ p],
    ),
    "gemm": Kernel(
        {"a": (200, 240), "b": (240, 220), "c": (200, 220)},
        [
            product("p", ("a", (200, 240)), ("b", (240, 220))),
            *scaled_sum("y", (200, 220), ("p", 0.1), ("c", 0.1)),
        ],
        {"y": (200, 220)},
        lambda a, b, c: [0.1 * (a @ b) + 0.1 * c],
    ),
    "gesummv": Kernel(
        {"a": (250, 250), "b": (250, 250), "x": (250, 1)},
        [
            product("t", ("a", (250, 250)), ("x", (250, 1))),
            product("u", ("b", (250, 250)), ("x", (250, 1))),
            *scaled_sum("y", (250, 1), ("t", 1.5), ("u", 1.2)),
        ],
        {"y": (250, 1)},
        lambda a, b, x: [1.5 * (a @ x) + 1.2 * (b @ x)],
    ),
    "k2mm": Kernel(
        {"a": (180, 210), "b": (210, 190), "c": (190, 220), "d": (180, 220)},
        [
            product("t", ("a", (180, 210)), ("b", (210, 190))),
            product("u", ("t", (180, 190)), ("c", (190, 220))),
            *scaled_sum("y", (180, 220), ("u", 0.1), ("d", 0.1)),
        ],
        {"y": (180, 220)},
        lambda a, b, c, d: [0.1 * (a @ b @ c) + 0.1 * d],
    ),
    "k3mm": Kernel(
        {"a": (180, 200), "b": (200, 190), "c": (190, 220), "d": (220, 210)},
        [
            product("t", ("a", (180, 200)), ("b", (200, 190))),
            product("u", ("c", (190, 220)), ("d", (220, 210))),
            product("y", ("t", (180, 190)), ("u", (190, 210))),
        ],
        {"y": (180, 210)},
        lambda a, b, c, d: [(a @ b) @ (c @ d)],
    ),
    "mvt": Kernel(
        {"a": (400, 400), "p": (400, 1), "q": (400, 1)},
        [
            product("y", ("a", (400, 400)), ("p", (400, 1))),
            turned("b", ("a", (400, 400))),
            product("z", ("b", (400, 400)), ("q", (400, 1))),
        ],
        {"y": (400, 1), "z": (400, 1)},
        lambda a, p, q: [a @ p, a.T @ q],
    ),
}


def selected(name: str, dsps: int, operators: Operators) -> Selected:
    """Return the compiler's design with `dsps` DSPs."""
    main = function_named(Parser(make_context(), KERNELS[name].text).parse_module(), "main")
    graph = graph_of(main, known_values(main, {}))
    return select_orders(graph, name, operators, dsps)


def measure(name: str, published: Path, operators: Operators) -> dict[str, Any]:
    kernel = KERNELS[name]
    theirs = estimate(read_design(published), operators)
    begin = perf_counter()
    chosen = selected(name, theirs.resources.dsps, operators)
    seconds = perf_counter() - begin
    worst = 0.0
    for seed in (1, 2, 3):
        rng = np.random.default_rng(seed)
        given = [rng.normal(size=shape).astype(np.float32) for shape in kernel.arguments.values()]
        correct = kernel.expected(*(one.astype(np.float64) for one in given))
        for output, array in zip(run_design(chosen.design, given), correct, strict=True):
            worst = max(worst, float(np.abs(output - array).max() / np.abs(array).max()))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.cpp"
        path.write_text(text_of(chosen.design))
        ours = estimate(read_design(path), operators)
    return {
        "kernel": name,
        "cycles": ours.cycles,
        "dsps": ours.resources.dsps,
        "published cycles": theirs.cycles,
        "published dsps": theirs.resources.dsps,
        "ratio": round(ours.cycles / theirs.cycles, 3),
        "bound": chosen.lower_bound,
        "relative error": worst,
        "seconds": round(seconds, 1),
    }


def main(
    *,
    data: Path,
    kernels: Annotated[Sequence[str], list(KERNELS)] = tuple(KERNELS),
    every_adder_has_dsps: bool = False,
) -> object:
    operators = vitis_operators()
    if every_adder_has_dsps:
        operators = replace(operators, latencies={**operators.latencies, "slow_add": 0})
    folder = data / "designs"
    rows: list[dict[str, Any]] = []
    for name in kernels:
        published = folder / f"polybench-streamhls-220_DSPs-opt5-{name}.cpp"
        rows.append(measure(name, published, operators))
        Console().print(rows[-1])
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*(f"{v:.1e}" if k == "relative error" else str(v) for k, v in row.items()))
    Console().print(table)
    return rows


if __name__ == "__main__":
    run_command(main)
