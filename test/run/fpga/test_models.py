"""Quantized networks from ONNX, whole in Verilator."""

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from braid.analysis.structure.model_context import ModelContext
from braid.frontends.onnx import ImportedModel, import_onnx
from braid.lowering.fpga.convert.design_of import design_of
from braid.lowering.fpga.convert_braid_to_hls import function_named
from braid.lowering.fpga.design.streams import stages_of
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.universe import make_context
from test.run.fpga.designs import check
from test.run.fpga.exported import MODELS, quantized

node = helper.make_node
WITH_WINDOWS = ("Conv", "MaxPool", "GlobalAveragePool", "Gemm")


class Network:
    """Builds a QDQ graph layer by layer, with random weights and scales that use the range."""

    def __init__(self, channels: int, size: int) -> None:
        self.random = np.random.default_rng(channels + size)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.shape = [1, channels, size, size]
        self.first = self.quantized("x", 0.05, -4)

    def constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(node(kind, list(inputs), [name], **attributes))
        return name

    def quantized(self, value: str, scale: float, zero: int) -> str:
        scales = self.constant(np.float32(scale)), self.constant(np.int8(zero))
        return self.add("DequantizeLinear", self.add("QuantizeLinear", value, *scales), *scales)

    def weight(self, *shape: int) -> str:
        numbers = self.constant(self.random.integers(-127, 128, shape).astype(np.int8))
        scale, zero = self.constant(np.float32(0.003)), self.constant(np.int8(0))
        return self.add("DequantizeLinear", numbers, scale, zero)

    def conv(
        self, value: str, given: int, made: int, size: int, *, groups: int = 1, **rest: Any
    ) -> str:
        """With a bias and ReLU."""
        bias = self.constant(self.random.integers(-900, 900, made).astype(np.int32))
        scale, zero = self.constant(np.float32(0.05 * 0.003)), self.constant(np.int32(0))
        bias = self.add("DequantizeLinear", bias, scale, zero)
        weight = self.weight(made, given // groups, size, size)
        made_of = self.add("Conv", value, weight, bias, group=groups, **rest)
        spread = 0.02 * (given // groups * size * size) ** 0.5
        return self.quantized(self.add("Relu", made_of), spread, -128)

    def model(self, result: str, classes: int) -> ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, [1, classes])],
            self.constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def classified(net: Network, value: str, given: int, classes: int) -> ModelProto:
    product = net.add("MatMul", value, net.weight(given, classes))
    return net.model(net.quantized(product, 0.1, 0), classes)


def residual(size: int) -> ModelProto:
    """Return a convolution, pooling, a residual block, a depthwise convolution and a mean."""
    net = Network(1, size)
    a = net.conv(net.first, 1, 4, 3, pads=[1] * 4)
    a = net.quantized(net.add("MaxPool", a, kernel_shape=[2, 2], strides=[2, 2]), 0.06, -128)
    b = net.conv(a, 4, 4, 3, pads=[1] * 4)
    c = net.quantized(net.add("Add", b, a), 0.1, -100)
    d = net.conv(c, 4, 4, 3, groups=4, pads=[1] * 4, strides=[2, 2])
    mean = net.quantized(net.add("GlobalAveragePool", d), 0.05, -128)
    flat = net.quantized(net.add("Flatten", mean), 0.05, -128)
    return classified(net, flat, 4, 3)


def plain(channels: int, size: int, widths: tuple[int, ...]) -> ModelProto:
    """Convolutions with pooling, and a product with the flattened image."""
    net = Network(channels, size)
    value = net.first
    for width in widths:
        value = net.conv(value, channels, width, 3, pads=[1] * 4)
        pooled = net.add("MaxPool", value, kernel_shape=[2, 2], strides=[2, 2])
        value = net.quantized(pooled, 0.06, -128)
        channels, size = width, size // 2
    return classified(net, net.add("Flatten", value), channels * size * size, 10)


def separable(channels: int, size: int) -> ModelProto:
    """Return the block of MobileNet: widened by 1x1, depthwise, narrowed by 1x1, and added."""
    net = Network(channels, size)
    value = net.conv(net.first, channels, 8, 3, pads=[1] * 4, strides=[2, 2])
    wide = net.conv(value, 8, 24, 1)
    deep = net.conv(wide, 24, 24, 3, groups=24, pads=[1] * 4)
    narrow = net.conv(deep, 24, 8, 1)
    both = net.quantized(net.add("Add", narrow, value), 0.1, -100)
    mean = net.quantized(net.add("GlobalAveragePool", both), 0.1, -128)
    return classified(net, net.quantized(net.add("Flatten", mean), 0.1, -128), 8, 10)


def turned(size: int) -> ModelProto:
    """Rows and columns are exchanged between convolutions; channels are last for the product."""
    net = Network(1, size)
    value = net.conv(net.first, 1, 2, 3, pads=[1] * 4)
    value = net.quantized(net.add("Transpose", value, perm=[0, 1, 3, 2]), 0.06, -128)
    value = net.conv(value, 2, 3, 3, pads=[1, 0, 1, 0])
    value = net.quantized(net.add("Transpose", value, perm=[0, 2, 3, 1]), 0.06, -128)
    return classified(net, net.add("Flatten", value), 3 * size * (size - 2), 5)


def imported_integers(model: ModelProto) -> ImportedModel:
    imported = import_onnx(model)
    passes = parse_pipeline("inline,simplify,convert-qdq-to-integers,simplify")
    context = make_context()
    assert isinstance(context, ModelContext)
    context.parameters = imported.parameters  # Scales by their values, as `braid.compile` does.
    run_pipeline(context, imported.module, passes)
    return imported


def run(model: ModelProto, dsp: int, seeds: tuple[int, ...]) -> None:
    imported = imported_integers(model)
    checked = check(imported.module, dsp, imported.parameters, seeds)
    (scores,) = checked.converted.ports.outputs
    print(
        f"{checked.schedule.resources}, {checked.cycles} cycles for 2 images, result {scores.type}"
    )


def test_residual_network() -> None:
    run(residual(10), 80, (1,))


@pytest.mark.slow
def test_network_of_the_size_of_mnist() -> None:
    run(plain(1, 28, (8, 16)), 200, (1, 2, 3))


@pytest.mark.slow
def test_network_of_the_size_of_cifar() -> None:
    run(plain(3, 32, (8, 16, 16)), 300, (1, 2, 3))


@pytest.mark.slow
def test_block_of_mobilenet() -> None:
    run(separable(3, 16), 200, (1, 2, 3))


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_exported_models_become_designs_whole(name: str, unsigned: bool, per_channel: bool) -> None:
    """A stage for each op with windows: no pair of quantizations is left around a Flatten."""
    model = quantized(MODELS[name](), unsigned=unsigned, per_channel=per_channel)
    imported = imported_integers(model)
    function = function_named(imported.module, "main")
    converted = design_of(function, imported.parameters)
    heads = sum(node.op_type in WITH_WINDOWS for node in model.graph.node)
    adds = sum(node.op_type == "Add" for node in model.graph.node)
    assert len(stages_of(converted.design)) <= heads + adds + 1


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_exported_model(name: str) -> None:
    run(quantized(MODELS[name]()), 300, (1, 2, 3))
