"""A convolutional model whose convolutions run on a simulated chip, and all else on the host."""

import numpy as np
from onnx import ModelProto
from xdsl.dialects.builtin import StringAttr

import braid
from braid.analysis.structure.clusters import is_placed
from braid.dialects.braid.attribute_names import DEVICE
from braid.driver.read_source import read_source
from braid.universe import make_context
from test.run.models.conftest import FLOAT, Writer, as_model
from test.run.models.test_models import random_inputs


def convolutional() -> ModelProto:
    """Two convolutions, with pooling between them and behind."""
    w = Writer()
    x = w.op("Relu", w.op("Conv", "x", w.weight(8, 3, 3, 3), pads=[1] * 4, strides=[2, 2]))
    x = w.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = w.op("Relu", w.op("Conv", x, w.weight(4, 8, 1, 1)))
    w.op("GlobalAveragePool", x, name="y")
    return as_model(w.graph([("x", FLOAT, [1, 3, 12, 12])], [("y", FLOAT, [1, 4, 1, 1])]))


def test_convolutions_on_the_chip() -> None:
    proto = convolutional()
    source = read_source(make_context(), proto, target="npu-small")
    for op in source.module.walk():
        if is_placed(op):
            device = "npu:0" if op.name == "braid.conv" else "cpu:0"
            op.attributes[DEVICE] = StringAttr(device)
    model = braid.compile(
        source.module, parameters=source.parameters, target="npu-small", order_seconds=0
    )
    requests = [tuple(random_inputs(proto, seed).values()) for seed in range(30)]
    interpreted = braid.interpret(proto)
    with model.stream(requests) as stream:
        results = [np.asarray(next(stream)) for _ in requests]
        stages = stream.stages()
    assert {stage.device for stage in stages} == {"npu:0", "cpu:0"} and len(stages) > 2
    assert all(stage.count == 30 for stage in stages)
    for result, request in zip(results, requests, strict=True):
        np.testing.assert_array_equal(result, np.asarray(model(*request)))
        np.testing.assert_allclose(result, interpreted(*request), rtol=1e-3, atol=1e-4)
