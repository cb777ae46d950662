"""Nests of `linalg` in the interpreter: the iterations in order, for any kinds of loops."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from braid.analysis.interpreter import interpret
from braid.driver.sources.reading import read_mlir
from braid.support.errors import BraidError
from braid.universe import make_context

X = np.arange(12, dtype=np.float32).reshape(3, 4)
KINDS = list(product(("parallel", "reduction"), repeat=2))

PLACES: dict[str, tuple[tuple[int, ...], Callable[[int, int], tuple[int, ...]]]] = {
    "j": ((4,), lambda i, j: (j,)),
    "i, 1": ((3, 4), lambda i, j: (i, 1)),
    "i + j": ((8,), lambda i, j: (i + j,)),
    "i floordiv 2, j": ((2, 4), lambda i, j: (i // 2, j)),
    "0": ((1,), lambda i, j: (0,)),
    "i, i": ((3, 3), lambda i, j: (i, i)),
}


def nest(place: str, shape: tuple[int, ...], kinds: tuple[str, ...], body: str) -> str:
    result = f"tensor<{'x'.join(map(str, shape))}xf32>"
    return f"""func.func @main(%x: tensor<3x4xf32>, %q: {result}) -> {result} {{
  %y = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>,
    affine_map<(i, j) -> ({place})>], iterator_types = ["{kinds[0]}", "{kinds[1]}"]}}
    ins(%x : tensor<3x4xf32>) outs(%q : {result}) {{
  ^bb0(%a: f32, %b: f32):
    {body}
    linalg.yield %t : f32
  }} -> {result}
  return %y : {result}
}}"""


@pytest.mark.parametrize("kinds", KINDS, ids="_".join)
@pytest.mark.parametrize("place", PLACES)
def test_an_element_that_is_written_again_is_read_as_it_is(
    place: str, kinds: tuple[str, ...]
) -> None:
    shape, index = PLACES[place]
    module = read_mlir(
        make_context(), nest(place, shape, kinds, "%t = arith.subf %a, %b : f32"), "x"
    )
    expected = np.ones(shape, np.float32)
    for i, j in np.ndindex(3, 4):
        expected[index(i, j)] = X[i, j] - expected[index(i, j)]
    (found,) = interpret(module, [X, np.ones(shape, np.float32)])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("place", ["i, j", "j"])
def test_a_body_knows_the_indices_of_its_loops(place: str) -> None:
    body = """%i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %s = arith.addi %i, %j : index
    %n = arith.index_cast %s : index to i32
    %t = arith.sitofp %n : i32 to f32"""
    shape = (3, 4) if place == "i, j" else (4,)
    module = read_mlir(make_context(), nest(place, shape, KINDS[0], body), "x")
    (found,) = interpret(module, [X, np.zeros(shape, np.float32)])
    expected = np.add.outer(np.arange(3), np.arange(4)).astype(np.float32)
    np.testing.assert_array_equal(found, expected if place == "i, j" else expected[-1])


def test_ops_on_tensors_that_upstream_has_read_are_known_by_their_names() -> None:
    # Ops of arith on tensors are not those of xDSL where upstream has read the text.
    text = """func.func @main(%x: tensor<4xf32>) -> (tensor<4xi1>) {
  %s = arith.mulf %x, %x : tensor<4xf32>
  %e = math.exp %s : tensor<4xf32>
  %c = arith.cmpf ogt, %e, %s : tensor<4xf32>
  return %c : tensor<4xi1>
} loc("a":1:1)"""
    module = read_mlir(make_context(), text, "x")
    assert any("unregistered" in op.name for op in module.walk())
    (found,) = interpret(module, [X[0]])
    np.testing.assert_array_equal(found, np.exp(X[0] ** 2) > X[0] ** 2)


def test_a_body_that_looks_up() -> None:
    text = """func.func @main(%x: tensor<3xf32>, %p: tensor<3xi64>) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]} ins(%p : tensor<3xi64>) outs(%e : tensor<3xf32>) {
  ^bb0(%a: i64, %b: f32):
    %i = arith.index_cast %a : i64 to index
    %v = tensor.extract %x[%i] : tensor<3xf32>
    linalg.yield %v : f32
  } -> tensor<3xf32>
  return %y : tensor<3xf32>
}"""
    module = read_mlir(make_context(), text, "x.mlir")
    x = np.array([1, 2, 3], np.float32)
    (found,) = interpret(module, [x, np.array([2, 0, 1])])
    np.testing.assert_array_equal(found, [3, 1, 2])
    with pytest.raises(BraidError, match=r"index 3 of dim 0 is outside of shape \[3\]"):
        interpret(module, [x, np.array([2, 3, -1])])
