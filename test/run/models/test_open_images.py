"""A network of convolutions for any number of images of any extents, compiled once."""

from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import braid

CHANNELS, CLASSES = 24, 10


def network() -> ModelProto:
    random = np.random.default_rng(0)
    weights: list[Any] = []

    def weight(*shape: int) -> str:
        values = random.standard_normal(shape) / np.prod(shape[1:]) ** 0.5
        weights.append(numpy_helper.from_array(values.astype(np.float32), f"w{len(weights)}"))
        return weights[-1].name

    kernel, pads = {"kernel_shape": [3, 3]}, {"pads": [1, 1, 1, 1]}
    nodes = [
        ("Conv", ["x", weight(CHANNELS, 3, 3, 3), weight(CHANNELS)], {**kernel, **pads}),
        ("Relu", ["v0"], {}),
        ("MaxPool", ["v1"], {**kernel, **pads, "strides": [2, 2]}),
        ("Conv", ["v2", weight(CHANNELS, CHANNELS, 3, 3)], {**kernel, **pads}),
        ("Add", ["v3", "v2"], {}),
        ("GlobalAveragePool", ["v4"], {}),
        ("Flatten", ["v5"], {}),
        ("Gemm", ["v6", weight(CLASSES, CHANNELS), weight(CLASSES)], {"transB": 1}),
    ]
    graph = helper.make_graph(
        [helper.make_node(op, i, [f"v{n}"], **kw) for n, (op, i, kw) in enumerate(nodes)],
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, "height", "width"])],
        [helper.make_tensor_value_info(f"v{len(nodes) - 1}", TensorProto.FLOAT, None)],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_network_of_any_number_of_images_of_any_extents() -> None:
    source = network()
    model, session = braid.compile(source), onnxruntime.InferenceSession(source.SerializeToString())
    random = np.random.default_rng(1)
    for shape in ((1, 3, 32, 32), (2, 3, 7, 13), (5, 3, 1, 1), (1, 3, 17, 64)):
        x = random.standard_normal(shape).astype(np.float32)
        (expected,) = session.run(None, {"x": x})
        np.testing.assert_allclose(model(x), expected, rtol=1e-4, atol=2e-5)


CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "any": {"weight": (16, 8, 3, 3)},
    "depthwise": {"weight": (8, 1, 3, 3), "group": 8},
    "grouped": {"weight": (16, 4, 3, 3), "group": 2},
    "strided": {"weight": (16, 8, 5, 5), "strides": [2, 2], "pads": [2, 2, 2, 2]},
    "wide": {"weight": (4, 8, 1, 7), "pads": [0, 3, 0, 3]},
}


@pytest.mark.parametrize("opened", [("h",), ("w",), ("n", "h"), ("n", "w"), ("n", "h", "w")])
@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_convolution_with_some_open_dims(kind: str, opened: tuple[str, ...]) -> None:
    """Small images, which are mostly edges, next to dims of any extent."""
    attributes = {"pads": [1, 1, 1, 1], **CONVOLUTIONS[kind]}
    random = np.random.default_rng(0)
    weight = random.standard_normal(attributes.pop("weight")).astype(np.float32)
    shape = [name if name in opened else known for name, known in (("n", 2), ("h", 5), ("w", 6))]
    node = helper.make_node("Conv", ["x", "w"], ["y"], **attributes)
    graph = helper.make_graph(
        [node],
        "convolution",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [shape[0], 8, *shape[1:]])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight, "w")],
    )
    opset = helper.make_opsetid("", 18)
    source = helper.make_model(graph, opset_imports=[opset], ir_version=9)
    model, session = braid.compile(source), onnxruntime.InferenceSession(source.SerializeToString())
    for n, h, w in ((1, 1, 1), (2, 3, 19), (3, 34, 2)):
        sizes = {"n": n, "h": h, "w": w}
        extents = [sizes[dim] if isinstance(dim, str) else dim for dim in shape]
        x = random.standard_normal((extents[0], 8, *extents[1:])).astype(np.float32)
        (expected,) = session.run(None, {"x": x})
        np.testing.assert_allclose(model(x), expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("coordinates", ["half_pixel", "pytorch_half_pixel", "align_corners"])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_images_as_large_as_another(mode: str, coordinates: str) -> None:
    """Networks that add results on smaller images to larger ones of any extents."""
    nearest = "" if mode == "linear" else ', nearest_mode = "floor"'
    text = f"""<ir_version: 9, opset_import: ["" : 18]>
    g (float[N,3,H,W] small, float[N,3,A,B] large) => (float[] y) {{
      sizes = Shape (large)
      same = Resize <mode = "{mode}", coordinate_transformation_mode = "{coordinates}"{nearest}>
             (small, , , sizes)
      y = Add (same, large) }}"""
    source = onnx.parser.parse_model(text)
    model, session = braid.compile(source), onnxruntime.InferenceSession(source.SerializeToString())
    random = np.random.default_rng(0)
    for n, small, large in (
        (1, (4, 4), (8, 8)),
        (2, (3, 5), (7, 16)),
        (1, (9, 8), (4, 1)),
        (3, (1, 2), (5, 33)),
    ):
        arrays = [
            random.standard_normal((n, 3, *extents)).astype(np.float32)
            for extents in (small, large)
        ]
        (expected,) = session.run(None, dict(zip(("small", "large"), arrays, strict=True)))
        np.testing.assert_allclose(model(*arrays), expected, rtol=1e-4, atol=2e-5)
