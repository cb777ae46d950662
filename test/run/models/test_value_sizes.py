"""Models with an input that holds sizes, compared with ONNX Runtime and interpreted."""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import braid
from braid.frontends.onnx import import_onnx
from braid.support.errors import BraidError
from braid.tools.cli import main

HEAD = '<ir_version: 9, opset_import: ["" : 18]> g '
Inputs = Mapping[str, Any]


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def numbers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def one(value: int, dtype: Any = np.int64) -> np.ndarray:
    return np.array(value, dtype)


def first(x: np.ndarray, count: int) -> np.ndarray:
    """Return the largest elements of each row."""
    return -np.sort(-x, axis=1)[:, :count]


MODELS: dict[str, tuple[str, list[Inputs]]] = {
    "TopK": (
        "(float[N,6] x, int64[1] k) => (float[] y) { y, i = TopK (x, k) }",
        [{"x": floats(n, 6), "k": numbers(k)} for n, k in ((3, 4), (1, 0), (2, 6))],
    ),
    "Reshape": (
        "(float[6] x, int64[2] s) => (float[] y) { y = Reshape (x, s) }",
        [{"x": floats(6), "s": numbers(*s)} for s in ((2, 3), (6, 1), (1, 6))],
    ),
    "Resize": (
        """(float[1,2,4,5] x, int64[2] s) => (float[] y) <int64[2] o = {1, 2}> {
          a = Concat <axis = 0> (o, s)  y = Resize <mode = "linear"> (x, , , a) }""",
        [{"x": floats(1, 2, 4, 5), "s": numbers(*s)} for s in ((8, 9), (2, 17), (4, 5))],
    ),
    "Expand": (
        """(float[3] x, int64[2] s) => (float[] y, float[] z) {
          y = Expand (x, s)  z = ReduceSum <keepdims = 0> (y) }""",
        [{"x": floats(3), "s": numbers(*s)} for s in ((5, 3), (0, 3), (1, 1))],
    ),
    "Range": (
        """(int64 n, float[M] x) => (int64[] y, float[] z) <int64 a = {3}, int64 b = {2}> {
          y = Range (a, n, b)  z = Neg (x) }""",
        [{"n": one(n), "x": floats(2)} for n in (7, 0, 3, 100)],
    ),
    "Tile": (
        "(float[A,3] x, int64[2] r) => (float[] y) { y = Tile (x, r) }",
        [{"x": floats(a, 3), "r": numbers(*r)} for a, r in ((2, (2, 1)), (1, (0, 4)))],
    ),
    "Pad": (
        "(float[A,3] x, int64[4] p) => (float[] y) { y = Pad (x, p) }",
        [{"x": floats(2, 3), "p": numbers(*p)} for p in ((2, 1, 0, 3), (0, 0, 0, 0))],
    ),
    "ConstantOfShape": (
        "(int64[2] s) => (float[] y) { y = ConstantOfShape <value = float[1] {3.5}> (s) }",
        [{"s": numbers(*s)} for s in ((2, 3), (0, 1))],
    ),
    "Split": (
        "(float[A,8] x, int64[2] s) => (float[] y, float[] z) { y, z = Split <axis = 1> (x, s) }",
        [{"x": floats(2, 8), "s": numbers(*s)} for s in ((3, 5), (8, 0))],
    ),
    "arithmetic of 32 bits, and data of it": (
        """(float[A,8] x, int32 n, int32[1] w) => (float[] y, int32[] v)
        <int32 one = {1}, int64[1] d = {0}> {
          m = Add (n, one)  k = Cast <to = 7> (m)  c = Unsqueeze (k, d)  y, j = TopK (x, c)
          v = Mul (n, w) }""",
        [
            {"x": floats(2, 8), "n": one(n, np.int32), "w": np.array([w], np.int32)}
            for n, w in ((3, 2), (7, -2), (0, 5))
        ],
    ),
}


@pytest.mark.parametrize(("text", "runs"), MODELS.values(), ids=MODELS)
def test_beside_onnx_runtime(text: str, runs: list[Inputs]) -> None:
    proto = onnx.parser.parse_model(HEAD + text)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    model, interpreted = braid.compile(proto), braid.interpret(proto)
    names = [value.name for value in proto.graph.input]
    for inputs in runs:
        expected = session.run(None, dict(inputs))
        arrays = [inputs[name] for name in names]
        for found in (model.run(arrays), interpreted.run(arrays)):
            for actual, wanted in zip(found, expected, strict=True):
                assert actual.shape == wanted.shape
                np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-5)


@pytest.fixture
def proto() -> onnx.ModelProto:
    return onnx.parser.parse_model(HEAD + MODELS["TopK"][0])


def test_what_is_said_of_it(proto: onnx.ModelProto, tmp_path: Path) -> None:
    model = braid.compile(proto)
    text = "(x: float32[N, 6], k: int64[1]) -> (y: float32[N, k.value])"
    assert repr(model) == f"<braid.Model {text}>" and model.inputs[1].values == ("k.value",)
    model.save(tmp_path / "a.braid")
    x = floats(2, 6)
    for other in (braid.load(tmp_path / "a.braid"), pickle.loads(pickle.dumps(model))):
        assert repr(other) == repr(model) and other.inputs == model.inputs
        np.testing.assert_array_equal(other(x, numbers(3)), first(x, 3))
    session = braid.InferenceSession(proto.SerializeToString())
    assert session.run(None, {"x": x, "k": numbers(5)})[0].shape == (2, 5)
    strided = numbers(4, 0, 2)[::2][1:]
    np.testing.assert_array_equal(model(x, strided), first(x, 2))


def test_what_is_no_size(proto: onnx.ModelProto) -> None:
    x = floats(2, 6)
    for model in (braid.compile(proto), braid.interpret(proto)):
        with pytest.raises(BraidError, match="input 'k': element 0 is -1, expected a size"):
            model(x, numbers(-1))
        assert model(x, numbers(1)).shape == (2, 1)
    reshape = onnx.parser.parse_model(HEAD + MODELS["Reshape"][0])
    with pytest.raises(BraidError, match=r"'y' \(braid.reshape\) needs 6 = .*s\[0\]=4"):
        braid.compile(reshape)(floats(6), numbers(4, 2))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((2**31, 2**31), "output 'y' would be too large for this computer"),
        ((2**62, 0), "output 'y' would be too large for this computer"),
        ((2**42, 1), r"out of memory: output 'y' would have shape \(4398046511104, 1\)"),
    ],
)
def test_sizes_that_no_memory_holds(sizes: tuple[int, int], message: str) -> None:
    model = braid.compile(onnx.parser.parse_model(HEAD + MODELS["ConstantOfShape"][0]))
    with pytest.raises(BraidError, match=message):
        model(numbers(*sizes))
    assert model(numbers(2, 1)).shape == (2, 1)


EXPAND = "(float[1] x, {}) => (float[] y) {{ i = Cast <to = 7> (k) y = Expand (x, i) }}"


@pytest.mark.parametrize(
    ("options", "shape"),
    [({"dims": {"N": 2}}, "[2, k.value]"), ({"constants": {"k": [4]}}, "[N, 4]")],
)
def test_what_is_fixed(proto: onnx.ModelProto, options: Any, shape: str) -> None:
    model = braid.compile(proto, **options)
    assert shape in repr(model)
    arrays = [floats(2, 6), numbers(4)][: len(model.inputs)]
    assert model(*arrays).shape == (2, 4)


def test_values_are_not_sizes_where_none_is_needed() -> None:
    """Check that a number that only computes may be negative."""
    text = "(float[N] x, int64[1] k) => (float[] y) { f = Cast <to = 1> (k)  y = Mul (x, f) }"
    model = braid.compile(onnx.parser.parse_model(HEAD + text))
    assert model(floats(3), numbers(-2)).shape == (3,) and not model.inputs[1].values


@pytest.mark.parametrize(
    ("input", "message"),
    [
        ("int64[17] k", "is computed while the model runs"),
        ("int64[M] k", "is computed while the model runs"),
        ("int64[1,1] k", r"input 1 has shape \[1, 1\], expected a vector"),
    ],
)
def test_inputs_that_tell_no_sizes(input: str, message: str) -> None:
    with pytest.raises(BraidError, match=message):
        import_onnx(onnx.parser.parse_model(HEAD + EXPAND.format(input)), keep_open=True)


@pytest.mark.parametrize("dtype", ["float", "int8"])
def test_inputs_that_sizes_are_computed_from(dtype: str) -> None:
    model = braid.compile(onnx.parser.parse_model(HEAD + EXPAND.format(f"{dtype}[1] k")))
    assert not model.inputs[1].values and repr(model).endswith("(y: float32[i])>")
    for count in (0, 1, 7):
        k = np.array([count], {"float": np.float32}.get(dtype, dtype))
        assert model(floats(1), k).shape == (count,)
    with pytest.raises(BraidError, match="value 'i': element 0 is -3, expected a size"):
        model(floats(1), np.array([-3], {"float": np.float32}.get(dtype, dtype)))


def test_a_dim_of_the_same_name() -> None:
    text = """(float[k_value, M] x, int64 k) => (float[] y) <int64[1] a = {0}, int64[1] d = {0}> {
      e = Unsqueeze (k, a)  y, i = TopK <axis = 0> (x, e) }"""
    proto = onnx.parser.parse_model(HEAD + text)
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "k.value"
    model = braid.compile(proto)
    assert model.inputs[1].values == ("k.value_",)
    assert model(floats(4, 2), one(3)).shape == (3, 2)


def test_commands(
    proto: onnx.ModelProto,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(proto, "m.onnx")
    at = ["--at", "N=2,k.value=3"]
    assert main(["run", "m.onnx", "--random", *at]) == 0
    assert "[2, 3]" in capsys.readouterr().out
    for command in ("inspect", "verify", "bench"):
        runs = ["--runs", "1"] if command == "bench" else []
        assert main([command, "m.onnx", *runs]) == 0
    assert main(["verify", "m.onnx", *at]) == 0
    assert "all 1 ops agree" in capsys.readouterr().out
    assert main(["run", "m.onnx", "--random", "--at", "j.value=3"]) == 1
    assert "names no open dim" in capsys.readouterr().err


@pytest.mark.parametrize(
    "sizes",
    ['#braid.sizes<["k", "l"]>', '#braid.sizes<["2 * k"]>', '#braid.sizes<["4"]>', '"k"', "[]"],
)
def test_wrong_attributes(sizes: str) -> None:
    argument = f"%k: tensor<1xi64> {{braid.value_sizes = {sizes}}}"
    text = f"func.func @main({argument}) -> tensor<1xi64> {{ return %k : tensor<1xi64> }}"
    for read in (braid.compile, braid.interpret):
        with pytest.raises(
            BraidError, match=r"expected (a symbol for each element|sizes, such as)"
        ):
            read(text.encode())


def test_one_size_told_twice() -> None:
    """Check that a run compares the sizes of shapes and of elements, since both are read."""
    text = """
    func.func @main(%x: tensor<?xf32, #braid.sizes<["n"]>> {braid.name = "x"},
        %k: tensor<2xi64> {braid.name = "k", braid.value_sizes = #braid.sizes<["n", "n"]>})
        -> tensor<?xf32, #braid.sizes<["n"]>> {
      %y = braid.neg %x : (tensor<?xf32, #braid.sizes<["n"]>>)
          -> tensor<?xf32, #braid.sizes<["n"]>>
      return %y : tensor<?xf32, #braid.sizes<["n"]>>
    }"""
    for model in (braid.compile(text.encode()), braid.interpret(text.encode())):
        assert model(floats(3), numbers(3, 3)).shape == (3,)
        for wrong in ((1000, 1000), (3, 4), (2, 3)):
            with pytest.raises(BraidError, match=r"dim 'n' is .* in input 'k', and .* in an"):
                model(floats(3), numbers(*wrong))
