"""Generator of random QDQ graphs: unusual scales and zero points, biases of every form."""

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper, numpy_helper

Array = NDArray[Any]

KINDS = ("uint8", "int8")
NARROW = ("uint4", "int4")
WIDE = ("int16", "uint16")
SCALES = (0.05, 0.0123, 1.0, 1 / 3, 0.25, 7.7, 3e-5, 1e-10, 250.0, 1e-30)
"""Usual ones come first, since most draws choose these."""


@dataclass
class Value:
    """An f32 value with its magnitude, and the error that compiled results may have."""

    name: str
    shape: tuple[int, ...]
    size: float
    error: float = 0.0
    scale: float = 1.0

    def moved(self, name: str, shape: tuple[int, ...] | None = None) -> "Value":
        """Return the value after ops that keep differences: clamps, movements and maxima."""
        return Value(name, shape or self.shape, self.size, self.error)


@dataclass
class Draft:
    """A graph under construction, to which random patterns are added."""

    random: Any
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    constants: dict[str, Array] = field(default_factory=dict[str, Array])
    inputs: dict[str, Array] = field(default_factory=dict[str, Array])
    count: int = 0

    def one_of(self, *choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def coin(self, share: float = 0.5) -> bool:
        return bool(self.random.random() < share)

    def constant(self, array: Any, kind: str | None = None) -> str:
        self.count += 1
        name = f"c{self.count}"
        self.constants[name] = np.asarray(array, None if kind is None else dtype(kind))
        return name

    def integers(self, values: Any) -> str:
        return self.constant(values, "int64")

    def add(self, op: str, *operands: str, **attributes: Any) -> str:
        self.count += 1
        name = f"v{self.count}"
        self.nodes.append(helper.make_node(op, list(operands), [name], **attributes))
        return name

    def numbers(self, kind: str, shape: tuple[int, ...]) -> Array:
        if kind.startswith("float8"):
            return self.random.uniform(-4, 4, shape).astype(dtype(kind))
        low, high = limits(kind)
        return self.random.integers(low, high + 1, shape).astype(dtype(kind))

    def scale_value(self, like: float | None = None) -> float:
        """Return a scale, near `like` if that is given, now and then far from usual ones."""
        if like is not None and self.coin(0.75):
            return like * float(self.random.uniform(0.5, 2))
        count = 6 if self.coin(0.9) else len(SCALES)
        return SCALES[int(self.random.integers(count))] * self.one_of(1.0, 1.0, 1.37)

    def zero(self, kind: str) -> str:
        if kind.startswith("float8"):
            return self.constant(np.zeros(()), kind)
        low, high = limits(kind)
        values = (0 if low <= 0 else low, low, high, (low + high + 1) // 2, 3)
        return self.constant(self.one_of(*values), kind)

    def requantized(self, x: Value, kind: str | None = None) -> Value:
        """`x` through a pair whose range is near its own."""
        kinds = (*KINDS, *KINDS, *KINDS, *NARROW, "int16", "float8_e4m3fn")
        kind = str(kind or self.one_of(*kinds))
        number = np.float32(self.scale_value(min(x.size, self.one_of(40.0, 4.0)) / reach(kind)))
        scale, zero = self.constant(number), self.zero(kind)
        q = self.add("QuantizeLinear", x.name, scale, zero)
        step = float(number) * (32.0 if kind.startswith("float8") else 1.0)
        size = float(number) * span(kind)
        name = self.add("DequantizeLinear", q, scale, zero)
        return Value(name, x.shape, size, x.error + step, float(number))

    def input(self, shape: tuple[int, ...]) -> Value:
        """Return an input: quantized numbers, or real ones that are quantized."""
        self.count += 1
        name = f"x{self.count}"
        if self.coin(0.3):
            self.inputs[name] = (4 * self.random.standard_normal(shape)).astype(np.float32)
            value = self.requantized(Value(name, shape, 8.0), self.one_of(*KINDS))
            value.error = 0.0  # The value that is read is the quantized one.
            return value
        kind = self.one_of(*KINDS, *KINDS, *WIDE)
        self.inputs[name] = self.numbers(kind, shape)
        number = np.float32(self.scale_value(4 / reach(kind)))
        y = self.add("DequantizeLinear", name, self.constant(number), self.zero(kind))
        return Value(y, shape, span(kind) * float(number), 0.0, float(number))

    def weight(self, shape: tuple[int, ...], axis: int) -> tuple[str, Array, float]:
        """Return a dequantized weight, its scales (one, or one per channel, some unusual), and its
        size."""
        kind = self.one_of("int8", "int8", "int8", "uint8", *NARROW)
        count = (shape[axis],) if self.coin() else ()
        usual = self.one_of(0.02, 0.02, 0.3, 1.0)
        scales = (usual * self.random.uniform(0.1, 1, count)).astype(np.float32)
        if count and self.coin(0.2):
            scales[int(self.random.integers(count[0]))] = self.one_of(1e-12, 1e-38, 30.0)
        operands = [self.constant(self.numbers(kind, shape)), self.constant(scales)]
        if kind.startswith("u") or self.coin(0.3):
            middle = 0 if kind == "int8" else limits(kind)[1] // 2 + (kind == "uint8")
            zeros = np.full(count, middle) if self.coin() else self.numbers(kind, count)
            operands.append(self.constant(zeros, kind))
        along = {"axis": axis} if count else {}
        size = float(scales.max()) * span(kind)
        return self.add("DequantizeLinear", *operands, **along), scales, size

    def bias(self, channels: int, sx: float, sw: Array) -> tuple[str, float]:
        """Return a bias with the product's scale or others, one for all, real or huge; and its
        size."""
        form = self.one_of("whole", "whole", "real", "other", "channels", "single", "huge", "zero")
        numbers = self.random.integers(-3000, 3000, channels).astype(np.int32)
        scale = np.float32(sx) * sw.astype(np.float32)
        if form == "real":
            values = (self.random.standard_normal(channels) * 3).astype(np.float32)
            return self.constant(values), float(np.abs(values).max())
        if form == "huge":
            numbers = self.random.integers(-(2**31), 2**31, channels).astype(np.int32)
        if form == "other":
            scale = np.float32(self.scale_value())
        if form == "channels":
            scale = self.random.uniform(1e-4, 1, channels).astype(np.float32)
        if form == "single":
            numbers = np.full(channels, numbers[0])
            scale = np.float32(self.scale_value())
        operands = [self.constant(numbers), self.constant(np.asarray(scale, np.float32))]
        if form == "zero":
            operands.append(self.constant(np.zeros(np.shape(scale), np.int32)))
        along = {"axis": 0} if np.ndim(scale) else {}
        size = float(np.abs(numbers * np.asarray(scale, np.float64)).max())
        return self.add("DequantizeLinear", *operands, **along), size

    def product(
        self,
        x: Value,
        name: str,
        shape: tuple[int, ...],
        weights: tuple[int, float],
        more: float = 0.0,
    ) -> Value:
        """Return the value of sums of `x` times `terms` weights of this size, plus a bias.

        A sum of numbers of both signs grows with the square root of the number of terms, and so do
        the roundings of such sums that a reference in f32 adds up.
        """
        terms, size = weights
        gain = terms * size
        rounded = 2e-7 * x.size * size * terms + 5e-7 * more
        return Value(name, shape, x.size * gain + more, x.error * gain + rounded)

    def model(self, results: list[str]) -> ModelProto:
        def info(name: str, array: Array) -> Any:
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            return helper.make_tensor_value_info(name, kind, array.shape)

        graph = helper.make_graph(
            self.nodes,
            "g",
            [info(name, array) for name, array in self.inputs.items()],
            [helper.make_tensor_value_info(name, 1, None) for name in results],
            [numpy_helper.from_array(array, name) for name, array in self.constants.items()],
        )
        opset = helper.make_opsetid("", 21)
        return helper.make_model(graph, opset_imports=[opset], ir_version=10)


def dtype(kind: str) -> np.dtype:
    """Return the numpy type of this name."""
    return np.dtype(getattr(ml_dtypes, kind, None) or kind)


def limits(kind: str) -> tuple[int, int]:
    """Return the least and largest value of a type."""
    bits = int("".join(c for c in kind if c.isdigit()))
    return (0, 2**bits - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def span(kind: str) -> float:
    """Return the largest distance of a value from a zero point, in steps."""
    return 500.0 if kind.startswith("float8") else limits(kind)[1] - limits(kind)[0]


def reach(kind: str) -> float:
    """Return the number of steps on one side of a type's range."""
    return 100.0 if kind.startswith("float8") else limits(kind)[1]


def convolution(d: Draft, x: Value) -> Value:
    """Add a convolution of one group, two, or as many as there are channels."""
    _, channels, height, width = x.shape
    groups = d.one_of(1, 1, channels, 2 if channels % 2 == 0 else 1)
    outputs = channels * d.one_of(1, 2) if groups > 1 else d.one_of(4, 5)
    k = d.one_of(1, 3)
    w, scales, size = d.weight((outputs, channels // groups, k, k), 0)
    operands, more = [x.name, w], 0.0
    if d.coin(0.7):
        bias, more = d.bias(outputs, x.scale, scales)
        operands.append(bias)
    pads = [1, 1, 1, 1] if k == 3 else [0, 0, 0, 0]
    y = d.add("Conv", *operands, group=groups, pads=pads)
    weights = channels // groups * k * k, size
    return d.product(x, y, (1, outputs, height, width), weights, more)


def transposed_convolution(d: Draft, x: Value) -> Value:
    _, channels, height, width = x.shape
    w, scales, size = d.weight((channels, 3, 2, 2), 1)
    operands, more = [x.name, w], 0.0
    if d.coin():
        bias, more = d.bias(3, x.scale, scales)
        operands.append(bias)
    y = d.add("ConvTranspose", *operands, strides=[2, 2])
    return d.product(x, y, (1, 3, 2 * height, 2 * width), (channels * 4, size), more)


def matrix_product(d: Draft, x: Value) -> Value:
    """Add a product of rows by a weight, with a bias added behind, or as Gemm."""
    width = x.shape[-1]
    is_gemm = d.coin()
    if is_gemm:
        rows = int(np.prod(x.shape[:-1]))
        x = x.moved(d.add("Reshape", x.name, d.integers([rows, width])), (rows, width))
    columns, more = 6, 0.0
    is_turned = is_gemm and d.coin()
    shape = (columns, width) if is_turned else (width, columns)
    w, scales, size = d.weight(shape, 0 if is_turned else 1)
    bias, more = d.bias(columns, x.scale, scales)
    if is_gemm:
        y = d.add("Gemm", x.name, w, bias, transB=int(is_turned))
        y = d.add("Reshape", y, d.integers([1, 1, -1, columns]))
        return d.product(x, y, (1, 1, x.shape[0], columns), (width, size), more)
    y = d.add("MatMul", x.name, w)
    if d.coin(0.7):
        y = d.add("Add", *d.random.permutation([y, bias]).tolist())
    return d.product(x, y, (*x.shape[:-1], columns), (width, size), more)


def two_activations(d: Draft, x: Value) -> Value:
    other = d.input((1, x.shape[1], x.shape[3], 4))
    y = d.add("MatMul", x.name, other.name)
    return d.product(x, y, (*x.shape[:3], 4), (x.shape[3], other.size))


def combination(d: Draft, x: Value) -> Value:
    """Combine the value with another input, itself, or a number."""
    op = d.one_of("Add", "Add", "Sub", "Mul", "Max", "Min")
    other = d.one_of(x, d.input(x.shape), d.input((1, x.shape[1], 1, 1)))
    if d.coin(0.2):
        number = np.float32(d.one_of(0.5, 3.0, 1e-3, 100.0))
        other = Value(d.constant(number), (), float(number))
    y = d.add(op, x.name, other.name)
    if op == "Mul":
        size = x.size * other.size
        error = x.error * other.size + other.error * x.size
    else:
        size, error = x.size + other.size, x.error + other.error
    return Value(y, x.shape, size, error + 1e-6 * size)


def limit(d: Draft, x: Value) -> Value:
    match d.one_of("Relu", "Clip", "LeakyRelu", "HardSwish", "Sigmoid"):
        case "Clip":
            low, high = d.one_of((0.0, 6.0), (-1.0, 1.0), (0.3, 2.2))
            limits = d.constant(np.float32(low)), d.constant(np.float32(high))
            return x.moved(d.add("Clip", x.name, *limits))
        case "LeakyRelu":
            y = x.moved(d.add("LeakyRelu", x.name, alpha=0.1))
        case "HardSwish":
            y = x.moved(d.add("HardSwish", x.name))
            y.error *= 1.5
        case op:
            y = x.moved(d.add(op, x.name))
    y.error += 1e-6 * y.size
    return y


def pool(d: Draft, x: Value) -> Value:
    """Add a pool of padded windows, or of whole channels: largest numbers or averages."""
    match d.one_of("MaxPool", "AveragePool", "GlobalAveragePool", "ReduceMean"):
        case "GlobalAveragePool":
            y = x.moved(d.add("GlobalAveragePool", x.name), (*x.shape[:2], 1, 1))
        case "ReduceMean":
            axes = d.integers([3])
            y = x.moved(d.add("ReduceMean", x.name, axes, keepdims=1), (*x.shape[:3], 1))
        case op:
            more = {"count_include_pad": int(d.random.integers(2))} if op == "AveragePool" else {}
            y = x.moved(d.add(op, x.name, kernel_shape=[3, 3], pads=[1, 1, 1, 1], **more))
    y.error += 1e-6 * y.size
    return y


def movement(d: Draft, x: Value) -> Value:
    n, c, h, w = x.shape
    match d.one_of("Transpose", "Reshape", "Slice", "Pad", "Resize", "Split"):
        case "Transpose":
            return x.moved(d.add("Transpose", x.name, perm=[0, 3, 1, 2]), (n, w, c, h))
        case "Reshape":
            shape = (n, 1, c * h, w)
            return x.moved(d.add("Reshape", x.name, d.integers(shape)), shape)
        case "Slice":
            bounds = [d.integers([v]) for v in (0, max(1, c - 1), 1)]
            return x.moved(d.add("Slice", x.name, *bounds), (n, max(1, c - 1), h, w))
        case "Pad":
            pads = d.integers([0, 0, 1, 0, 0, 0, 0, 1])
            return x.moved(d.add("Pad", x.name, pads), (n, c, h + 1, w + 1))
        case "Resize":
            mode = d.one_of("nearest", "linear")
            scales = d.constant(np.array([1, 1, 2, 2], np.float32))
            y = x.moved(d.add("Resize", x.name, "", scales, mode=mode), (n, c, 2 * h, 2 * w))
            y.error += 1e-6 * y.size
            return y
        case _:
            parts = [f"{d.add('Identity', x.name)}_{part}" for part in "ab"]
            node = helper.make_node("Split", [x.name], parts, axis=1, num_outputs=2)
            if c % 2:
                return x
            d.nodes.append(node)
            joined = d.add("Concat", parts[1], parts[0], axis=1)
            return x.moved(joined)


def joined(d: Draft, x: Value) -> Value:
    """Combine the value with another input, of another scale."""
    other = d.input((1, 2, *x.shape[2:]))
    y = d.add("Concat", *d.random.permutation([x.name, other.name]).tolist(), axis=1)
    shape = (1, x.shape[1] + 2, *x.shape[2:])
    return Value(y, shape, max(x.size, other.size), max(x.error, other.error))


PATTERNS = (
    convolution,
    convolution,
    transposed_convolution,
    matrix_product,
    matrix_product,
    two_activations,
    combination,
    combination,
    limit,
    pool,
    movement,
    joined,
)


PRODUCTS = convolution, transposed_convolution, matrix_product


def draft(seed: int) -> tuple[Draft, list[Value]]:
    """Return a graph of up to four patterns, most followed by a clamp or a pair; some values
    twice."""
    d = Draft(np.random.default_rng(seed))
    x = d.input((1, d.one_of(2, 4, 6), 4, 5))
    results: list[Value] = []
    for place in range(d.one_of(1, 1, 2, 3, 4)):
        is_product = place == 0 and d.coin()
        y = d.one_of(*(PRODUCTS if is_product else PATTERNS))(d, x)
        if d.coin(0.3):
            y = limit(d, y)
        if d.coin(0.15):
            results.append(y)
        if d.coin(0.2):
            results.append(d.requantized(x))
        x = d.requantized(y) if d.coin(0.75) else y
    unique = {value.name: value for value in (*results, x)}
    return d, list(unique.values())
