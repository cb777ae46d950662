"""Random graphs of elementwise ops and movements, with equivalent rewritten forms."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper, numpy_helper

Array = NDArray[Any]

NUMBERS = (1.5 * 2.0**23, -1.5 * 2.0**23, 1e30, 1e-30, 0.1, 3.0, 10.0, 2.0, 1e-40, 0.0, -0.0, 3e38)
SPECIAL = (0.0, -0.0, 1e-40, -1e-45, 1e-38, 3e38, -3e38, np.inf, -np.inf, np.nan, 0.5, 1.5, -2.5)
UNARY = ("Neg", "Abs", "Floor", "Ceil", "Round", "Sqrt", "Relu", "Reciprocal")
BINARY = ("Add", "Sub", "Mul", "Div")


@dataclass
class Graph:
    """The nodes and constants of a graph; with `rewrites`, identities are inserted."""

    random: Any
    rewrites: bool
    prefix: str = ""
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    constants: dict[str, Array] = field(default_factory=dict[str, Array])
    count: int = 0

    def constant(self, array: Any, kind: Any = np.float32) -> str:
        self.count += 1
        name = f"{self.prefix}c{self.count}"
        self.constants[name] = np.asarray(array, kind)
        return name

    def add(self, op: str, *operands: str, **attributes: Any) -> str:
        self.count += 1
        name = f"{self.prefix}v{self.count}"
        self.nodes.append(helper.make_node(op, list(operands), [name], **attributes))
        return name

    def same(self, value: str, shape: tuple[int, ...]) -> str:
        """Return `value`, maybe through ops that change no bit of it."""
        if not self.rewrites or self.random.random() < 0.4:
            return value
        way = WAYS[int(self.random.integers(len(WAYS)))]
        return way(self, value, shape)


def transposed(g: Graph, x: str, shape: tuple[int, ...]) -> str:
    return g.add("Transpose", g.add("Transpose", x, perm=[2, 0, 1]), perm=[1, 2, 0])


def reshaped(g: Graph, x: str, shape: tuple[int, ...]) -> str:
    flat = g.add("Reshape", x, g.constant([-1], np.int64))
    turned = g.add("Reshape", flat, g.constant(shape[::-1], np.int64))
    return g.add("Reshape", turned, g.constant(shape, np.int64))


def cut_and_joined(g: Graph, x: str, shape: tuple[int, ...]) -> str:
    axis = int(g.random.integers(3))
    if shape[axis] < 2:
        return x
    sizes = g.constant([1, shape[axis] - 1], np.int64)
    g.count += 1
    parts = [f"{g.prefix}p{g.count}{half}" for half in "ab"]
    g.nodes.append(helper.make_node("Split", [x, sizes], parts, axis=axis))
    return g.add("Concat", *parts, axis=axis)


def neutral(g: Graph, x: str, shape: tuple[int, ...]) -> str:
    op, number = [("Mul", 1), ("Div", 1), ("Sub", 0.0), ("Add", -0.0)][int(g.random.integers(4))]
    return g.add(op, x, g.constant(number))


def negated_twice(g: Graph, x: str, shape: tuple[int, ...]) -> str:
    return g.add("Neg", g.add("Neg", x))


def padded_and_cut(g: Graph, x: str, shape: tuple[int, ...]) -> str:
    wide = g.add("Pad", x, g.constant([0, 1, 0, 0, 0, 2], np.int64), g.constant(7.0))
    starts, ends, axes = ([1, 0], [1 + shape[1], shape[2]], [1, 2])
    return g.add("Slice", wide, *(g.constant(v, np.int64) for v in (starts, ends, axes)))


def wide(g: Graph, x: str, shape: tuple[int, ...]) -> str:
    return g.add("Cast", g.add("Cast", x, to=11), to=1)


def two_batches(g: Graph, x: str, shape: tuple[int, ...]) -> str:
    both = g.add("Concat", x, x, axis=0)
    bounds = [[shape[0]], [2 * shape[0]], [0]]
    return g.add("Slice", both, *(g.constant(v, np.int64) for v in bounds))


def chosen(g: Graph, x: str, shape: tuple[int, ...]) -> str:
    mask = g.constant(g.random.integers(0, 2, shape), np.bool_)
    return g.add("Where", mask, x, g.add("Identity", x))


def expanded(g: Graph, x: str, shape: tuple[int, ...]) -> str:
    return g.add("Expand", x, g.constant([1, 1, 1], np.int64))


WAYS = (
    transposed,
    reshaped,
    cut_and_joined,
    neutral,
    negated_twice,
    padded_and_cut,
    wide,
    two_batches,
    chosen,
    expanded,
)


def grown(seed: int, prefix: str, rewrites: bool) -> tuple[Graph, str, tuple[int, ...]]:
    """Return the graph of a seed, rewritten or not, with names that begin with `prefix`.

    One random generator draws the computation, another one its rewrites.
    """
    random = np.random.default_rng(seed)
    g = Graph(np.random.default_rng((seed, 1)), rewrites, prefix)
    shape = tuple(int(random.integers(1, 7)) for _ in range(3))
    values = ["x", "y"]
    for _ in range(int(random.integers(2, 8))):
        x = g.same(values[int(random.integers(len(values)))], shape)
        if random.random() < 0.25:
            values.append(g.add(UNARY[int(random.integers(len(UNARY)))], x))
            continue
        op = BINARY[int(random.integers(len(BINARY)))]
        if random.random() < 0.7:
            number = NUMBERS[int(random.integers(len(NUMBERS)))]
            per_channel = random.random() < 0.3
            other = g.constant(np.full((1, shape[1], 1), number) if per_channel else number)
            if per_channel and rewrites and g.random.random() < 0.5:
                other = g.add("Expand", other, g.constant(shape, np.int64))
            back = {"Add": "Sub", "Sub": "Add", "Mul": "Div", "Div": "Mul"}[op]
            is_left = op in ("Add", "Mul") and random.random() < 0.3
            value = g.add(op, *((other, x) if is_left else (x, other)))
            if random.random() < 0.5:
                value = g.add(back, g.same(value, shape), other)
        else:
            value = g.add(op, x, g.same(values[int(random.integers(len(values)))], shape))
        values.append(value)
    return g, g.same(values[-1], shape), shape


def inputs(seed: int, shape: tuple[int, ...]) -> dict[str, Array]:
    """Return inputs of all magnitudes, with NaN, infinities and denormals."""
    random = np.random.default_rng((seed, 2))
    found: dict[str, Array] = {}
    for name in "xy":
        sizes = 10.0 ** random.integers(-44, 39, shape) if random.random() < 0.5 else 3.0
        with np.errstate(all="ignore"):
            values = (sizes * random.standard_normal(shape)).astype(np.float32)
        special = random.choice(np.array(SPECIAL, np.float32), shape)
        found[name] = np.where(random.random(shape) < 0.3, special, values)
    return found


def model(parts: list[tuple[Graph, str]], shape: tuple[int, ...]) -> ModelProto:
    """Return the model of inputs x and y whose outputs are the results of `parts`."""
    nodes = [node for graph, _ in parts for node in graph.nodes]
    results = []
    for graph, value in parts:
        nodes.append(helper.make_node("Identity", [value], [f"{graph.prefix}result"]))
        results.append(helper.make_tensor_value_info(f"{graph.prefix}result", 1, shape))
    constants = [
        numpy_helper.from_array(array, name)
        for graph, _ in parts
        for name, array in graph.constants.items()
    ]
    arguments = [helper.make_tensor_value_info(name, 1, shape) for name in "xy"]
    graph = helper.make_graph(nodes, "g", arguments, results, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
