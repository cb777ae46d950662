"""Elements that no iteration of a nest writes keep the values of its destination."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import braid
from braid.analysis.interpreter.interpret import interpret
from braid.driver.sources.reading import read_mlir
from braid.universe import make_context

Array = NDArray[Any]

SQUARE = "%t = arith.mulf %a, %a : f32\nlinalg.yield %t : f32"
READ_IN_VAIN = f"%u = arith.addf %a, %o : f32\n{SQUARE}"
CONSTANT = "%t = arith.constant 2.0 : f32\nlinalg.yield %t : f32"
COPY = "linalg.yield %a : f32"
X = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
V = X[0]
NONE = np.zeros((3, 0), np.float32)

NESTS: dict[str, tuple[Array, str, str, str, tuple[int, ...]]] = {
    "column": (X, "i, j", "i, 1", SQUARE, (3, 4)),
    "column_of_constants": (X, "i, j", "i, 1", CONSTANT, (3, 4)),
    "column_read_in_vain": (X, "i, j", "i, 1", READ_IN_VAIN, (3, 4)),
    "plane": (X, "i, j", "i, 1, j", COPY, (3, 2, 4)),
    "row_at_0": (X, "i, j", "0, j", COPY, (2, 4)),
    "strided": (V, "i", "i * 2", SQUARE, (7,)),
    "shifted": (V, "i", "i + 1", COPY, (6,)),
    "diagonal": (V, "i", "i, i", COPY, (4, 4)),
    "steps": (V, "i", "i floordiv 2", COPY, (5,)),
    "remainders": (V, "i", "i mod 2", COPY, (3,)),
    "sums_of_loops": (X, "i, j", "i + j", COPY, (8,)),
    "one_element": (V, "i", "2", COPY, (4,)),
    "no_iterations": (NONE, "i, j", "i", COPY, (3,)),
    "no_iterations_of_a_column": (NONE, "i, j", "i, 2", COPY, (3, 4)),
}
"""For each result: the operand, its loops, the map of the result, the body, and the shape."""


def tensor(shape: tuple[int, ...]) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}f32>"


def nest(name: str, x: str, start: str) -> str:
    operand, loops, result, body, shape = NESTS[name]
    kinds = ", ".join(
        '"parallel"' if loop in result.split(", ") else '"reduction"' for loop in loops.split(", ")
    )
    return f"""
  %{name} = linalg.generic {{indexing_maps = [affine_map<({loops}) -> ({loops})>,
    affine_map<({loops}) -> ({result})>], iterator_types = [{kinds}]}}
    ins({x} : {tensor(operand.shape)}) outs({start} : {tensor(shape)}) {{
  ^bb0(%a: f32, %o: f32):
    {body}
  }} -> {tensor(shape)}"""


def expected(name: str, start: Array) -> Array:
    """Return the results of the iterations in order."""
    operand, loops, result, body, _ = NESTS[name]
    made = start.copy()
    for point in np.ndindex(*operand.shape):
        index = dict(zip(loops.split(", "), point, strict=True))
        place = eval(f"({result},)".replace("floordiv", "//").replace("mod", "%"), {}, index)
        value = operand[point]
        made[place] = value if body is COPY else 2 if body is CONSTANT else value * value
    return made


STARTS = [
    np.random.default_rng(n).integers(-9, 9, NESTS[name][-1]).astype(np.float32)
    for n, name in enumerate(NESTS)
]
TYPES = [tensor(start.shape) for start in STARTS]


def module_of(starts: list[str], arguments: str) -> str:
    """Return a module with all nests, which begin as `starts`."""
    operands = {id(NONE): "%none", id(V): "%v", id(X): "%x"}
    nests = [
        nest(name, operands[id(NESTS[name][0])], s) for name, s in zip(NESTS, starts, strict=True)
    ]
    own = ", ".join(f"{v}: {tensor(a.shape)}" for v, a in (("%x", X), ("%v", V), ("%none", NONE)))
    empty = "".join(f"  %e{n} = tensor.empty() : {type}\n" for n, type in enumerate(TYPES))
    return f"""func.func @main({own}{arguments}) -> ({", ".join(TYPES)}) {{
{"" if arguments else empty}{"".join(nests)}
  return {", ".join(f"%{name}" for name in NESTS)} : {", ".join(TYPES)}
}}"""


INTO_ARGUMENTS = module_of(
    [f"%s{n}" for n in range(len(NESTS))],
    "".join(f", %s{n}: {type}" for n, type in enumerate(TYPES)),
)
INTO_NOTHING = module_of([f"%e{n}" for n in range(len(NESTS))], "")


def computed(target: str, text: str, inputs: list[Array]) -> list[Array]:
    if target == "interpreter":
        return interpret(read_mlir(make_context(), text, "x"), inputs)
    results = braid.compile(text.encode(), target=target, jobs=1)(*inputs)
    assert isinstance(results, tuple)
    return list(results)


@pytest.mark.parametrize("target", ["interpreter", "host", "gpu-emulated"])
def test_what_is_not_written_stays(target: str) -> None:
    found = computed(target, INTO_ARGUMENTS, [X, V, NONE, *STARTS])
    for name, got, start in zip(NESTS, found, STARTS, strict=True):
        np.testing.assert_array_equal(got, expected(name, start), name)


@pytest.mark.parametrize("target", ["interpreter", "host", "gpu-emulated"])
def test_what_is_not_written_of_a_new_tensor_is_zero(target: str) -> None:
    found = computed(target, INTO_NOTHING, [X, V, NONE])
    for name, got, start in zip(NESTS, found, STARTS, strict=True):
        np.testing.assert_array_equal(got, expected(name, np.zeros_like(start)), name)
