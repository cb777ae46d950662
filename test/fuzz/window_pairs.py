"""Random convolutions and pools, and equivalent graphs of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper, numpy_helper

Array = NDArray[Any]

OPS = {"Conv": 0.0, "MaxPool": -np.inf, "AveragePool": 0.0}
"""The ops, each with the value of its padding."""


@dataclass(frozen=True)
class Windows:
    """An op with windows on `x`, of shape `[batch, channels, height, width]`.

    `sizes` are those of the windows, `pads` those before both spatial dims and those after them.
    """

    op: str
    x: Array
    weight: Array
    sizes: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int, int, int]


def windows(seed: int) -> Windows:
    """Draw windows that all read something of the input."""
    random = np.random.default_rng(seed)

    def two(low: int, high: int) -> tuple[int, int]:
        return int(random.integers(low, high)), int(random.integers(low, high))

    op = str(random.choice(list(OPS)))
    sizes, strides, dilations = two(1, 5), two(1, 4), two(1, 3)
    reach = [(size - 1) * step + 1 for size, step in zip(sizes, dilations, strict=True)]
    pads = tuple(int(random.integers(0, limit)) for limit in (*reach, *reach))
    batch, channels = two(1, 4)
    extents = [size + int(random.integers(0, 7)) for size in reach]
    x = random.standard_normal((batch, channels, *extents)).astype(np.float32)
    weight = random.standard_normal((int(random.integers(1, 20)), channels, *sizes))
    return Windows(op, x, weight.astype(np.float32), sizes, strides, dilations, pads)


def as_written(w: Windows) -> tuple[list[NodeProto], dict[str, Array]]:
    """Return the op as it is, from `x` to `y`."""
    constants = {"weight": w.weight} if w.op == "Conv" else {}
    return [_window(w, "x", "y")], constants


def padded(w: Windows) -> tuple[list[NodeProto], dict[str, Array]]:
    """Return the op without a padding, on what a `Pad` makes."""
    top, left, bottom, right = w.pads
    nodes, constants = as_written(replace(w, pads=(0, 0, 0, 0)))
    nodes[0].input[0] = "wide"
    constants["pads"] = np.array([0, 0, top, left, 0, 0, bottom, right], np.int64)
    constants["value"] = np.array(OPS[w.op], np.float32)
    return [helper.make_node("Pad", ["x", "pads", "value"], ["wide"]), *nodes], constants


def turned(w: Windows) -> tuple[list[NodeProto], dict[str, Array]]:
    """Return the op with height and width exchanged, between two transpositions."""
    top, left, bottom, right = w.pads
    other = replace(
        w,
        weight=np.ascontiguousarray(w.weight.swapaxes(2, 3)),
        sizes=w.sizes[::-1],
        strides=w.strides[::-1],
        dilations=w.dilations[::-1],
        pads=(left, top, right, bottom),
    )
    turn = {"perm": [0, 1, 3, 2]}
    nodes, constants = as_written(other)
    nodes[0].input[0], nodes[0].output[0] = "turned", "back"
    first = helper.make_node("Transpose", ["x"], ["turned"], **turn)
    return [first, *nodes, helper.make_node("Transpose", ["back"], ["y"], **turn)], constants


WAYS: tuple[Callable[[Windows], tuple[list[NodeProto], dict[str, Array]]], ...] = (
    as_written,
    padded,
    turned,
)


def model(w: Windows, way: Callable[[Windows], Any]) -> ModelProto:
    """Return the graph that `way` makes of the op, with a bias and a Relu to fuse."""
    nodes, constants = way(w)
    channels = len(w.weight) if w.op == "Conv" else w.x.shape[1]
    constants = {**constants, "bias": np.linspace(-1, 1, channels, dtype=np.float32)[:, None, None]}
    nodes = [
        *nodes,
        helper.make_node("Add", ["y", "bias"], ["shifted"]),
        helper.make_node("Relu", ["shifted"], ["result"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, w.x.shape)],
        [helper.make_tensor_value_info("result", 1, ["n", "c", "h", "w"])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def _window(w: Windows, source: str, result: str) -> NodeProto:
    inputs = [source, "weight"] if w.op == "Conv" else [source]
    more = {"count_include_pad": 1} if w.op == "AveragePool" else {}
    return helper.make_node(
        w.op,
        inputs,
        [result],
        kernel_shape=w.sizes,
        strides=w.strides,
        dilations=w.dilations,
        pads=w.pads,
        **more,
    )
