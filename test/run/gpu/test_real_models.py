"""Models of the usual kinds, whole on an emulated GPU, beside ONNX Runtime."""

import numpy as np
import onnx
import onnxruntime
import pytest

import braid
from benchmarks.models.hand_written import make_loop_if, make_transformer_block
from benchmarks.models.light import make_light
from test.run.models.test_models import check

pytestmark = pytest.mark.slow


def small_squeezenet() -> onnx.ModelProto:
    """SqueezeNet on images of 64 by 64."""
    model = make_light("squeezenet")
    shape = model.graph.input[0].type.tensor_type.shape
    for dim, extent in zip(shape.dim, (1, 3, 64, 64), strict=True):
        dim.dim_value = extent
    del model.graph.value_info[:]
    return model


MODELS = {
    "squeezenet": small_squeezenet,
    "transformer_block": lambda: make_transformer_block(32, 64, 4, 128),
    "loop_if": make_loop_if,
}


@pytest.mark.parametrize("name", MODELS)
def test_whole_models(name: str) -> None:
    model = MODELS[name]()
    session = onnxruntime.InferenceSession(model.SerializeToString())
    compiled = braid.compile(model, target="gpu-emulated")
    rng = np.random.default_rng(0)
    inputs = {
        info.name: rng.standard_normal(info.shape).astype(np.float32)
        for info in session.get_inputs()
    }
    results = compiled.run_named(inputs)
    for info, expected in zip(session.get_outputs(), session.run(None, inputs), strict=True):
        check(np.asarray(results[info.name]), np.asarray(expected))
