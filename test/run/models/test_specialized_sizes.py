"""Models with specialized code for some sizes, in addition to the code for all sizes."""

from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest

import braid
from braid.support.errors import BraidError

TEXT = """<ir_version: 9, opset_import: ["" : 18]>
attention (float[b,t,32] x, float[b,t] mask) => (float[b,t,32] y, float[b,t,t] shares) {
  k = Transpose <perm = [0, 2, 1]> (x)  a = MatMul (x, k)  m = Unsqueeze (mask, one)
  c = Add (a, m)  shares = Softmax <axis = -1> (c)  z = MatMul (shares, x)  y = MatMul (z, w) }"""
RANDOM = np.random.default_rng(4)


@cache
def proto() -> onnx.ModelProto:
    model = onnx.parser.parse_model(TEXT)
    weight = (RANDOM.standard_normal((32, 32)) / 6).astype(np.float32)
    for name, value in (("w", weight), ("one", np.array([1]))):
        model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    return model


@cache
def plain() -> braid.Model:
    return braid.compile(proto())


def check(model: braid.Model, batch: int, length: int) -> None:
    x = RANDOM.standard_normal((batch, length, 32)).astype(np.float32)
    mask = RANDOM.standard_normal((batch, length)).astype(np.float32)
    for found, wanted in zip(model(x, mask), plain()(x, mask), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "sizes", [[{"b": 1, "t": 48}], [{"b": 1}, {"t": 7}, {"b": 2, "t": 7}], [{"b": 0}]]
)
def test_results_are_those_of_code_for_all_sizes(sizes: Any) -> None:
    model = braid.compile(proto(), specialize=sizes)
    assert (model.inputs, model.outputs) == (plain().inputs, plain().outputs)
    for batch, length in ((1, 48), (1, 7), (2, 7), (2, 48), (3, 5), (0, 7), (1, 0), (1, 48)):
        check(model, batch, length)


def test_weights_are_stored_once(tmp_path: Any) -> None:
    model = braid.compile(proto(), specialize=[{"b": 1, "t": 48}])
    model.save(tmp_path / "special.braid")
    plain().save(tmp_path / "plain.braid")
    loaded = braid.load(tmp_path / "special.braid")
    for length in (48, 5):
        check(loaded, 1, length)
    weights = [
        sum(weight.nbytes for weight in each.packaged().manifest.weights)
        for each in (loaded, plain())
    ]
    assert weights[0] == weights[1]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([{"c": 1}], "there is no size 'c' to bind"),
        ([{"b": -1}], "expected sizes by name"),
        ([{"b": True}], "expected sizes by name"),
        ([{"b;t": 1}], "expected sizes by name"),
        ({"b": 1}, "expected sizes by name"),
        ("b=1", "expected sizes by name"),
    ],
)
def test_sizes_that_there_are_not(sizes: Any, message: str) -> None:
    with pytest.raises(BraidError, match=message):
        braid.compile(proto(), specialize=sizes)


def test_variants_have_their_sizes() -> None:
    with pytest.raises(BraidError, match="there are several functions already"):
        braid.compile(proto(), specialize=[{"b": 1}], shape_buckets={"b": [1, 2], "t": [4]})


@pytest.mark.parametrize("fixed", [["b"], ["k.value[1]"], ["k.value[0]", "b"]])
def test_sizes_that_elements_of_inputs_are(fixed: list[str]) -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]>
    tiles (float[b,4] x, int64[2] k) => (float[p,q] y) { s = Tile (x, k)  y = Exp (s) }"""
    sizes = {"b": 2, "k.value[0]": 3, "k.value[1]": 2}
    special = {name: sizes[name] for name in fixed}
    model = braid.compile(onnx.parser.parse_model(text), specialize=[special])
    for batch, repeats in ((2, (3, 2)), (2, (1, 2)), (1, (3, 2)), (2, (3, 0)), (2, (3, 2))):
        x = RANDOM.standard_normal((batch, 4)).astype(np.float32)
        found = model(x, np.array(repeats))
        np.testing.assert_allclose(found, np.exp(np.tile(x, repeats)), rtol=1e-6)
