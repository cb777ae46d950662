"""Quantized models as users write them by hand: odd shapes, zero points, few bits, branches."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import braid
from braid.lowering.fpga import backend
from braid.lowering.fpga.schedule import select
from braid.solvers.hls.selection import Selection
from test.unit.runtime.test_run_model import run_model as run_model

Array = np.ndarray
KINDS = {
    "u16": (TensorProto.UINT16, np.uint16, 0, 65535),
    "i8": (TensorProto.INT8, np.int8, -128, 127),
    "u8": (TensorProto.UINT8, np.uint8, 0, 255),
    "i4": (TensorProto.INT4, np.int8, -8, 7),
    "u4": (TensorProto.UINT4, np.uint8, 0, 15),
}
"""Element type, that in numpy, and limits."""
AROUND = {"pads": [1, 1, 1, 1]}


class Network:
    """Builds a QDQ graph; what is quantized is dequantized again, or leaves the graph."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.constants: list[TensorProto] = []
        self.inputs: list[Any] = []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def constant(self, value: Any, kind: str = "") -> str:
        array, name = np.asarray(value), self.name()
        if kind in ("i4", "u4"):
            made = helper.make_tensor(name, KINDS[kind][0], array.shape, array.ravel())
        else:
            made = numpy_helper.from_array(array, name)
        self.constants.append(made)
        return name

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = self.name()
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def input(self, *shape: int, kind: str = "") -> str:
        name = self.name()
        element = KINDS[kind][0] if kind else TensorProto.FLOAT
        self.inputs.append(helper.make_tensor_value_info(name, element, shape))
        return name

    def step(self, scale: float, zero: int, kind: str) -> tuple[str, str]:
        return self.constant(np.float32(scale)), self.constant(np.array(zero, KINDS[kind][1]))

    def quantize(self, x: str, scale: float = 0.03, zero: int = 0, kind: str = "i8") -> str:
        return self.op("QuantizeLinear", x, *self.step(scale, zero, kind))

    def dequantize(self, x: str, scale: float = 0.03, zero: int = 0, kind: str = "i8") -> str:
        return self.op("DequantizeLinear", x, *self.step(scale, zero, kind))

    def both(self, x: str, scale: float = 0.03, zero: int = 0, kind: str = "i8") -> str:
        return self.dequantize(self.quantize(x, scale, zero, kind), scale, zero, kind)

    def weight(
        self, *shape: int, kind: str = "i8", axis: int | None = None, zero: Any = None
    ) -> str:
        _, dtype, low, high = KINDS[kind]
        numbers = self.random.integers(low, high + 1, shape).astype(dtype)
        spread = self.random.uniform(0.5, 1, () if axis is None else shape[axis])
        scale = spread / (high * np.prod(shape[1:]) ** 0.5)
        inputs = [self.constant(numbers, kind), self.constant(np.float32(scale))]
        if zero is not None:
            inputs.append(self.constant(np.asarray(zero, dtype), kind))
        return self.op("DequantizeLinear", *inputs, **({} if axis is None else {"axis": axis}))

    def conv(self, x: str, weight: str, *bias: str, **attributes: Any) -> str:
        return self.op("Conv", x, weight, *bias, **attributes)

    def model(self, *outputs: str, kind: str = "") -> ModelProto:
        element = KINDS[kind][0] if kind else TensorProto.FLOAT
        results = [helper.make_tensor_value_info(one, element, None) for one in outputs]
        graph = helper.make_graph(self.nodes, "network", self.inputs, results, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def convolution(
    shape: tuple[int, ...],
    weight: tuple[int, ...],
    *,
    zero: int = 0,
    kind: str = "i8",
    axis: int | None = None,
    weight_zero: Any = None,
    has_bias: bool = False,
    **attributes: Any,
) -> ModelProto:
    net = Network(sum(shape) + sum(weight))
    x = net.both(net.input(*shape), zero=zero)
    operands = [net.weight(*weight, kind=kind, axis=axis, zero=weight_zero)]
    if has_bias:
        numbers = net.random.integers(-500, 500, weight[0]).astype(np.int32)
        scale = net.constant(np.float32(0.001))
        operands.append(net.op("DequantizeLinear", net.constant(numbers), scale))
    return net.model(net.both(net.conv(x, *operands, **attributes), zero=3))


def matmul_of_four_bits() -> ModelProto:
    net = Network(3)
    x = net.both(net.input(5, 7))
    return net.model(net.both(net.op("MatMul", x, net.weight(7, 4, kind="i4")), 0.05))


def integers_in_and_out() -> ModelProto:
    net = Network(5)
    y = net.conv(net.dequantize(net.input(1, 3, 6, 6, kind="i8")), net.weight(4, 3, 3, 3), **AROUND)
    return net.model(net.quantize(y, zero=3), kind="i8")


def branches_of_bytes() -> ModelProto:
    net = Network(6)
    x = net.dequantize(net.input(1, 3, 6, 6, kind="u8"), zero=128, kind="u8")
    wide = net.both(net.conv(x, net.weight(4, 3, 3, 3), **AROUND), 0.02, 11, "u8")
    point = net.both(net.conv(x, net.weight(4, 3, 1, 1)), 0.05, 100, "u8")
    return net.model(net.quantize(net.op("Add", wide, point), 0.04, 77, "u8"), kind="u8")


def joined_scales() -> ModelProto:
    net = Network(7)
    x = net.both(net.input(1, 3, 6, 6))
    wide = net.both(net.conv(x, net.weight(4, 3, 3, 3), **AROUND), 0.02)
    point = net.both(net.conv(x, net.weight(5, 3, 1, 1)), 0.05, 5)
    return net.model(net.both(net.op("Concat", wide, point, x, axis=1), 0.04, -7))


def averages() -> ModelProto:
    net = Network(8)
    x = net.both(net.input(1, 3, 7, 9), zero=5)
    window = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}
    y = net.both(net.op("AveragePool", x, count_include_pad=0, **window), 0.02, 3)
    y = net.both(net.conv(y, net.weight(4, 3, 1, 1)), 0.04)
    return net.model(net.both(net.op("GlobalAveragePool", y), 0.01))


def dilated_maxima() -> ModelProto:
    net = Network(9)
    y = net.both(net.conv(net.both(net.input(1, 2, 9, 9), zero=5), net.weight(3, 2, 1, 1)), 0.04)
    window = {"kernel_shape": [2, 3], "strides": [1, 2], "pads": [0, 1, 1, 0]}
    return net.model(net.both(net.op("MaxPool", y, dilations=[2, 2], **window), 0.04))


def shuffled_channels() -> ModelProto:
    net = Network(10)
    x = net.both(net.input(1, 6, 4, 4))
    y = net.both(net.conv(x, net.weight(6, 2, 1, 1), group=3), 0.04)
    y = net.op("Reshape", y, net.constant(np.array([1, 3, 2, 4, 4])))
    y = net.op("Transpose", y, perm=[0, 2, 1, 3, 4])
    y = net.both(net.op("Reshape", y, net.constant(np.array([1, 6, 4, 4]))), 0.04)
    return net.model(net.both(net.conv(y, net.weight(6, 2, 1, 1), group=3), 0.04))


def a_gate() -> ModelProto:
    net = Network(13)
    y = net.both(net.conv(net.both(net.input(1, 4, 5, 5)), net.weight(4, 4, 1, 1)), 0.04)
    gate = net.both(net.op("GlobalAveragePool", y), 0.03)
    gate = net.both(net.conv(gate, net.weight(4, 4, 1, 1)), 0.03)
    return net.model(net.both(net.op("Mul", y, gate), 0.01))


def quantized_three_times() -> ModelProto:
    net = Network(20)
    x = net.both(net.both(net.input(1, 2, 4, 4), zero=3), 0.017, -9)
    x = net.both(x, 0.05, 9, "u8")
    return net.model(net.both(net.conv(x, net.weight(2, 2, 1, 1)), 0.04))


def three_branches() -> ModelProto:
    """Pools of one image, one of them an average including padding."""
    net = Network(102)
    x = net.both(net.input(1, 3, 9, 11), zero=4)
    window = {"kernel_shape": [3, 3], "strides": [1, 1], **AROUND}
    wide = net.both(net.conv(x, net.weight(5, 3, 3, 3), **AROUND), 0.02, -3)
    mean = net.both(net.op("AveragePool", x, count_include_pad=1, **window), 0.025, 9)
    joined = net.op("Concat", wide, mean, net.both(net.op("MaxPool", x, **window), zero=4), axis=1)
    y = net.both(joined, 0.05, -11)
    return net.model(net.both(net.conv(y, net.weight(3, 11, 1, 1)), 0.04))


def skips_over_skips() -> ModelProto:
    net = Network(124)
    x = net.both(net.input(1, 3, 8, 8), zero=3)
    first = net.both(net.conv(x, net.weight(3, 3, 5, 5), pads=[2, 2, 2, 2]), 0.03)
    point = net.both(net.conv(first, net.weight(3, 3, 1, 1)), 0.03)
    inner = net.both(net.op("Add", point, x), 0.05)
    wide = net.both(net.conv(inner, net.weight(3, 3, 3, 3), **AROUND), 0.03)
    outer = net.both(net.op("Add", wide, first), 0.05)
    return net.model(net.both(net.op("Sub", outer, x), 0.06, -4))


def two_results() -> ModelProto:
    net = Network(18)
    y = net.both(net.conv(net.both(net.input(1, 2, 5, 4)), net.weight(3, 2, 3, 1)), 0.04)
    return net.model(y, net.both(net.op("MaxPool", y, kernel_shape=[2, 2]), 0.04))


MODELS: dict[str, Callable[[], ModelProto]] = {
    "weights of four bits": lambda: convolution((1, 3, 6, 6), (4, 3, 3, 3), kind="i4", **AROUND),
    "unsigned ones": lambda: convolution(
        (1, 3, 6, 6), (4, 3, 3, 3), kind="u4", weight_zero=8, **AROUND
    ),
    "matmul of four bits": matmul_of_four_bits,
    "zero points of filters": lambda: convolution(
        (1, 3, 6, 6), (4, 3, 3, 3), axis=0, weight_zero=[1, -3, 0, 7], zero=9, **AROUND
    ),
    "zero points in groups": lambda: convolution(
        (1, 4, 6, 6), (6, 2, 3, 3), kind="u8", axis=0, weight_zero=range(120, 126), group=2
    ),
    "padding around a pixel": lambda: convolution((1, 1, 1, 1), (2, 1, 3, 3), zero=-5, **AROUND),
    "prime extents": lambda: convolution(
        (1, 5, 7, 11), (13, 5, 3, 2), axis=0, zero=7, has_bias=True, pads=[2, 0, 1, 1]
    ),
    "strides over the window": lambda: convolution((1, 2, 11, 13), (3, 2, 2, 2), strides=[3, 5]),
    "dilations": lambda: convolution(
        (1, 2, 11, 13), (3, 2, 3, 3), dilations=[2, 3], pads=[2, 1, 0, 3], zero=-9
    ),
    "groups": lambda: convolution(
        (1, 6, 9, 7), (9, 2, 3, 3), group=3, pads=[0, 2, 1, 0], strides=[2, 1]
    ),
    "a window of padding": lambda: convolution(
        (1, 1, 3, 3), (1, 1, 3, 3), pads=[3, 3, 3, 3], zero=4
    ),
    "integers in and out": integers_in_and_out,
    "branches of bytes": branches_of_bytes,
    "joined scales": joined_scales,
    "averages": averages,
    "dilated maxima": dilated_maxima,
    "shuffled channels": shuffled_channels,
    "a gate": a_gate,
    "quantized three times": quantized_three_times,
    "two results": two_results,
    "three branches": three_branches,
    "skips over skips": skips_over_skips,
    "strides and dilations": lambda: convolution(
        (1, 5, 23, 19),
        (7, 5, 5, 5),
        axis=0,
        zero=-7,
        strides=[3, 3],
        dilations=[2, 2],
        pads=[4, 3, 4, 5],
    ),
    "three filters for each channel": lambda: convolution(
        (1, 5, 9, 9), (15, 1, 3, 3), axis=0, zero=3, group=5, strides=[2, 2], **AROUND
    ),
}


def given(model: ModelProto, seed: int = 0) -> list[Array]:
    random = np.random.default_rng(seed)
    found: list[Array] = []
    for one in model.graph.input:
        kind = one.type.tensor_type
        shape = [dim.dim_value for dim in kind.shape.dim]
        limits = {element: (dtype, low, high) for element, dtype, low, high in KINDS.values()}
        if kind.elem_type in limits:
            dtype, low, high = limits[kind.elem_type]
            found.append(random.integers(low, high + 1, shape).astype(dtype))
        else:
            found.append(random.standard_normal(shape).astype(np.float32))
    return found


def listed(results: Any) -> list[Array]:
    return list(results) if isinstance(results, (list, tuple)) else [results]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_models(name: str) -> None:
    """As on the CPU bit by bit, and within a step of ONNX Runtime's."""
    model = MODELS[name]()
    compiled, host = braid.compile(model, target="fpga-sim"), braid.compile(model)
    assert "fpga:0" in compiled.devices
    session = onnxruntime.InferenceSession(model.SerializeToString())
    for seed in range(3):
        inputs = given(model, seed)
        names = [one.name for one in model.graph.input]
        expected = session.run(None, dict(zip(names, inputs, strict=True)))
        results = zip(listed(compiled(*inputs)), listed(host(*inputs)), expected, strict=True)
        for found, on_host, peer in results:
            np.testing.assert_array_equal(found, on_host)
            step = np.diff(np.unique(peer.astype(float))).min(initial=np.inf)
            assert abs(found.astype(float) - peer.astype(float)).max() <= 1.01 * step


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_models_in_any_folds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The part's resources decide among folds, all of which compute the same numbers."""
    random = np.random.default_rng(len(name))

    def drawn(search: select._Search) -> Selection:
        picked = tuple(int(random.integers(len(own))) for own in search.choices)
        cycles = max(own[at].cycles for own, at in zip(search.choices, picked, strict=True))
        return Selection(picked, cycles, cycles, select.NOTHING)

    monkeypatch.setattr(select._Search, "found", drawn)
    monkeypatch.setattr(backend, "budget_of", lambda _: (select.WITHOUT_LIMIT,) * 5)
    model = MODELS[name]()
    host = braid.compile(model)
    for seed in range(2):
        compiled = braid.compile(model, target="fpga-sim")
        assert "fpga:0" in compiled.devices
        inputs = given(model, seed)
        results = zip(listed(compiled(*inputs)), listed(host(*inputs)), strict=True)
        for found, on_host in results:
            np.testing.assert_array_equal(found, on_host)


def test_integers_from_c(run_model: Path, tmp_path: Path) -> None:
    model = integers_in_and_out()
    braid.compile(model, target="fpga-sim").save(tmp_path / "circuit.braid")
    braid.compile(model).save(tmp_path / "host.braid")
    printed = [
        subprocess.run([run_model, tmp_path / f"{name}.braid"], capture_output=True, check=True)
        for name in ("circuit", "host")
    ]
    assert printed[0].stdout == printed[1].stdout and b": 0" not in printed[0].stdout


def test_a_circuit_that_only_reshapes() -> None:
    """Its neighbours are the host's: sums of so many numbers of 16 bits exceed 32 bits."""
    net = Network(22)
    x = net.both(net.input(1, 4, 9, 10), kind="u16", zero=900, scale=1e-4)
    flat = net.op("Reshape", net.op("Neg", x), net.constant(np.array([1, 360])))
    product = net.op("MatMul", net.both(flat, kind="u16", zero=900, scale=1e-4), net.weight(360, 3))
    model = net.model(product)
    compiled, inputs = braid.compile(model, target="fpga-sim"), given(model)
    assert "fpga:0" in compiled.devices
    np.testing.assert_array_equal(compiled(*inputs), braid.compile(model)(*inputs))


def test_convolutions_that_share_a_padding_on_two_devices() -> None:
    """Each device pads for itself: a circuit pads windows alone."""
    net = Network(21)
    x = net.both(net.input(1, 2, 5, 5), zero=5)
    first, second = (net.conv(x, net.weight(3, 2, 3, 3), **AROUND) for _ in range(2))
    model = net.model(net.both(net.op("Add", net.both(first, 0.04), net.both(second, 0.04)), 0.07))
    inputs = given(model)
    expected = braid.compile(model)(*inputs)
    for pinned in (first, second):
        compiled = braid.compile(model, target="fpga-sim", pin=[f"{pinned}=cpu"])
        assert "fpga:0" in compiled.devices
        np.testing.assert_array_equal(compiled(*inputs), expected)
