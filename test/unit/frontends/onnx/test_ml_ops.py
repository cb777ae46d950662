"""Ops of `ai.onnx.ml` on random attributes, types and shapes against ONNX Runtime."""

import re
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper
from onnxruntime import InferenceSession, SessionOptions

import braid
from braid.analysis.interpreter import interpret
from braid.frontends.onnx import import_onnx
from braid.passes.sizes.bind_sizes import bind_sizes
from braid.support.errors import BraidError, UnsupportedError
from test.unit.frontends.onnx.ml_cases import CASES, Case
from test.unit.frontends.onnx.random_trees import has_members, walked

# The approximation of probit is a logarithm of what is near 1.
PROBIT_TOLERANCE = 2e-2


def session(case: Case, *, open_rows: bool = False) -> InferenceSession:
    options = SessionOptions()
    options.intra_op_num_threads = 1  # with more, the order of sums is another
    model = case.model(open_rows=open_rows).SerializeToString()
    return InferenceSession(model, options)


def assert_equal(case: Case, results: Any, expected: Any) -> None:
    is_rough = case.attributes.get("post_transform") in ("PROBIT", 4)
    tolerance = PROBIT_TOLERANCE if is_rough else 1e-4
    for result, wanted in zip(results, expected, strict=True):
        assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance / 10)


def check(name: str, seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    for number in range(count):
        case = CASES[name](random)
        inputs = dict(case.inputs)
        rows = {x.shape[0] for x in inputs.values() if x.ndim > 1}
        is_open = number % 2 == 1 and len(rows) == 1 and all(x.ndim > 1 for x in inputs.values())
        imported = import_onnx(case.model(open_rows=is_open), keep_open=is_open)
        imported.module.verify()
        if is_open:
            bind_sizes(imported.module, {"n": rows.pop()})
        results = interpret(imported.module, inputs, parameters=imported.parameters)
        if has_members(case.attributes):
            if case.attributes["post_transform"] == 0:
                assert_equal(case, results, [walked(case.attributes, inputs["x"])])
            continue
        assert_equal(case, results, session(case).run(None, inputs))


@pytest.mark.parametrize("name", CASES)
def test_random_nodes(name: str) -> None:
    check(name, seed=0, count=24)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_many_random_nodes(name: str) -> None:
    check(name, seed=1, count=300)


COMPILED = ["tree_regressor", "tree_classifier", "tree_ensemble", "svm_classifier", "label_encoder"]


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_nodes_take_any_number_of_rows(name: str) -> None:
    random = np.random.default_rng(5)
    case = next(
        c
        for c in iter(lambda: CASES[name](random), None)
        if c.inputs["x"].ndim == 2 and not has_members(c.attributes)
    )
    model, oracle = braid.compile(case.model(open_rows=True)), session(case, open_rows=True)
    for rows in (1, 7, 70):
        x = case.inputs["x"]
        x = x[random.integers(0, len(x), rows)]
        results = model.run([x])
        assert_equal(case, results, oracle.run(None, {"x": x}))


def trees(**changed: Any) -> Case:
    """Two trees, with three nodes and with one, with some attributes changed."""
    attributes: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0, 1],
        "nodes_nodeids": [0, 1, 2, 0],
        "nodes_featureids": [1, 0, 0, 0],
        "nodes_values": [0.5, 0.0, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0, 0],
        "nodes_falsenodeids": [2, 0, 0, 0],
        "target_treeids": [0, 0, 1],
        "target_nodeids": [1, 2, 0],
        "target_ids": [0, 1, 0],
        "target_weights": [1.0, 2.0, 3.0],
        "n_targets": 2,
    }
    x = np.array([[0, 0], [0, 1]], np.float32)
    return Case("TreeEnsembleRegressor", {"x": x}, attributes | changed, version=3)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"nodes_treeids": [0, 0, 0]}, "nodes_treeids has 3 elements, expected 4"),
        ({"nodes_values": [0.5]}, "nodes_values has 1 elements, expected 4"),
        ({"nodes_modes": ["LEAF"] * 3}, "nodes_modes has 3 elements, expected 4"),
        ({"nodes_modes": ["BRANCH", "LEAF", "LEAF", "LEAF"]}, "nodes_modes has 'BRANCH'"),
        ({"nodes_featureids": [2, 0, 0, 0]}, "nodes_featureids has 2, .* up to 1"),
        ({"nodes_featureids": [-1, 0, 0, 0]}, "nodes_featureids has -1"),
        ({"nodes_truenodeids": [3, 0, 0, 0]}, "nodes_truenodeids has node 3 of tree 0 at 0"),
        ({"nodes_falsenodeids": [0, 0, 0, 0]}, "nodes of tree 0 have a cycle"),
        ({"nodes_nodeids": [0, 1, 1, 0]}, "node 1 of tree 0 is there twice"),
        ({"target_treeids": [0, 0, 2]}, "target_nodeids has node 0 of tree 2 at 2"),
        ({"target_ids": [0, 2, 0]}, "target_ids has 2, expected .* up to 1"),
        ({"target_weights": [1.0]}, "target_weights has 1 elements, expected 3"),
        ({"base_values": [1.0]}, "base_values has 1 elements, expected none or 2"),
        ({"aggregate_function": "MEAN"}, "aggregate_function is 'MEAN'"),
        ({"post_transform": "TANH"}, "post_transform is 'TANH'"),
        ({"nodes_missing_value_tracks_true": [1]}, "tracks_true has 1 elements, expected 4"),
        (
            {"nodes_values_as_tensor": numpy_helper.from_array(np.zeros(4, np.float32))},
            "both nodes_values and nodes_values_as_tensor",
        ),
    ],
)
def test_lists_of_nodes_that_contradict_themselves(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(BraidError, match=rf"node 'node' \(TreeEnsembleRegressor\): .*({reason})"):
        import_onnx(trees(**changed).model())


def test_a_tree_with_a_cycle_below_its_root() -> None:
    changed = {
        "nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 1, 0, 0],
        "nodes_falsenodeids": [2, 2, 0, 0],
        "target_nodeids": [2, 2, 0],
    }
    with pytest.raises(BraidError, match=r"node 'node'.*have a cycle"):
        import_onnx(trees(**changed).model())


@pytest.mark.parametrize(
    ("op", "attributes", "reason"),
    [
        ("LinearClassifier", {"coefficients": [1.0], "classlabels_ints": [0, 1]}, "has 1 elements"),
        ("LinearClassifier", {"coefficients": [1.0] * 4}, "neither classlabels_strings nor"),
        ("LinearRegressor", {"coefficients": [1.0] * 3}, "has 3 elements, expected 1 · 2"),
        ("SVMRegressor", {"coefficients": [1.0] * 2}, "rho is empty"),
        ("SVMRegressor", {"coefficients": [1.0], "rho": [0.0]}, "expected 1 · 2"),
        (
            "SVMClassifier",
            {"vectors_per_class": [1], "classlabels_ints": [0, 1], "rho": [0.0]},
            "vectors_per_class has 1 elements, expected 2",
        ),
        ("Scaler", {"offset": [1.0, 2.0], "scale": [1.0]}, "offset has 2 elements, but scale 1"),
        ("Scaler", {"offset": [1.0] * 3, "scale": [1.0] * 3}, "has 3 elements, expected 1 or 2"),
        ("Imputer", {"imputed_value_int64s": [1]}, "expected imputed_value_floats alone"),
        ("FeatureVectorizer", {"inputdimensions": [2, 2]}, "has 2 elements, expected 1"),
        ("Normalizer", {"norm": "L3"}, "norm is 'L3'"),
        ("OneHotEncoder", {}, "one of cats_strings and cats_int64s"),
        ("ZipMap", {"classlabels_int64s": [1]}, "2 columns, expected one for each of 1 labels"),
    ],
)
def test_attributes_that_contradict_themselves(
    op: str, attributes: dict[str, Any], reason: str
) -> None:
    outputs = 2 if "Classifier" in op else 1
    case = Case(op, {"x": np.zeros((3, 2), np.float32)}, attributes, outputs=outputs)
    with pytest.raises(BraidError, match=rf"node 'node' \({op}\): .*{re.escape(reason)}"):
        import_onnx(case.model())


def test_a_category_that_is_unknown_ends_a_run() -> None:
    x = np.array([[1, 2], [5, 1]])
    attributes = {"cats_int64s": [1, 2, 5], "zeros": 0}
    model = braid.compile(Case("OneHotEncoder", {"x": x}, attributes).model(open_rows=True))
    np.testing.assert_array_equal(model(x).argmax(-1), [[0, 1], [2, 0]])
    with pytest.raises(BraidError, match=r"'node' \(OneHotEncoder\): its input has a category"):
        model(np.array([[1, 3]]))


def test_a_score_of_two_classes_has_no_probit() -> None:
    case = Case(
        "LinearClassifier",
        {"x": np.zeros((3, 2), np.float32)},
        {
            "coefficients": [1.0, 2.0],
            "intercepts": [0.0],
            "classlabels_ints": [4, 5],
            "post_transform": "PROBIT",
        },
        outputs=2,
    )
    with pytest.raises(UnsupportedError, match="PROBIT where one score is that of two classes"):
        import_onnx(case.model())
