"""Ops of vision, text and linear algebra: one node at a time against ONNX's own evaluator."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper

from braid.analysis.interpreter import interpret
from braid.errors import UnsupportedError
from braid.frontends.onnx import import_onnx
from test.unit.frontends.onnx.conftest import graph_of, model_of, onnx_runtime

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
