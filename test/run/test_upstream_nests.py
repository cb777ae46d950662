"""Loop nests without a counterpart in braid, on the host and on an emulated GPU."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import braid
from braid.support.errors import UnsupportedError

Array = NDArray[Any]


def _nest(arguments: str, results: str, maps: str, kinds: str, ins: str, outs: str, *body: str):
    count = results.count("tensor")
    values = ", ".join(f"%y#{number}" for number in range(count)) if count > 1 else "%y"
    returned = f"({results})" if count > 1 else results
    block = "\n    ".join(body)
    return f"""func.func @main({arguments}) -> {returned} {{
  %y{f":{count}" if count > 1 else ""} = linalg.generic {{indexing_maps = [{maps}],
    iterator_types = [{kinds}]}} ins({ins}) outs({outs}) {{
    {block}
  }} -> {returned}
  return {values} : {results}
}}"""


X = np.arange(12, dtype=np.float32).reshape(3, 4)
P, Q = np.array([1, 2, 3], np.float32), np.array([5, 6, 7, 8], np.float32)
ROW, COLUMN, POINT = (f"affine_map<(i, j) -> ({to})>" for to in ("i", "j", "i, j"))


def _coupled(x: Array, p: Array, q: Array) -> tuple[Array, Array]:
    """Run the iterations in order, as the nest defines them."""
    p, q = p.copy(), q.copy()
    for i, j in np.ndindex(*x.shape):
        p[i] += x[i, j]
        q[j] += p[i]
    return p, q


CASES = {
    # A result indexed by the reduced loop, next to one that is not.
    "two_results": (
        _nest(
            "%x: tensor<3x4xf32>, %p: tensor<3xf32>, %e: tensor<3x4xf32>",
            "tensor<3xf32>, tensor<3x4xf32>",
            f"{POINT}, {ROW}, {POINT}",
            '"parallel", "reduction"',
            "%x : tensor<3x4xf32>",
            "%p, %e : tensor<3xf32>, tensor<3x4xf32>",
            "^bb0(%a: f32, %sum: f32, %o: f32):",
            "%s = arith.addf %a, %sum : f32",
            "%m = arith.mulf %a, %a : f32",
            "linalg.yield %s, %m : f32, f32",
        ),
        [X, P, X],
        [X.sum(1) + P, X * X],
    ),
    # Results that depend on each other.
    "coupled": (
        _nest(
            "%x: tensor<3x4xf32>, %p: tensor<3xf32>, %q: tensor<4xf32>",
            "tensor<3xf32>, tensor<4xf32>",
            f"{POINT}, {ROW}, {COLUMN}",
            '"reduction", "reduction"',
            "%x : tensor<3x4xf32>",
            "%p, %q : tensor<3xf32>, tensor<4xf32>",
            "^bb0(%a: f32, %b: f32, %c: f32):",
            "%s = arith.addf %a, %b : f32",
            "%t = arith.addf %s, %c : f32",
            "linalg.yield %s, %t : f32, f32",
        ),
        [X, P, Q],
        list(_coupled(X, P, Q)),
    ),
    # A loop twice in the map of the result.
    "diagonal": (
        _nest(
            "%q: tensor<4xf32>, %o: tensor<4x4xf32>",
            "tensor<4x4xf32>",
            "affine_map<(i) -> (i)>, affine_map<(i) -> (i, i)>",
            '"parallel"',
            "%q : tensor<4xf32>",
            "%o : tensor<4x4xf32>",
            "^bb0(%a: f32, %b: f32):",
            "%s = arith.addf %a, %b : f32",
            "linalg.yield %s : f32",
        ),
        [Q, np.ones((4, 4), np.float32)],
        [np.ones((4, 4), np.float32) + np.diag(Q)],
    ),
    # A body whose result depends on the order, and a loop called parallel that the result lacks.
    "alternating": (
        _nest(
            "%x: tensor<3x4xf32>, %q: tensor<4xf32>",
            "tensor<4xf32>",
            f"{POINT}, {COLUMN}",
            '"parallel", "parallel"',
            "%x : tensor<3x4xf32>",
            "%q : tensor<4xf32>",
            "^bb0(%a: f32, %b: f32):",
            "%t = arith.subf %a, %b : f32",
            "linalg.yield %t : f32",
        ),
        [X, Q],
        [X[2] - (X[1] - (X[0] - Q))],
    ),
    # The largest of each row and where it is.
    "argmax": (
        _nest(
            "%x: tensor<3x4xf32>, %p: tensor<3xf32>, %k: tensor<3xi64>",
            "tensor<3xf32>, tensor<3xi64>",
            f"{POINT}, {ROW}, {ROW}",
            '"parallel", "reduction"',
            "%x : tensor<3x4xf32>",
            "%p, %k : tensor<3xf32>, tensor<3xi64>",
            "^bb0(%a: f32, %b: f32, %c: i64):",
            "%j = linalg.index 1 : index",
            "%n = arith.index_cast %j : index to i64",
            "%g = arith.cmpf ogt, %a, %b : f32",
            "%v = arith.select %g, %a, %b : f32",
            "%w = arith.select %g, %n, %c : i64",
            "linalg.yield %v, %w : f32, i64",
        ),
        [X * np.array([1, -1, 1, -1], np.float32), P - 9, np.zeros(3, np.int64)],
        [np.array([2, 6, 10], np.float32), np.array([2, 2, 2])],
    ),
}


@pytest.mark.parametrize("target", ["host", "gpu-emulated"])
@pytest.mark.parametrize("name", CASES)
def test_a_nest_computes_what_its_loops_say(name: str, target: str) -> None:
    text, inputs, expected = CASES[name]
    results = braid.compile(text.encode(), target=target, jobs=1)(*inputs)
    found = results if isinstance(results, tuple) else (results,)
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, want)


LEFT = """
func.func @main(%x: tensor<2x3x3x5xf32>) -> tensor<6x6x5x2xf32> {
  %e = tensor.empty() : tensor<6x6x5x2xf32>
  %y = linalg.winograd_filter_transform fmr(F_4_3) ins(%x : tensor<2x3x3x5xf32>)
    outs(%e : tensor<6x6x5x2xf32>) -> tensor<6x6x5x2xf32>
  return %y : tensor<6x6x5x2xf32>
}
"""
NARROW = """
func.func @main(%x: tensor<2xf32>) -> tensor<2xi8> {
  %t = arith.truncf %x : tensor<2xf32> to tensor<2xf8E3M4>
  %r = arith.bitcast %t : tensor<2xf8E3M4> to tensor<2xi8>
  return %r : tensor<2xi8>
}
"""


@pytest.mark.parametrize("target", ["host", "gpu-emulated"])
@pytest.mark.parametrize(
    ("text", "op", "line"),
    [(LEFT, "linalg.winograd_filter_transform", 4), (NARROW, "arith.truncf", 3)],
)
def test_what_cannot_be_compiled_is_an_error_at_the_op(
    text: str, op: str, line: int, target: str
) -> None:
    with pytest.raises(UnsupportedError, match=f"'{op}'") as caught:
        braid.compile(text.encode(), target=target, jobs=1)
    assert caught.value.location is not None and caught.value.location.line == line
