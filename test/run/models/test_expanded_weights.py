"""Transformed and converted weights are made at load, so that artifacts are as large as models."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import braid
from braid.passes.infrastructure.decision_checks import verifying_decisions
from braid.runtime.artifact import read_artifact

CHANNELS, SIZE = 64, 28
_MOST_CODE = 120_000
"""Bytes of an artifact besides its weights: kernels, and the runtime's data."""


def convolutions(dtype: type, batch: int | str) -> onnx.ModelProto:
    """Return two convolutions by 3 × 3, whose weights Winograd's algorithms take transformed."""
    random = np.random.default_rng(3)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    weights = [
        (random.standard_normal((CHANNELS, CHANNELS, 3, 3)) / 24).astype(dtype) for _ in "ab"
    ]
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w0"], ["a"], pads=[1] * 4),
            helper.make_node("Relu", ["a"], ["b"]),
            helper.make_node("Conv", ["b", "w1"], ["y"], pads=[1] * 4),
        ],
        "convolutions",
        [helper.make_tensor_value_info("x", element, [batch, CHANNELS, SIZE, SIZE])],
        [helper.make_tensor_value_info("y", element, [batch, CHANNELS, SIZE, SIZE])],
        [numpy_helper.from_array(weight, f"w{n}") for n, weight in enumerate(weights)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def expected(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return np.asarray(session.run(None, {"x": x})[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(
    ("batch", "options"),
    [(1, {}), ("n", {}), ("n", {"shape_buckets": {"n": (1, 2)}})],
    ids=["static", "open", "variants"],
)
def test_an_artifact_is_as_large_as_the_model(
    dtype: type, batch: int | str, options: dict[str, Any], tmp_path: Path
) -> None:
    model = convolutions(dtype, batch)
    with verifying_decisions():
        compiled = braid.compile(model, **options)
    path = tmp_path / "model.braid"
    compiled.save(path)
    weights = sum(len(own.raw_data) for own in model.graph.initializer)
    assert weights <= path.stat().st_size <= weights + _MOST_CODE
    assert read_artifact(path).manifest.expanded_bytes >= 1.7 * 2 * CHANNELS * CHANNELS * 9 * 4
    for report in compiled.memory:
        assert report.expanded_bytes >= 1.7 * 2 * CHANNELS * CHANNELS * 9 * 4
    x = np.random.default_rng(5).standard_normal((1, CHANNELS, SIZE, SIZE)).astype(dtype)
    for loaded in (compiled, braid.load(path)):
        tolerance = 1e-4 if dtype == np.float32 else 4e-3
        np.testing.assert_allclose(loaded(x), expected(model, x), rtol=tolerance, atol=tolerance)
