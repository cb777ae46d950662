"""Random ONNX models whose sizes data decide, with inputs for them.

A model begins with inputs of open dims, has operators whose operands' values decide the size of
results (masks, `Unique`, computed ends, repeats, boxes that overlap), and others that compute with
these results, among them further decisions.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

Inputs = dict[str, NDArray[Any]]
OPSET, IR_VERSION = 18, 9

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL

Size = int | str
"""The extent of a dim: a number, or a name, where equal names are equal extents."""

INPUT_SIZES = ("N", "M")
SIZES = (0, 1, 1, 2, 3, 5, 8, 13)
SHARES = (0.0, 0.5, 0.5, 1.0)
"""Shares of the elements of an input that are 0: none, half and all of a mask is then set."""


@dataclass(frozen=True)
class Value:
    """A tensor of the graph: small integers, or values computed from them."""

    name: str
    type: int
    shape: tuple[Size, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass(frozen=True)
class DataDecidedModel:
    """A model with the sizes of its inputs' dims and the input that each value is drawn for."""

    model: ModelProto
    inputs: Mapping[str, Value]
    whole: frozenset[str]
    """Inputs that are few small numbers: how often, how many, from where."""

    def draw(self, choice: random.Random) -> Inputs:
        """Return inputs of random sizes, with zeros in none, half or all of their elements."""
        sizes: dict[Size, int] = {}
        found: Inputs = {}
        for name, value in self.inputs.items():
            for size in value.shape:
                sizes.setdefault(size, size if isinstance(size, int) else choice.choice(SIZES))
            shape = [sizes[size] for size in value.shape]
            numbers = np.random.default_rng(choice.getrandbits(32))
            if name in self.whole:
                found[name] = numbers.integers(0, 5, shape)
                continue
            drawn = numbers.integers(1, 6, shape) * numbers.choice([-1, 1], shape)
            drawn *= numbers.random(shape) >= choice.choice(SHARES)
            found[name] = drawn.astype(helper.tensor_dtype_to_np_dtype(value.type))
        return found


class _Graph:
    """The graph so far: nodes, constants, and values that operators may take."""

    def __init__(self, choice: random.Random) -> None:
        self.choice = choice
        self.inputs: dict[str, Value] = {}
        self.whole: set[str] = set()
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self.values: list[Value] = []
        self.results: list[Value] = []
        """The results of all nodes."""
        self._numbers = count()

    def fresh(self, prefix: str) -> str:
        return f"{prefix}{next(self._numbers)}"

    def input(self, type_: int, *shape: Size, whole: bool = False) -> Value:
        """Return a new input; `whole` means one of a few small numbers, which nothing else uses."""
        value = Value(self.fresh("x"), type_, shape)
        self.inputs[value.name] = value
        if whole:
            self.whole.add(value.name)
        else:
            self.values.append(value)
        return value

    def constant(self, array: Any, type_: int = INT) -> Value:
        found = np.array(array, helper.tensor_dtype_to_np_dtype(type_))
        name = self.fresh("c")
        self.constants.append(numpy_helper.from_array(found, name))
        return Value(name, type_, found.shape)

    def op(self, kind: str, operands: list[Value], type_: int, *shape: Size, **how: Any) -> Value:
        return self.ops(kind, operands, (type_, shape), **how)[0]

    def ops(
        self, kind: str, operands: list[Value], *results: tuple[int, tuple[Size, ...]], **how: Any
    ) -> list[Value]:
        """Add a node, and return its results, which other nodes may take."""
        found = [Value(self.fresh("v"), type_, shape) for type_, shape in results]
        names = [value.name for value in found]
        self.results += found
        self.nodes.append(helper.make_node(kind, [v.name for v in operands], names, **how))
        return found

    def pick(self, fits: Callable[[Value], bool]) -> Value | None:
        fitting = [value for value in self.values if fits(value)]
        return self.choice.choice(fitting) if fitting else None

    def keep(self, *values: Value) -> None:
        self.values += values


def _is_number(value: Value) -> bool:
    return value.type in (FLOAT, INT) and value.rank > 0


def _mask(graph: _Graph, x: Value) -> Value:
    zero = graph.constant(0, x.type)
    return graph.op(graph.choice.choice(["Greater", "Less"]), [x, zero], BOOL, *x.shape)


def _non_zero(graph: _Graph, x: Value) -> None:
    graph.keep(graph.op("NonZero", [x], INT, x.rank, graph.fresh("n")))


def _masked(graph: _Graph, x: Value) -> None:
    """As PyTorch exports `x[x > 0]`."""
    size = graph.fresh("n")
    places = graph.op("NonZero", [_mask(graph, x)], INT, x.rank, size)
    turned = graph.op("Transpose", [places], INT, size, x.rank)
    graph.keep(graph.op("GatherND", [x, turned], x.type, size))


def _compress(graph: _Graph, x: Value) -> None:
    axis = graph.choice.randrange(x.rank)
    others = [i for i in range(x.rank) if i != axis]
    total = x
    if others:
        axes = graph.constant(others)
        total = graph.op("ReduceSum", [x, axes], x.type, x.shape[axis], keepdims=0)
    shape = [size if i != axis else graph.fresh("n") for i, size in enumerate(x.shape)]
    graph.keep(graph.op("Compress", [x, _mask(graph, total)], x.type, *shape, axis=axis))


def _unique(graph: _Graph, x: Value) -> None:
    size = graph.fresh("n")
    results = [(x.type, (size,)), (INT, (size,)), (INT, (graph.fresh("n"),)), (INT, (size,))]
    graph.keep(*graph.ops("Unique", [x], *results, sorted=graph.choice.randrange(2)))


def _unique_rows(graph: _Graph, x: Value) -> None:
    """Find unique rows or columns of at least one; of none, ONNX Runtime 1.32 ends the process."""
    axis, shape = graph.choice.randrange(2), [graph.choice.choice([1, 4, 6]), 2]
    rows = graph.input(x.type, *shape)
    found = [size if i != axis else graph.fresh("n") for i, size in enumerate(shape)]
    how = {"axis": axis, "sorted": graph.choice.randrange(2)}
    graph.keep(graph.op("Unique", [rows], x.type, *found, **how))


def _bounded(graph: _Graph, x: Value, most: int) -> Value:
    """Return a scalar from 0 to `most` that depends on the elements of x."""
    positive = graph.op("Abs", [x], x.type, *x.shape)
    total = graph.op("ReduceSum", [positive], x.type, keepdims=0)
    number = graph.op("Cast", [total], INT, to=INT)
    return graph.op("Mod", [number, graph.constant(most + 1)], INT)


def _as_list(graph: _Graph, scalar: Value) -> Value:
    return graph.op("Unsqueeze", [scalar, graph.constant([0])], INT, 1)


def _range(graph: _Graph, x: Value) -> None:
    end = _bounded(graph, x, 9)
    step = graph.choice.choice([1, 2, -1])
    first, last = (end, graph.constant(-1)) if step < 0 else (graph.constant(0), end)
    graph.keep(graph.op("Range", [first, last, graph.constant(step)], INT, graph.fresh("n")))


def _slice(graph: _Graph, x: Value) -> None:
    axis = graph.choice.randrange(x.rank)
    step = graph.choice.choice([1, 1, 2, -1])
    bounds = [graph.input(INT, 1, whole=True), _as_list(graph, _bounded(graph, x, 7))]
    graph.choice.shuffle(bounds)
    operands = [x, *bounds, graph.constant([axis]), graph.constant([step])]
    shape = [size if i != axis else graph.fresh("n") for i, size in enumerate(x.shape)]
    graph.keep(graph.op("Slice", operands, x.type, *shape))


def _top_k(graph: _Graph, x: Value) -> None:
    axis = graph.choice.randrange(x.rank)
    extent = graph.op("Shape", [x], INT, 1, start=axis, end=axis + 1)
    wanted = _as_list(graph, _bounded(graph, x, 4))
    k = graph.op("Min", [extent, wanted], INT, 1)
    shape = tuple(size if i != axis else graph.fresh("n") for i, size in enumerate(x.shape))
    how = {"axis": axis, "largest": graph.choice.randrange(2)}
    graph.keep(*graph.ops("TopK", [x, k], (x.type, shape), (INT, shape), **how))


def _expand(graph: _Graph, x: Value) -> None:
    size = graph.fresh("n")
    shape = graph.op("Shape", [x], INT, x.rank)
    times = _as_list(graph, _bounded(graph, x, 4))
    whole = graph.op("Concat", [times, shape], INT, x.rank + 1, axis=0)
    graph.keep(graph.op("Expand", [x, whole], x.type, size, *x.shape))


def _tile(graph: _Graph, x: Value) -> None:
    axis = graph.choice.randrange(x.rank)
    one = graph.constant([1])
    times = _as_list(graph, _bounded(graph, x, 3))
    parts = [times if i == axis else one for i in range(x.rank)]
    repeats = graph.op("Concat", parts, INT, x.rank, axis=0)
    shape = [size if i != axis else graph.fresh("n") for i, size in enumerate(x.shape)]
    graph.keep(graph.op("Tile", [x, repeats], x.type, *shape))


def _pad(graph: _Graph, x: Value) -> None:
    axis = graph.choice.randrange(x.rank)
    zero = graph.constant([0])
    before, after = graph.input(INT, 1, whole=True), _as_list(graph, _bounded(graph, x, 3))
    ends = [[end if i == axis else zero for i in range(x.rank)] for end in (before, after)]
    widths = graph.op("Concat", ends[0] + ends[1], INT, 2 * x.rank, axis=0)
    shape = [size if i != axis else graph.fresh("n") for i, size in enumerate(x.shape)]
    graph.keep(graph.op("Pad", [x, widths], x.type, *shape))


def _split(graph: _Graph, x: Value) -> None:
    axis = graph.choice.randrange(x.rank)
    extent = graph.op("Shape", [x], INT, 1, start=axis, end=axis + 1)
    part = graph.op("Min", [extent, _as_list(graph, _bounded(graph, x, 4))], INT, 1)
    rest = graph.op("Sub", [extent, part], INT, 1)
    sizes = graph.op("Concat", [part, rest], INT, 2, axis=0)
    shapes = [
        tuple(size if i != axis else graph.fresh("n") for i, size in enumerate(x.shape))
        for _ in range(2)
    ]
    results = [(x.type, shape) for shape in shapes]
    graph.keep(*graph.ops("Split", [x, sizes], *results, axis=axis))


def _filled(graph: _Graph, x: Value) -> None:
    sizes = [_as_list(graph, _bounded(graph, x, most)) for most in (3, 5)]
    shape = graph.op("Concat", sizes, INT, 2, axis=0)
    fill = helper.make_tensor("value", FLOAT, [1], [graph.choice.choice([0.0, 2.5])])
    result = (graph.fresh("n"), graph.fresh("n"))
    graph.keep(graph.op("ConstantOfShape", [shape], FLOAT, *result, value=fill))


def _repeated(graph: _Graph, x: Value) -> None:
    """Repeat rows as often as numbers say, as text-to-speech does with frames."""
    zero, first, second = graph.constant(0), graph.constant([0]), graph.constant([1])
    if x.shape[0] not in INPUT_SIZES:
        x = graph.input(x.type, INPUT_SIZES[0], 2)
    rows = x.shape[0]
    times = graph.input(INT, rows, whole=True)
    ends = graph.op("CumSum", [times, zero], INT, rows)
    total = graph.op("ReduceSum", [times, first], INT, keepdims=0)
    size = graph.fresh("n")
    frames = graph.op("Range", [zero, total, graph.constant(1)], INT, size)
    column = graph.op("Unsqueeze", [frames, second], INT, size, 1)
    row = graph.op("Unsqueeze", [ends, first], INT, 1, rows)
    after = graph.op("GreaterOrEqual", [column, row], BOOL, size, rows)
    counted = graph.op("Cast", [after], INT, size, rows, to=INT)
    which = graph.op("ReduceSum", [counted, second], INT, size, keepdims=0)
    graph.keep(graph.op("Gather", [x, which], x.type, size, *x.shape[1:], axis=0))


def _boxes(graph: _Graph, _: Value) -> None:
    """Boxes that overlap less than half, of computed corners or centers, and their scores."""
    boxes, size = graph.fresh("b"), graph.fresh("n")
    raw = graph.input(FLOAT, 1, boxes, 4)
    corners = graph.op("Abs", [raw], FLOAT, 1, boxes, 4)
    weights = graph.input(FLOAT, 1, graph.choice.choice([1, 2]), boxes)
    scores = graph.op("Sigmoid", [weights], FLOAT, *weights.shape)
    limits = [graph.constant([3]), graph.constant([0.5], FLOAT), graph.constant([0.4], FLOAT)]
    operands = [corners, scores, *limits]
    centers = graph.choice.randrange(2)
    chosen = graph.op("NonMaxSuppression", operands, INT, size, 3, center_point_box=centers)
    two = graph.constant(2)
    which = graph.op("Gather", [chosen, two], INT, size, axis=1)
    flat = graph.op("Squeeze", [raw, graph.constant([0])], FLOAT, boxes, 4)
    graph.keep(chosen, graph.op("Gather", [flat, which], FLOAT, size, 4, axis=0))


def _either(graph: _Graph, x: Value) -> None:
    """Rows twice or once, as the elements say."""
    zero = graph.constant(0)
    condition = graph.op("Greater", [_bounded(graph, x, 1), zero], BOOL)
    twice, once = graph.fresh("v"), graph.fresh("v")
    branches: dict[str, GraphProto] = {
        "then_branch": _branch(helper.make_node("Concat", [x.name, x.name], [twice], axis=0), x),
        "else_branch": _branch(helper.make_node("Neg", [x.name], [once]), x),
    }
    graph.keep(graph.op("If", [condition], x.type, graph.fresh("n"), *x.shape[1:], **branches))


def _branch(node: NodeProto, x: Value) -> GraphProto:
    rest = [size if isinstance(size, int) else None for size in x.shape[1:]]
    result = helper.make_tensor_value_info(node.output[0], x.type, [None, *rest])
    return helper.make_graph([node], "branch", [], [result])


def _collected(graph: _Graph, x: Value) -> None:
    """Partial sums until they reach a limit, together with each of them."""
    step = graph.op("Add", [_bounded(graph, x, 4), graph.constant(1)], INT)
    limit, names = graph.input(INT, whole=True), [graph.fresh("v") for _ in range(5)]
    turn, going, before, total, less = names
    nodes = [
        helper.make_node("Add", [before, step.name], [total]),
        helper.make_node("Less", [total, limit.name], [less]),
        helper.make_node("Mul", [total, total], [square := graph.fresh("v")]),
    ]
    scalar = [(turn, INT), (going, BOOL), (before, INT)]
    results = [(less, BOOL), (total, INT), (square, INT)]
    body = helper.make_graph(
        nodes,
        "body",
        [helper.make_tensor_value_info(name, type_, []) for name, type_ in scalar],
        [helper.make_tensor_value_info(name, type_, []) for name, type_ in results],
    )
    most = graph.constant(graph.choice.choice([0, 3, 40]))
    operands = [most, graph.constant(True, BOOL), graph.constant(0)]
    last = (INT, ()), (INT, (graph.fresh("n"),))
    graph.keep(graph.ops("Loop", operands, *last, body=body)[1])


DECISIONS = (
    _non_zero, _masked, _compress, _unique, _unique_rows, _range, _slice, _top_k, _expand, _tile,
    _pad, _split, _filled, _repeated, _boxes, _either, _collected,
)  # fmt: skip


def _unary(graph: _Graph, x: Value) -> None:
    graph.keep(graph.op(graph.choice.choice(["Neg", "Abs", "Sign"]), [x], x.type, *x.shape))


def _binary(graph: _Graph, x: Value) -> None:
    other = graph.pick(lambda value: value.type == x.type and value.shape == x.shape) or x
    kind = graph.choice.choice(["Add", "Sub", "Max", "Min"])
    operands = [x, other] if kind in ("Add", "Sub") else [x, other, x]
    graph.keep(graph.op(kind, operands, x.type, *x.shape))


def _cast(graph: _Graph, x: Value) -> None:
    other = INT if x.type == FLOAT else FLOAT
    graph.keep(graph.op("Cast", [x], other, *x.shape, to=other))


def _turned(graph: _Graph, x: Value) -> None:
    order = graph.choice.sample(range(x.rank), x.rank)
    graph.keep(graph.op("Transpose", [x], x.type, *(x.shape[i] for i in order), perm=order))


def _sum(graph: _Graph, x: Value) -> None:
    axis = graph.choice.randrange(x.rank)
    shape = [size for i, size in enumerate(x.shape) if i != axis]
    graph.keep(graph.op("ReduceSum", [x, graph.constant([axis])], x.type, *shape, keepdims=0))


def _softmax(graph: _Graph, x: Value) -> None:
    """Return a result that only the model itself returns: rounded values must not decide
    anything."""
    real = graph.op("Cast", [x], FLOAT, *x.shape, to=FLOAT)
    graph.op("Softmax", [real], FLOAT, *x.shape, axis=-1)


def _product(graph: _Graph, x: Value) -> None:
    """Return the matmul with its own transpose: both dims may be decided by data."""
    real = graph.op("Cast", [x], FLOAT, *x.shape, to=FLOAT)
    turned = graph.op("Transpose", [real], FLOAT, *reversed(x.shape))
    if x.rank == 2:
        graph.keep(graph.op("MatMul", [real, turned], FLOAT, x.shape[0], x.shape[0]))


def _joined(graph: _Graph, x: Value) -> None:
    rest = x.shape[1:]
    other = graph.pick(lambda v: v.type == x.type and v.rank > 0 and v.shape[1:] == rest) or x
    graph.keep(graph.op("Concat", [x, other], x.type, graph.fresh("n"), *rest, axis=0))


def _flat(graph: _Graph, x: Value) -> None:
    graph.keep(graph.op("Reshape", [x, graph.constant([-1])], x.type, graph.fresh("n")))


def _running(graph: _Graph, x: Value) -> None:
    axis = graph.constant(graph.choice.randrange(x.rank))
    graph.keep(graph.op("CumSum", [x, axis], x.type, *x.shape))


OTHERS = (_unary, _binary, _cast, _turned, _sum, _softmax, _product, _joined, _flat, _running)


def data_decided_model(seed: int) -> DataDecidedModel:
    """Return the model of a seed: one to three decisions, with other operators around them."""
    choice = random.Random(seed)
    graph = _Graph(choice)
    for _ in range(choice.choice([1, 1, 2])):
        sizes: list[Size] = [*INPUT_SIZES, choice.choice([2, 3, 4])]
        shape = choice.sample(sizes, choice.choice([1, 2]))
        graph.input(choice.choice([FLOAT, FLOAT, INT]), *shape)
    steps = [DECISIONS] * choice.choice([1, 2, 3]) + [OTHERS] * choice.choice([0, 2, 4])
    choice.shuffle(steps)
    for step in steps:
        # The last values are likely to depend on decisions.
        recent = [value for value in graph.values[-4:] if _is_number(value) and value.rank < 4]
        x = choice.choice(recent) if recent else graph.pick(_is_number)
        if x is not None:
            choice.choice(step)(graph, x)
    return DataDecidedModel(_model(graph), graph.inputs, frozenset(graph.whole))


def _model(graph: _Graph) -> ModelProto:
    taken = {name for node in graph.nodes for name in node.input}
    results = [value for value in graph.results if value.name not in taken]
    proto = helper.make_graph(
        graph.nodes,
        "decided",
        [helper.make_tensor_value_info(v.name, v.type, v.shape) for v in graph.inputs.values()],
        [helper.make_tensor_value_info(v.name, v.type, [None] * v.rank) for v in results],
        graph.constants,
    )
    opset = helper.make_opsetid("", OPSET)
    return helper.make_model(proto, opset_imports=[opset], ir_version=IR_VERSION)
