"""Random functions in f32 as HLS C++, beside the interpreter."""

import numpy as np
import pytest

from braid.analysis.interpreter.interpret import interpret
from braid.lowering.fpga.convert_braid_to_hls import function_named
from braid.lowering.fpga.cpp.check import broken_rules
from braid.lowering.fpga.floats.project import run_design, text_of
from test.run.fpga.designs import parse, random_like
from test.run.fpga.test_floats import function, selected

SIZES = (1, 2, 3, 5, 7, 8, 12)


def random_function(seed: int) -> str:
    """Products, moves, sums with repeated vectors, and elementwise ops of what was before."""
    rng = np.random.default_rng(seed)
    shapes = {f"x{i}": tuple(int(one) for one in rng.choice(SIZES, 2)) for i in range(3)}
    arguments = {name: "x".join(map(str, shape)) for name, shape in shapes.items()}
    lines: list[str] = []

    def text(shape: tuple[int, ...]) -> str:
        return "x".join(map(str, shape))

    def add(name: str, operands: list[str], shape: tuple[int, ...], rest: str = "") -> None:
        made = f"v{len(lines)}"
        named = [f"{one}" for one in operands]
        types = ", ".join(f"tensor<{text(shapes[one])}xf32>" for one in named)
        names = ", ".join(f"%{one}" for one in named)
        lines.append(
            f"%{made} = braid.{name} {names} {rest} : ({types}) -> tensor<{text(shape)}xf32>"
        )
        shapes[made] = shape

    while len(lines) < 6:
        kind = rng.choice(["matmul", "transpose", "mul", "maximum", "sub", "tanh", "reshape"])
        a = str(rng.choice(list(shapes)))
        if kind == "reshape":
            rows, columns = shapes[a]
            factor = int(rng.choice([one for one in (1, 2, 3, columns) if columns % one == 0]))
            add(kind, [a], (rows * factor, columns // factor))
        elif kind == "transpose":
            add(kind, [a], shapes[a][::-1], "{permutation = array<i64: 1, 0>}")
        elif kind == "tanh":
            add(kind, [a], shapes[a])
        elif kind == "matmul":
            fitting = [one for one in shapes if shapes[one][0] == shapes[a][1]]
            if fitting:
                b = str(rng.choice(fitting))
                add(kind, [a, b], (shapes[a][0], shapes[b][1]))
        else:
            fitting = [
                one
                for one in shapes
                if all(p == q or 1 in (p, q) for p, q in zip(shapes[one], shapes[a], strict=True))
            ]
            b = str(rng.choice(fitting))
            add(kind, [a, b], tuple(map(max, zip(shapes[a], shapes[b], strict=True))))
    results = {f"v{i}": text(shapes[f"v{i}"]) for i in (len(lines) - 1, len(lines) - 3)}
    return function(arguments, *lines, results=results)


def agrees(seed: int) -> None:
    module = parse(random_function(seed))
    main = function_named(module, "main")
    chosen = selected(main, int(np.random.default_rng(seed).integers(40, 200)))
    assert not list(broken_rules(text_of(chosen.design)))
    rng = np.random.default_rng(seed)
    given = [random_like(argument, rng) for argument in main.body.block.args]
    for output, array in zip(
        run_design(chosen.design, given), interpret(module, given), strict=True
    ):
        scale = max(float(np.abs(array).max()), 1e-6)
        np.testing.assert_allclose(output, array, rtol=0, atol=2e-5 * scale)


@pytest.mark.parametrize("seed", range(6))
def test_random_functions(seed: int) -> None:
    agrees(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6, 60))
def test_more_random_functions(seed: int) -> None:
    agrees(seed)
