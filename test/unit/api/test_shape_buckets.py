"""One model for several sizes of its open dims."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import braid
from braid.runtime.artifact import read_artifact
from braid.runtime.manifest import DimSpec
from braid.support.errors import BraidError

FLOAT = TensorProto.FLOAT


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, list[int | str]],
    output: list[int | str],
    weights: dict[str, np.ndarray] | None = None,
) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "open",
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info("y", FLOAT, output)],
        [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.fixture(scope="module")
def attention() -> ModelProto:
    """Attention over `sequence`, and a layer whose rows are those of `batch` and `sequence`."""
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.standard_normal((8, 8)).astype(np.float32),
        "rows": np.array([-1, 8], np.int64),
    }
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Reshape", ["x", "rows"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["projected"]),
        helper.make_node("Reshape", ["projected", "shape"], ["q"]),
        helper.make_node("Transpose", ["q"], ["k"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "k"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "q"], ["y"]),
    ]
    shape: list[int | str] = ["batch", "sequence", 8]
    return model(nodes, {"x": shape}, shape, weights)


@pytest.fixture(scope="module")
def compiled(attention: ModelProto) -> braid.Model:
    return braid.compile(
        attention, shape_buckets={"batch": [2, 4], "sequence": [3, 5]}, jobs=1, profile=True
    )


def sample(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def check(compiled: braid.Model, reference: ModelProto, x: np.ndarray) -> None:
    (expected,) = ReferenceEvaluator(reference).run(None, {"x": x})
    y = compiled(x)
    assert isinstance(y, np.ndarray) and y.shape == expected.shape
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", [1, 2, 3, 4])
@pytest.mark.parametrize("sequence", [3, 5])
def test_sizes_of_the_batch_are_padded(
    compiled: braid.Model, attention: ModelProto, batch: int, sequence: int
) -> None:
    check(compiled, attention, sample(batch, sequence, 8))


def test_a_dim_that_is_mixed_is_not_padded(compiled: braid.Model) -> None:
    with pytest.raises(BraidError, match="no variant for batch=2,sequence=4; it has batch=2,seq"):
        compiled(sample(2, 4, 8))


def test_inputs_say_their_dims(compiled: braid.Model) -> None:
    (x,) = compiled.inputs
    assert (x.shape, x.bound, x.dims) == ((-1, -1, 8), (4, 5, 8), ("batch", "sequence", ""))
    assert repr(compiled).startswith("<braid.Model (x: float32[batch<=4, sequence<=5, 8])")


def test_buffers_have_the_shape_of_the_output(compiled: braid.Model) -> None:
    buffer = np.empty((3, 5, 8), np.float32)
    assert compiled(sample(3, 5, 8), out=buffer) is buffer
    np.testing.assert_array_equal(buffer, compiled(sample(3, 5, 8)))
    with pytest.raises(BraidError, match=r"shape \(3, 5, 8\), expected \(2, 5, 8\)"):
        compiled(sample(2, 5, 8), out=buffer)


def test_weights_are_stored_once(compiled: braid.Model, tmp_path: Path) -> None:
    compiled.save(tmp_path / "m.braid")
    loaded = braid.load(tmp_path / "m.braid")
    np.testing.assert_array_equal(loaded(sample(1, 3, 8)), compiled(sample(1, 3, 8)))
    assert loaded.inputs == compiled.inputs
    manifest = read_artifact(tmp_path / "m.braid").manifest
    (weight,) = (w for w in manifest.weights if w.nbytes >= 256)
    assert weight.shape[-2] == 8  # packed or not, by the layout that was chosen
    assert manifest.dims[0] == DimSpec("batch", (2, 4), 1)


def test_variants_share_counters(attention: ModelProto) -> None:
    profiled = braid.compile(
        attention, shape_buckets={"batch": [1, 2], "sequence": [3]}, profile=True
    )
    for batch in (1, 2, 2):
        profiled(sample(batch, 3, 8))
    assert {entry.count for entry in profiled.profile().values()} == {3}


def test_a_bound_is_enough_where_padding_is_proven() -> None:
    relu = model([helper.make_node("Relu", ["x"], ["y"])], {"x": ["n", 3]}, ["n", 3])
    compiled = braid.compile(relu, shape_bounds={"n": 6}, jobs=1)
    for size in range(1, 7):
        check(compiled, relu, sample(size, 3))


ARITHMETIC = {
    "the size itself": [
        helper.make_node("Shape", ["x"], ["n"], start=0, end=1),
        helper.make_node("Cast", ["n"], ["f"], to=FLOAT),
        helper.make_node("Mul", ["x", "f"], ["y"]),
    ],
    "a sum": [
        helper.make_node("ReduceMean", ["x", "zero"], ["m"]),
        helper.make_node("Sub", ["x", "m"], ["y"]),
    ],
    "a reversal": [
        helper.make_node("Slice", ["x", "last", "first", "zero", "last"], ["y"]),
    ],
    "a transpose": [
        helper.make_node("Transpose", ["x"], ["t"]),
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Reshape", ["t", "shape"], ["y"]),
    ],
}


@pytest.mark.parametrize("kind", ARITHMETIC)
def test_what_depends_on_the_size_is_not_padded(kind: str) -> None:
    constants = {
        "zero": np.array([0], np.int64),
        "last": np.array([-1], np.int64),
        "first": np.array([np.iinfo(np.int64).min], np.int64),
    }
    proto = model(ARITHMETIC[kind], {"x": ["n", 3]}, ["n", 3], constants)
    compiled = braid.compile(proto, shape_buckets={"n": [2, 4]}, jobs=1)
    check(compiled, proto, sample(2, 3))
    check(compiled, proto, sample(4, 3))
    with pytest.raises(BraidError, match="no variant for n=3"):
        compiled(sample(3, 3))
    with pytest.raises(BraidError, match="'n' cannot be padded, so a bound for it is not enough"):
        braid.compile(proto, shape_bounds={"n": 4}, jobs=1)


def test_inputs_must_agree() -> None:
    inputs: dict[str, list[int | str]] = {"a": ["n", 2], "b": ["n", 2]}
    add = model([helper.make_node("Add", ["a", "b"], ["y"])], inputs, ["n", 2])
    compiled = braid.compile(add, shape_buckets={"n": [1, 2]}, jobs=1)
    with pytest.raises(BraidError, match="dim 'n' is 2 in input 'b', and 1 in an input before it"):
        compiled(sample(1, 2), sample(2, 2))


def test_an_output_that_no_dim_measures_has_no_bound() -> None:
    """It has four rows for each row of the input, so no open dim gives the rows to cut."""
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    proto = model(nodes, {"x": ["n", 4, 5]}, ["m", 5], {"shape": np.array([-1, 5], np.int64)})
    with pytest.raises(BraidError, match=r"'n' cannot be padded.* how much of output 'y' is left"):
        braid.compile(proto, shape_bounds={"n": 4}, jobs=1)
    compiled = braid.compile(proto, shape_buckets={"n": [1, 3]}, jobs=1)
    check(compiled, proto, sample(3, 4, 5))


@pytest.mark.parametrize(
    ("buckets", "bounds", "message"),
    [
        ({"rows": [1]}, {}, "the model has no open dim 'rows'"),
        ({"batch": [1]}, {}, "dims of inputs are left open: 'sequence'"),
        ({"batch": [1], "sequence": []}, {}, "sizes of dim 'sequence' are .*at least 1"),
        ({"batch": [0], "sequence": [1]}, {}, "sizes of dim 'batch' are .*at least 1"),
        ({"batch": [1], "sequence": [1]}, {"batch": 2}, "both buckets and a bound"),
        ({"batch": range(1, 9), "sequence": range(1, 10)}, {}, "72 combinations"),
        ({"batch": [1]}, {"sequence": 4}, "'sequence' cannot be padded.*\\[1, 2, 4\\]"),
    ],
)
def test_wrong_sizes(
    attention: ModelProto, buckets: dict[str, list[int]], bounds: dict[str, int], message: str
) -> None:
    with pytest.raises(BraidError, match=f"(?s){message}"):
        braid.compile(attention, shape_buckets=buckets, shape_bounds=bounds, jobs=1)


def test_mlir_has_no_buckets(tmp_path: Path) -> None:
    with pytest.raises(BraidError, match="only be given for ONNX models"):
        braid.compile(tmp_path / "m.mlir", shape_buckets={"n": [1]})


@pytest.mark.parametrize("sizes", [{"shape_buckets": {"N": [4, 8]}}, {"shape_bounds": {"N": 8}}])
def test_data_that_decide_sizes_leave_no_variants(sizes: dict[str, Any]) -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]>
      g (float[N] x) => (int64[1,M] y) { y = NonZero (x) }"""
    source = onnx.parser.parse_model(text)
    with pytest.raises(BraidError, match="data decide sizes of the model") as caught:
        braid.compile(source, **sizes)
    assert "leave out shape_buckets and shape_bounds" in (caught.value.hint or "")
    x = np.array([0, 2, 0, 3, 1], np.float32)
    np.testing.assert_array_equal(braid.compile(source)(x), [[1, 3, 4]])  # as the hint says
