"""Small convolutional networks, quantized by ONNX Runtime as users do it."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

Array = Any


class FloatNetwork:
    """Builds a graph in f32, layer by layer, with random weights."""

    def __init__(self, channels: int, size: int) -> None:
        self.random = np.random.default_rng(channels + size)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.shape = (1, channels, size, size)

    def constant(self, array: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array, np.float32), name))
        return name

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def conv(self, value: str, given: int, made: int, size: int, **rest: Any) -> str:
        depth = given // rest.get("group", 1)
        spread = (2 / (depth * size * size)) ** 0.5
        weight = self.constant(self.random.normal(0, spread, (made, depth, size, size)))
        return self.add(
            "Conv", value, weight, self.constant(self.random.normal(0, 0.1, made)), **rest
        )

    def limited(self, value: str) -> str:
        return self.add("Clip", value, self.constant(0), self.constant(6))

    def classified(self, value: str, given: int) -> ModelProto:
        weight = self.constant(self.random.normal(0, given**-0.5, (10, given)))
        bias = self.constant(self.random.normal(0, 0.1, 10))
        result = self.add("Gemm", self.add("Flatten", value), weight, bias, transB=1)
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, [1, 10])],
            self.constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def plain(channels: int, size: int, widths: tuple[int, ...]) -> ModelProto:
    """Convolutions with pooling, and a product with the flattened image."""
    net, value = FloatNetwork(channels, size), "x"
    for width in widths:
        value = net.add("Relu", net.conv(value, channels, width, 3, pads=[1] * 4))
        value = net.add("MaxPool", value, kernel_shape=[2, 2], strides=[2, 2])
        channels, size = width, size // 2
    return net.classified(value, channels * size * size)


def separable(channels: int, size: int) -> ModelProto:
    """Build the block of MobileNetV2: widened by 1x1, depthwise, narrowed by 1x1, and added."""
    net = FloatNetwork(channels, size)
    value = net.limited(net.conv("x", channels, 8, 3, pads=[1] * 4, strides=[2, 2]))
    wide = net.limited(net.conv(value, 8, 24, 1))
    deep = net.limited(net.conv(wide, 24, 24, 3, group=24, pads=[1] * 4))
    both = net.add("Add", net.conv(deep, 24, 8, 1), value)
    return net.classified(net.add("GlobalAveragePool", both), 8)


MODELS = {
    "mnist": lambda: plain(1, 28, (8, 16)),
    "cifar": lambda: plain(3, 32, (8, 16, 16)),
    "mobilenet-block": lambda: separable(3, 16),
}


class _Calibration(CalibrationDataReader):
    def __init__(self, shape: tuple[int, ...]) -> None:
        random = np.random.default_rng(1)
        self.images = iter([random.normal(0, 1, shape).astype(np.float32) for _ in range(8)])

    def get_next(self) -> dict[str, Array] | None:
        image = next(self.images, None)
        return None if image is None else {"x": image}


def quantized(
    model: ModelProto, *, unsigned: bool = False, per_channel: bool = False
) -> ModelProto:
    """Return the QDQ model that `quantize_static` writes."""
    dims = model.graph.input[0].type.tensor_type.shape.dim
    with tempfile.TemporaryDirectory() as directory:
        before, after = Path(directory) / "float.onnx", Path(directory) / "int8.onnx"
        onnx.save(model, before)
        quantize_static(
            before,
            after,
            _Calibration(tuple(dim.dim_value for dim in dims)),
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QUInt8 if unsigned else QuantType.QInt8,
            weight_type=QuantType.QInt8,
            per_channel=per_channel,
        )
        return onnx.load(after)
