"""Ops of vision, text and linear algebra: one node at a time against ONNX's own evaluator."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from braid.analysis.interpreter import interpret
from braid.frontends.onnx import import_onnx
from braid.support.errors import BraidError, UnsupportedError
from test.unit.frontends.onnx.conftest import check_model, graph_of, model_of, onnx_runtime

Check = Callable[..., Any]

RANDOM = np.random.default_rng(3)


def normal(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_determinants(check: Check, rows: int) -> None:
    check("Det", normal(4, rows, rows), tolerance=1e-4)


def test_determinant_of_a_matrix_that_needs_other_pivots(check: Check) -> None:
    check("Det", np.array([[0, 2, 1], [3, 0, 0], [1, 1, 0]], np.float32))
    check("Det", np.array([[1, 2, 3], [2, 4, 6], [1, 1, 1]], np.float32))


def test_determinant_of_a_large_matrix_is_refused(check: Check) -> None:
    with pytest.raises(UnsupportedError, match="40 rows, expected at most 32"):
        check("Det", normal(40, 40))


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_ngrams(check_session: Check, mode: str) -> None:
    check_session(
        "TfIdfVectorizer",
        RANDOM.integers(0, 4, (3, 12)),
        mode=mode,
        min_gram_length=1,
        max_gram_length=3,
        max_skip_count=2,
        ngram_counts=[0, 3, 7],
        ngram_indexes=[4, 0, 2, 3, 1, 5, 6],
        pool_int64s=[0, 2, 3, 1, 2, 3, 3, 0, 1, 2, 1, 1, 0],
        weights=[1.0, 2.0, 3.0, 0.5, 0.25, 4.0, 5.0],
        opset=9,
    )


@pytest.mark.parametrize("center_point_box", [0, 1])
def test_non_max_suppression(check: Check, center_point_box: int) -> None:
    inputs = {
        "boxes": RANDOM.random((2, 40, 4)).astype(np.float32),
        "scores": RANDOM.random((2, 3, 40)).astype(np.float32),
        "most": np.array([5]),
        "overlap": np.array([0.3], np.float32),
        "least": np.array([0.4], np.float32),
    }
    node = helper.make_node(
        "NonMaxSuppression", list(inputs), ["y"], center_point_box=center_point_box
    )
    model = model_of(graph_of([node], inputs, ["y"]), 11)
    imported = import_onnx(model, constants=inputs)
    (selected,) = interpret(imported.module, [])
    np.testing.assert_array_equal(selected, onnx_runtime(model, inputs)[0])
    assert len(selected) > 6
    with pytest.raises(UnsupportedError, match=r"'boxes'\) is computed while the model runs"):
        import_onnx(model)


def test_optional_values_that_are_there_or_not(check: Check) -> None:
    check("OptionalHasElement", normal(2), opset=18)
    check("OptionalGetElement", normal(2), opset=18)


@pytest.mark.parametrize("storage_order", [0, 1])
def test_indices_of_maxima(check_session: Check, storage_order: int) -> None:
    check_session(
        "MaxPool",
        normal(2, 3, 9, 8),
        outputs=2,
        kernel_shape=[3, 2],
        strides=[2, 1],
        pads=[1, 0, 2, 1],
        dilations=[1, 2],
        storage_order=storage_order,
    )


def test_maxima_go_back_where_they_stood(check: Check) -> None:
    indices = 16 * np.arange(6).reshape(2, 3, 1, 1) + np.array([[0, 3], [9, 14]])
    check("MaxUnpool", normal(2, 3, 2, 2), indices, kernel_shape=[2, 2], strides=[2, 2])


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("aligned", ["half_pixel", "output_half_pixel"])
def test_regions(check_session: Check, mode: str, aligned: str) -> None:
    regions = np.array([[1, 1, 6, 5], [-3, 2, 4, 9], [3, 3, 3.2, 3.2]], np.float32)
    check_session(
        "RoiAlign",
        normal(2, 3, 8, 7),
        regions,
        np.array([0, 1, 1]),
        mode=mode,
        coordinate_transformation_mode=aligned,
        output_height=3,
        output_width=2,
        sampling_ratio=2,
        spatial_scale=0.9,
    )


def test_regions_need_a_fixed_number_of_samples(check: Check) -> None:
    with pytest.raises(UnsupportedError, match="sampling_ratio is 0"):
        check("RoiAlign", normal(1, 1, 4, 4), normal(1, 4), np.array([0]))


@pytest.mark.parametrize(("regions", "batches"), [((3, 4), (1, 3)), ((3, 4), (2,)), ((3, 5), (3,))])
def test_regions_of_other_shapes(
    check: Check, regions: tuple[int, ...], batches: tuple[int, ...]
) -> None:
    entries = np.zeros(batches, np.int64)
    with pytest.raises(BraidError, match=r"expected \[R, 4\] and \[R\]"):
        check("RoiAlign", normal(2, 3, 8, 7), normal(*regions), entries, sampling_ratio=2)


def test_deformable_convolution(check: Check) -> None:
    check(
        "DeformConv",
        normal(2, 4, 6, 5),
        normal(6, 2, 3, 2),
        normal(2, 2 * 3 * 2 * 2, 3, 4),
        normal(6),
        normal(2, 2 * 3 * 2, 3, 4),
        group=2,
        offset_group=2,
        strides=[2, 1],
        pads=[1, 0, 1, 1],
        dilations=[1, 2],
        opset=19,
        tolerance=1e-4,
    )


@pytest.mark.parametrize("onesided", [0, 1])
def test_short_time_fourier(check: Check, onesided: int) -> None:
    check(
        "STFT",
        normal(2, 50, 1),
        [np.array(7)],
        np.hanning(16).astype(np.float32),
        [np.array(16)],
        onesided=onesided,
        tolerance=1e-4,
    )


def test_mel_weights(check: Check) -> None:
    numbers = [np.array(n, np.int32) for n in (8, 64, 8192)]
    edges = [np.array(n, np.float32) for n in (20.0, 4096.0)]
    check("MelWeightMatrix", *([n] for n in (*numbers, *edges)))


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_updates_of_a_cache(check: Check, mode: str) -> None:
    starts = np.array([1, 3 if mode == "circular" else 2])
    check("TensorScatter", normal(2, 3, 5, 4), normal(2, 3, 3, 4), starts, mode=mode, opset=24)


def test_normalization_by_the_batch_itself(check: Check) -> None:
    vectors = [abs(normal(3)) for _ in range(4)]
    check("BatchNormalization", normal(2, 3, 4), *vectors, training_mode=1, outputs=3)


@pytest.mark.parametrize(
    ("op_type", "memories", "attributes"),
    [
        ("Adagrad", 1, {"decay_factor": 0.1, "norm_coefficient": 0.01}),
        ("Adam", 2, {"alpha": 0.9, "norm_coefficient_post": 0.1}),
        (
            "Momentum",
            1,
            {"alpha": 0.9, "beta": 0.5, "mode": "nesterov", "norm_coefficient": 0.1},
        ),
    ],
)
def test_steps_of_optimizers(op_type: str, memories: int, attributes: dict[str, Any]) -> None:
    kinds = 2 + memories
    inputs: dict[str, Any] = {"rate": np.array(0.1, np.float32), "step": np.array(3)}
    for kind in range(kinds):
        inputs |= {f"a{kind}": abs(normal(4)), f"b{kind}": abs(normal(2, 3))}
    names = ["rate", "step", *(f"{tensor}{kind}" for kind in range(kinds) for tensor in "ab")]
    outputs = [f"y{i}" for i in range(2 * (1 + memories))]
    domain = "ai.onnx.preview.training"
    node = helper.make_node(op_type, names, outputs, domain=domain, **attributes)
    model = model_of(graph_of([node], inputs, outputs))
    model.opset_import.append(helper.make_opsetid(domain, 1))
    check_model(model, inputs)


ML = "ai.onnx.ml"


def bytes_of(*values: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.uint8))


def trees(**changed: Any) -> onnx.ModelProto:
    """Return a model of two trees with four nodes and six leaves, some of whose attributes are
    changed."""
    attributes = {
        "n_targets": 2,
        "aggregate_function": 1,
        "tree_roots": [0, 3],
        "nodes_modes": numpy_helper.from_array(np.array([0, 3, 6, 1], np.uint8)),
        "nodes_featureids": [0, 1, 2, 1],
        "nodes_splits": numpy_helper.from_array(np.array([0.1, -0.2, 0, 0.3], np.float32)),
        "nodes_truenodeids": [1, 0, 2, 4],
        "nodes_trueleafs": [0, 1, 1, 1],
        "nodes_falsenodeids": [2, 1, 3, 5],
        "nodes_falseleafs": [0, 1, 1, 1],
        "membership_values": numpy_helper.from_array(np.array([1, 2, np.nan], np.float32)),
        "leaf_targetids": [0, 1, 0, 1, 1, 0],
        "leaf_weights": numpy_helper.from_array(np.arange(1, 7).astype(np.float32)),
    }
    node = helper.make_node("TreeEnsemble", ["x"], ["y"], domain=ML, **(attributes | changed))
    model = model_of(graph_of([node], {"x": normal(20, 3)}, ["y"]))
    model.opset_import.append(helper.make_opsetid(ML, 5))
    return model


def test_trees_against_onnx_runtime() -> None:
    inputs = {"x": normal(20, 3)}
    inputs["x"][:, 2] = RANDOM.integers(0, 4, 20)
    check_model(trees(), inputs)
    check_model(trees(nodes_missing_value_tracks_true=[1, 0, 0, 1]), inputs)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"nodes_missing_value_tracks_true": [1]}, "has 1 elements, expected 4"),
        ({"nodes_missing_value_tracks_true": [1, 0, 0, 2]}, "has 2, expected a number from 0"),
        ({"nodes_featureids": [0, 1, 3, 1]}, "nodes_featureids has 3, expected .* up to 2"),
        ({"nodes_truenodeids": [1, 0, 2, 6]}, "nodes_truenodeids has 6"),
        ({"nodes_falsenodeids": [4, 1, 3, 5]}, "has 4 of 4 nodes at 0"),
        ({"nodes_trueleafs": [0, 1, 1]}, "has 3 elements, expected 4"),
        ({"nodes_modes": bytes_of(0, 3, 7, 1)}, "nodes_modes has 7"),
        ({"nodes_modes": bytes_of(0, 3, 6)}, r"nodes_modes has shape \[3\]"),
        ({"nodes_hitrates": bytes_of(0, 3, 6)}, r"nodes_hitrates has shape \[3\]"),
        ({"tree_roots": [0, 4]}, "tree_roots has 4"),
        ({"leaf_targetids": [0, 1, 0, 1, 2, 0]}, "leaf_targetids has 2"),
        ({"leaf_targetids": [0, 1, 0, 1, 1]}, "nodes_falsenodeids has 5"),
        ({"n_targets": -1}, "leaf_targetids"),
        ({"aggregate_function": 4}, "aggregate_function is 4"),
    ],
)
def test_trees_that_contradict_themselves(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(BraidError, match=reason):
        import_onnx(trees(**changed))


def test_bits_of_numbers(check: Check) -> None:
    check("BitCast", normal(3, 2), to=TensorProto.INT32, opset=26)
    with pytest.raises(BraidError, match="bitcast of f32 to i8"):
        check("BitCast", normal(3), to=TensorProto.INT8, opset=26)


def test_loops_whose_shapes_depend_on_the_iteration_are_unrolled(check_graph: Check) -> None:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["on"]),
            helper.make_node("Unsqueeze", ["number", "zero"], ["from"]),
            helper.make_node("Add", ["from", "one"], ["to"]),
            helper.make_node("Slice", ["table", "from", "to"], ["row"]),
            helper.make_node("Concat", ["sum", "row"], ["longer"], axis=0),
            helper.make_node("Mul", ["row", "row"], ["square"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("number", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("sum", TensorProto.FLOAT, None),
        ],
        [helper.make_empty_tensor_value_info(name) for name in ("on", "longer", "square")],
    )
    node = helper.make_node("Loop", ["count", "true", "start"], ["all", "squares"], body=body)
    constants = {
        "count": np.array(3),
        "true": np.array(True),
        "zero": np.array([0]),
        "one": np.array([1]),
    }
    inputs = {"table": normal(5), "start": normal(1)}
    check_graph([node], inputs, ["all", "squares"], constants)


@pytest.mark.parametrize("axis", [0, 1])
def test_old_opsets_repeat_operands_by_attribute(axis: int) -> None:
    x, y = normal(2, 3, 4), normal(*(2, 3, 4)[axis : axis + 2])
    node = helper.make_node("Sub", ["x", "y"], ["z"], broadcast=1, axis=axis)
    imported = import_onnx(model_of(graph_of([node], {"x": x, "y": y}, ["z"]), 6))
    (result,) = interpret(imported.module, [x, y])
    np.testing.assert_array_equal(result, x - y.reshape(*y.shape, *[1] * (1 - axis)))


@pytest.mark.parametrize(
    ("op", "given"),
    [
        ("DFT", {"axis": np.zeros(0, np.int64)}),
        ("DFT", {"length": np.array([4, 5])}),
        ("STFT", {"step": np.zeros(0, np.int64)}),
        ("STFT", {"step": np.array(0)}),
        ("Trilu", {"k": np.zeros(0, np.int64)}),
    ],
)
def test_one_number_is_expected(op: str, given: dict[str, Any]) -> None:
    """A number that is there without an element is no default."""
    places = {"DFT": ["x", "length", "axis"], "STFT": ["x", "step"], "Trilu": ["x", "k"]}[op]
    names = [name if name in ("x", *given) else "" for name in places]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"])],
        "graph",
        [info("x", TensorProto.FLOAT, [1, 8, 1])],
        [info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in given.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    with pytest.raises(BraidError, match="expected"):
        import_onnx(model)
