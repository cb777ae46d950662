"""Outputs of every op, and how far two runs are apart."""

import numpy as np
import onnx
import pytest

from braid.frontends.onnx import import_onnx
from braid.interpreted import interpret
from braid.layerwise import differences, expose_results, relative_error
from braid.signature import signature_of


def test_expose_results(affine: onnx.ModelProto, x: np.ndarray) -> None:
    imported = import_onnx(affine)
    order = expose_results(imported.module, {"xw", "sum", "y"})
    assert order == ("xw", "sum", "y", "total")
    names = [spec.name for spec in signature_of(imported.module)[1]]
    assert names == ["y", "total", "xw", "sum"]
    outputs = interpret(imported.module, parameters=imported.parameters).run_named({"x": x})
    np.testing.assert_array_equal(np.maximum(outputs["sum"], 0), outputs["y"])


def test_all_named_ops(affine: onnx.ModelProto) -> None:
    imported = import_onnx(affine)
    assert {"xw", "sum", "y", "total"} <= set(expose_results(imported.module))


@pytest.mark.parametrize(
    ("actual", "reference", "error"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 2.5], [1.0, -2.0], 4.5 / 2),
        ([np.inf, 1.0], [np.inf, 1.0], 0.0),
        ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([np.nan, 1.0], [2.0, 1.0], np.inf),
        ([1.0, 1.0], [np.inf, 1.0], np.inf),
        ([1e-9, 0.0], [0.0, 0.0], np.inf),
        ([1.0], [1.0, 1.0], np.inf),
        ([1, 2], [1, 2], 0.0),
        ([1, 2], [1, 3], np.inf),
        ([True], [False], np.inf),
    ],
)
def test_relative_error(actual: list[float], reference: list[float], error: float) -> None:
    assert relative_error(np.array(actual), np.array(reference)) == error


def test_differences_keep_the_order() -> None:
    a = {"p": np.ones(2), "q": np.zeros(2), "r": np.ones(1)}
    b = {"q": np.ones(2), "p": np.ones(2)}
    found = differences(["p", "q", "r"], a, b)
    assert [(d.name, d.error) for d in found] == [("p", 0.0), ("q", 1.0)]
