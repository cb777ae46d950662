"""Models and options of unusual kinds: each is handled or refused with a message."""

import math
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import braid
from braid.driver.compile_source import emit_model
from braid.tools.cli import main

TEXT = b"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = braid.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""
X = np.arange(4, dtype=np.float32)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path / "cache"))


def proto(size: int | str = 4) -> onnx.ModelProto:
    big = np.arange(4096, dtype=np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Neg", ["x"], ["n"]),
            helper.make_node("ReduceSum", ["big"], ["s"], keepdims=0),
            helper.make_node("Add", ["n", "s"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(big, "big")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_an_onnx_model_in_bytes(kind) -> None:
    data = kind(proto().SerializeToString())
    expected = -X + np.arange(4096, dtype=np.float32).sum()
    np.testing.assert_allclose(braid.compile(data, jobs=1)(X), expected)
    np.testing.assert_allclose(braid.interpret(data)(X), expected)


def test_names_of_files_in_capitals(tmp_path: Path) -> None:
    (tmp_path / "M.ONNX").write_bytes(proto().SerializeToString())
    (tmp_path / "M.MLIR").write_bytes(TEXT)
    assert braid.interpret(tmp_path / "M.ONNX")(X).shape == (4,)
    model = braid.compile(str(tmp_path / "M.MLIR"), jobs=1)
    model.save(tmp_path / "M.BRAID")
    out = tmp_path / "out"
    assert main(["run", str(tmp_path / "M.BRAID"), "--random", "--output-dir", str(out)]) == 0


def test_open_dims_of_a_model_in_bytes() -> None:
    data = proto("n").SerializeToString()
    model = braid.compile(data, shape_buckets={"n": [2, 4]}, jobs=1)
    assert model(X).shape == (4,) and model(X[:2]).shape == (2,)


def test_mlir_in_bytes() -> None:
    np.testing.assert_array_equal(braid.interpret(TEXT)(X), -X)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "a model cannot be read from a NoneType"),
        (7, "cannot be read from a int"),
        ([1], "cannot be read from a list"),
        ("", "is a directory"),
        (b"ML\xefR\x01", "bytecode"),
        (b"\x08\x01\xff\xff", "not an ONNX model"),
        (b"", "neither an ONNX model nor a module of MLIR: there are none"),
        (b"no model", "they begin with b'no model'"),
        (b"BRAIDART and more", "those of an artifact, which is compiled already"),
        (b"func.func @main() {\n", "expected an op, a label such as \\^bb0:, or the '}'"),
        ("no\0file.onnx", "cannot read"),
        ("x" * 5000 + ".onnx", "cannot read"),
        ("x" * 5000 + ".mlir", "cannot read"),
    ],
)
def test_no_models(source, message: str) -> None:
    with pytest.raises(braid.BraidError) as found:
        braid.compile(source)
    assert re.search(message, str(found.value)), found.value


@pytest.mark.parametrize(
    "passes",
    ["canonicalize,cse,default", ["canonicalize", "cse", "default"], ["canonicalize,cse,default"]],
)
def test_passes_as_text(passes) -> None:
    np.testing.assert_array_equal(braid.compile(TEXT, passes=passes, jobs=1)(X), -X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"passes": "no-such-pass"}, "no-such-pass"),
        ({"passes": 3}, "passes is 3"),
        ({"passes": [3]}, "passes holds 3"),
        ({"jobs": 0}, "jobs is 0, expected at least 1"),
        ({"jobs": -1}, "jobs is -1"),
        ({"jobs": "2"}, "jobs is '2'"),
        ({"jobs": 1.5}, "jobs is 1.5"),
        ({"inter_op_threads": 0}, "inter_op_threads is 0"),
        ({"measure_orders": math.nan}, "measure_orders is nan"),
        ({"measure_orders": -1.0}, "measure_orders is -1.0"),
        ({"memory_budget": math.nan}, "memory budget"),
        ({"memory_budget": -1}, "memory budget"),
        ({"memory_budget": ""}, "memory budget"),
        ({"memory_budget": "9" * 5000}, "memory budget"),
        ({"shapes": {"x": (-4,)}}, "the shape of 'x' is"),
        ({"shapes": {"x": 4}}, "the shape of 'x' is 4"),
        ({"shapes": {"x": "4"}}, "the shape of 'x' is '4'"),
        ({"shapes": [4]}, "shapes is"),
        ({"target": ""}, "there is no target ''"),
        ({"target": 5}, "target is 5, expected the name of a target or the path"),
        ({"target": Path("none.toml")}, "there is no target 'none.toml'"),
        ({"cpu": 5}, "cpu is 5, expected text"),
        ({"use_profile": 5}, "use_profile is 5, expected the path of a file"),
        ({"recompute": 5}, "recompute is 5, expected text"),
        ({"emulate": "no"}, "emulate is 'no', expected True or False"),
        ({"profile": 1}, "profile is 1, expected True or False"),
        ({"memory_budget": True}, "the memory budget is True, expected bytes"),
        ({"parameters": 5}, "parameters is 5, expected arrays by key"),
        ({"parameters": {"w": 5}}, "parameter 'w' is a int, expected a numpy array"),
        ({"use_profile": ""}, "cannot read profile"),
        ({"parameters": ""}, "cannot read the parameter file"),
    ],
)
def test_options(options, message: str) -> None:
    with pytest.raises(braid.BraidError) as found:
        braid.compile(proto(), **options)
    assert message in str(found.value)


@pytest.mark.parametrize(
    "options",
    [
        {"shapes": {"x": (np.int64(4),)}},
        {"shape_buckets": {"n": [np.int32(4), 2]}},
        {"shape_bounds": {"n": np.int64(4)}},
        {"shapes": {"x": [4]}, "inter_op_threads": np.int64(2)},
    ],
)
def test_numbers_of_numpy(options) -> None:
    for _ in range(2):
        model = braid.compile(proto("n"), jobs=1, **options)
        expected = -X + np.arange(4096, dtype=np.float32).sum()
        np.testing.assert_allclose(model(X), expected)


@pytest.mark.parametrize(
    "options",
    [{"shape_bounds": {"n": 4.0}}, {"shape_bounds": {"n": "4"}}, {"shape_buckets": {"n": 4}}],
)
def test_sizes_that_are_none(options) -> None:
    with pytest.raises(braid.BraidError, match=r"expected a (list of sizes|size) of at least 1"):
        braid.compile(proto("n"), jobs=1, **options)


def test_stages() -> None:
    with pytest.raises(braid.BraidError, match="there is no stage 'binary'"):
        emit_model(proto(), "binary")


@pytest.mark.parametrize("inputs", [None, 3, {"x": X}, "x", b"x"])
def test_inputs_that_are_no_sequence(inputs) -> None:
    model = braid.interpret(TEXT)
    np.testing.assert_array_equal(model.run([X.tolist()])[0], -X)
    with pytest.raises(braid.BraidError, match="expected a sequence in the model's order"):
        model.run(inputs)


def test_inputs_by_name_that_are_no_mapping() -> None:
    with pytest.raises(braid.BraidError, match="inputs by name are a mapping, got list"):
        braid.interpret(TEXT).run_named([X])  # type: ignore[arg-type]


@pytest.mark.parametrize("out", [5, True, 1.5])
def test_buffers_that_are_no_sequence(out) -> None:
    with pytest.raises(braid.BraidError, match="buffers for outputs are a "):
        braid.interpret(TEXT)(X, out=out)
