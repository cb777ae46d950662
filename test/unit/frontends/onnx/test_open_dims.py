"""Models with open dims, imported once: bound to numbers they equal an import at these numbers."""

import itertools
from collections.abc import Sequence

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from xdsl.dialects.func import FuncOp

from benchmarks.conformance.cases import load_cases
from benchmarks.conformance.executors import by_interpreter, by_open_interpreter
from benchmarks.conformance.outcomes import Status, run_case
from braid.analysis.interpreter import interpret
from braid.frontends.onnx import import_onnx
from braid.passes.sizes.bind_sizes import bind_sizes
from braid.support.errors import BraidError

CASES = load_cases()
SAMPLE = sorted(CASES)[::12]
FLOAT = TensorProto.FLOAT
NUMBERS = np.random.default_rng(0)


def model_of(
    nodes: Sequence[tuple[str, str, str, dict[str, object]]],
    inputs: dict[str, Sequence[int | str]],
    constants: dict[str, object],
    output_type: int = FLOAT,
) -> ModelProto:
    """Return a model of nodes (op, inputs, outputs, attributes), whose last value is its output."""
    made = [helper.make_node(op, a.split(), b.split(), **kw) for op, a, b, kw in nodes]
    arrays = {name: np.asarray(value) for name, value in constants.items()}
    graph = helper.make_graph(
        made,
        "graph",
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(nodes[-1][2], output_type, None)],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def check(model: ModelProto, sizes: dict[str, int], *shapes: Sequence[int]) -> None:
    """Check the open module, bound to numbers, beside ONNX Runtime."""
    arrays = [NUMBERS.standard_normal(shape).astype(np.float32) for shape in shapes]
    names = [value.name for value in model.graph.input]
    session = onnxruntime.InferenceSession(model.SerializeToString())
    expected = session.run(None, dict(zip(names, arrays, strict=True)))[0]
    imported = import_onnx(model, keep_open=True)
    imported.module.verify()
    bind_sizes(imported.module, sizes)
    (result,) = interpret(imported.module, arrays, parameters=imported.parameters)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    assert result.dtype == np.asarray(expected).dtype


def heads() -> ModelProto:
    """Return a model that splits heads, adds positions from a table, and joins heads again."""
    return model_of(
        [
            ("Shape", "x", "shape", {}),
            ("Gather", "shape zero", "batch", {"axis": 0}),
            ("Gather", "shape one", "length", {"axis": 0}),
            ("Unsqueeze", "batch axis", "batch_1", {}),
            ("Unsqueeze", "length axis", "length_1", {}),
            ("Concat", "batch_1 length_1 heads width", "split", {"axis": 0}),
            ("Reshape", "x split", "by_head", {}),
            ("Transpose", "by_head", "outer", {"perm": [0, 2, 1, 3]}),
            ("Slice", "table begin length_1 axes", "positions", {}),
            ("Add", "outer positions", "placed", {}),
            ("Transpose", "placed", "inner", {"perm": [0, 2, 1, 3]}),
            ("Mul", "batch length", "rows", {}),
            ("Unsqueeze", "rows axis", "rows_1", {}),
            ("Concat", "rows_1 rest", "joined", {"axis": 0}),
            ("Reshape", "inner joined", "y", {}),
        ],
        {"x": ["batch", "length", 8]},
        {
            "zero": np.int64(0),
            "one": np.int64(1),
            "axis": [0],
            "heads": [2],
            "width": [4],
            "begin": [0],
            "axes": [2],
            "rest": [-1],
            "table": NUMBERS.standard_normal((1, 1, 16, 4)).astype(np.float32),
        },
    )


@pytest.mark.parametrize(("batch", "length"), [(1, 1), (2, 5), (3, 16)])
def test_shapes_that_are_computed_are_sizes(batch: int, length: int) -> None:
    check(heads(), {"batch": batch, "length": length}, (batch, length, 8))


def test_a_size_that_is_impossible_names_op_and_size() -> None:
    imported = import_onnx(heads(), keep_open=True)
    with pytest.raises(BraidError, match="impossible at batch = 1, length = 17"):
        bind_sizes(imported.module, {"batch": 1, "length": 17})


@pytest.mark.parametrize("rows", [1, 2, 7, 300])
def test_sizes_as_data(rows: int) -> None:
    """Check positions, a mean over an open dim, and a size in arithmetic on data."""
    model = model_of(
        [
            ("Shape", "x", "shape", {"end": 1}),
            ("Squeeze", "shape axis", "rows", {}),
            ("Range", "zero rows one", "positions", {}),
            ("Cast", "positions", "places", {"to": FLOAT}),
            ("Cast", "rows", "count", {"to": FLOAT}),
            ("Div", "places count", "share", {}),
            ("Unsqueeze", "share axis_1", "column", {}),
            ("ReduceMean", "x", "mean", {"axes": [0]}),
            ("Add", "x column", "moved", {}),
            ("Sub", "moved mean", "y", {}),
        ],
        {"x": ["rows", 3]},
        {"axis": [0], "axis_1": [1], "zero": np.int64(0), "one": np.int64(1)},
    )
    check(model, {"rows": rows}, (rows, 3))


@pytest.mark.parametrize("size", [2, 5, 8])
def test_sizes_through_floats(size: int) -> None:
    """Check a resize to an extent that is computed in floats, as exporters write it."""
    model = model_of(
        [
            ("Shape", "x", "shape", {}),
            ("Slice", "shape two four", "spatial", {}),
            ("Cast", "spatial", "floats", {"to": FLOAT}),
            ("Mul", "floats factor", "scaled", {}),
            ("Floor", "scaled", "whole", {}),
            ("Cast", "whole", "wanted", {"to": TensorProto.INT64}),
            ("Slice", "shape zero two", "outer", {}),
            ("Concat", "outer wanted", "target", {"axis": 0}),
            ("ConstantOfShape", "target", "y", {}),
        ],
        {"x": [1, 2, "height", "width"]},
        {"zero": [0], "two": [2], "four": [4], "factor": np.float32(1.5)},
    )
    check(model, {"height": size, "width": size + 1}, (1, 2, size, size + 1))


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_an_open_dim_is_padded_with_its_own_elements(mode: str) -> None:
    if mode == "wrap":
        pytest.skip("ONNX Runtime has it from opset 19")
    model = model_of(
        [("Pad", "x widths", "y", {"mode": mode})],
        {"x": [2, "length"]},
        {"widths": [0, 3, 0, 2]},
    )
    for length in (4, 5, 16):
        check(model, {"length": length}, (2, length))


@pytest.mark.parametrize(
    ("starts", "ends", "steps"),
    [
        ([0], [-1], [1]),
        ([-3], [2**63 - 1], [1]),
        ([1], [2**31 - 1], [2]),
        ([-1], [-(2**31)], [-1]),
        ([2], [5], [1]),
        ([-1], [0], [-2]),
    ],
)
def test_slices_of_an_open_dim(
    starts: Sequence[int], ends: Sequence[int], steps: Sequence[int]
) -> None:
    model = model_of(
        [("Slice", "x starts ends axes steps", "y", {})],
        {"x": [2, "length"]},
        {"starts": starts, "ends": ends, "axes": [1], "steps": steps},
    )
    for length in (1, 2, 3, 4, 7):
        check(model, {"length": length}, (2, length))


@pytest.mark.parametrize("step", [1, -1, 2])
@pytest.mark.parametrize("place", ["negated", "less_one", "less_columns"])
def test_slices_from_a_size_of_either_sign(place: str, step: int) -> None:
    """Check that a size which is negative only in some runs counts from the end in those."""
    model = model_of(
        [
            ("Shape", "z", "rows", {}),
            ("Neg", "rows", "negated", {}),
            ("Sub", "rows one", "less_one", {}),
            ("Shape", "x", "shape", {"start": 1}),
            ("Sub", "rows shape", "less_columns", {}),
            ("Slice", f"x {place} end axes step", "y", {}),
        ],
        {"x": [2, "length"], "z": ["rows"]},
        {"one": [1], "end": [2**63 - 1 if step > 0 else -(2**63)], "axes": [1], "step": [step]},
    )
    for length, rows in itertools.product((0, 1, 4, 7), (0, 1, 3, 4, 9)):
        check(model, {"length": length, "rows": rows}, (2, length), (rows,))


def test_squeezing_what_may_be_one_needs_its_size() -> None:
    model = model_of([("Squeeze", "x", "y", {})], {"x": ["batch", 1, 3]}, {})
    with pytest.raises(BraidError, match="dim 0 has the open size 'batch'"):
        import_onnx(model, keep_open=True)
    check(model_of([("Squeeze", "x", "y", {})], {"x": [2, 1, 3]}, {}), {}, (2, 1, 3))


def test_dims_of_one_name_have_one_size() -> None:
    model = model_of([("Add", "a b", "y", {})], {"a": ["n", 4], "b": ["n", 4]}, {})
    module = import_onnx(model, keep_open=True).module
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    assert str(function.function_type.outputs.data[0]).count('"n"') == 1
    assert "select" not in str(module)


def test_open_dims_are_an_error_unless_they_are_kept() -> None:
    with pytest.raises(BraidError, match="left open"):
        import_onnx(heads())


@pytest.mark.parametrize("name", SAMPLE)
def test_node_with_all_dims_open(name: str) -> None:
    """Check ONNX's own cases: what is imported with open dims gives the right results."""
    if run_case(CASES[name], by_interpreter).status != Status.PASSED:
        pytest.skip("not supported at fixed sizes")
    outcome = run_case(CASES[name], by_open_interpreter)
    assert outcome.status in (Status.PASSED, Status.UNSUPPORTED), outcome.reason
