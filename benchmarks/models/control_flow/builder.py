"""Building ONNX graphs with nested bodies."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, helper

from benchmarks.models.hand_written import constant, model_of, normal, value

Info = Any
"""A value with its type, as `helper.make_tensor_value_info` makes it."""


class Weights:
    """The weights of a model, and its names."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.tensors: list[TensorProto] = []
        self._names = 0

    def name(self, kind: str) -> str:
        """Return a unique name."""
        self._names += 1
        return f"{kind.lower()}_{self._names}"


class Body:
    """The nodes of one graph; methods append to it and return names of values."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.nodes: list[Any] = []

    def inner(self) -> "Body":
        """Return an empty body of a branch or loop of this graph."""
        return Body(self.weights)

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Return a node with one output."""
        (output,) = self.ops(kind, 1, *inputs, **attributes)
        return output

    def ops(self, kind: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        """Return a node with `count` outputs."""
        outputs = [self.weights.name(kind) for _ in range(count)]
        self.nodes.append(helper.make_node(kind, list(inputs), outputs, **attributes))
        return outputs

    def constant(self, number: Any, dtype: Any = np.int64) -> str:
        """Return a known tensor."""
        tensor = constant(self.weights.name("constant"), number, dtype)
        self.weights.tensors.append(tensor)
        return tensor.name

    def weight(self, *shape: int, scale: float) -> str:
        """Return a random tensor."""
        tensor = normal(self.weights.rng, self.weights.name("weight"), *shape, scale=scale)
        self.weights.tensors.append(tensor)
        return tensor.name

    def reshape(self, x: str, *shape: int) -> str:
        """`x` in another shape."""
        return self.op("Reshape", x, self.constant(list(shape)))

    def linear(self, x: str, inputs: int, outputs: int, gain: float = 1.0) -> str:
        """Return x · W + b for rows `x`."""
        product = self.op("MatMul", x, self.weight(inputs, outputs, scale=gain * inputs**-0.5))
        return self.op("Add", product, self.weight(outputs, scale=0.1))

    def conv(
        self,
        x: str,
        inputs: int,
        outputs: int,
        size: int = 3,
        *,
        stride: int = 1,
        groups: int = 1,
        gain: float = 1.0,
    ) -> str:
        """Return a convolution with bias whose padding keeps the extents."""
        fan_in = inputs // groups * size * size
        weight = self.weight(outputs, inputs // groups, size, size, scale=gain * fan_in**-0.5)
        bias = self.weight(outputs, scale=0.05)
        pads, strides = [size // 2] * 4, [stride, stride]
        return self.op("Conv", x, weight, bias, pads=pads, strides=strides, group=groups)

    def separable(
        self, x: str, inputs: int, outputs: int, *, stride: int = 1, gain: float = 1.0
    ) -> str:
        """Return a depthwise 3x3 and a pointwise convolution (Howard et al., "MobileNets",
        2017)."""
        wide = self.conv(x, inputs, inputs, stride=stride, groups=inputs, gain=gain)
        return self.conv(wide, inputs, outputs, 1, gain=gain)

    def branch(self, condition: str, then: GraphProto, otherwise: GraphProto) -> str:
        """Return an `If` with one output."""
        return self.op("If", condition, then_branch=then, else_branch=otherwise)

    def graph(
        self, name: str, inputs: Sequence[Info], outputs: Sequence[Info], results: Sequence[str]
    ) -> GraphProto:
        """Return this body with `results` under the names of `outputs`."""
        nodes = [*self.nodes]
        for result, output in zip(results, outputs, strict=True):
            nodes.append(helper.make_node("Identity", [result], [output.name]))
        return helper.make_graph(nodes, name, list(inputs), list(outputs))

    def result(self, name: str, outcome: str, shape: list[int]) -> GraphProto:
        """Return this body as a branch that yields `outcome`."""
        return self.graph(name, [], [value(self.weights.name(name), shape)], [outcome])


def loop_inputs(body: Body, *carried: Info) -> list[Info]:
    """Return the inputs of a loop's body: the iteration's number, the condition, carried values."""
    number = value(body.weights.name("iteration"), [], TensorProto.INT64)
    return [number, value(body.weights.name("condition"), [], TensorProto.BOOL), *carried]


def flag(body: Body) -> Info:
    """Return the condition that a loop's body yields."""
    return value(body.weights.name("proceed"), [], TensorProto.BOOL)


def finish(body: Body, graph: GraphProto) -> ModelProto:
    """Return the model of an outermost graph, with all weights."""
    graph.initializer.extend(body.weights.tensors)
    return model_of(graph)
