"""An ONNX graph as it is drawn: values of known type, how exact they are and how large."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, checker, helper, numpy_helper, shape_inference

OPSET = 21
MAX_ELEMENTS = 4000

Draw = Callable[..., Any]

NARROW = {TensorProto.FLOAT16: 30.0, TensorProto.BFLOAT16: 3.9}
"""16-bit floats, and up to where sums and products of a few eighths are exact in them."""
LARGEST_NARROW = 1e4
FLOATS = (*[TensorProto.FLOAT] * 5, TensorProto.DOUBLE, *NARROW)
UNSIGNED = (TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64)
SIGNED = (TensorProto.INT32, TensorProto.INT64, TensorProto.INT8, TensorProto.INT16)
INTEGERS = (*SIGNED, *UNSIGNED)


@dataclass(frozen=True)
class Value:
    """A tensor of the graph.

    `exact` values come out equal, bit for bit, wherever they are computed: only they may be
    rounded, compared or cast. No element is larger than `bound`; where that is infinite, the
    value is read by nobody.
    """

    name: str
    type: int
    shape: tuple[int, ...]
    exact: bool
    bound: float

    @property
    def is_float(self) -> bool:
        return self.type in FLOATS

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass
class Draft:
    """The graph so far."""

    draw: Draw
    values: list[Value] = field(default_factory=list[Value])
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    inputs: dict[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])
    constants: dict[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])
    counter: int = 0
    is_portable: bool = True
    """True if every op has a meaning that others share: not so for casts out of range."""

    def fresh(self, kind: str) -> str:
        self.counter += 1
        return f"{kind}{self.counter}"

    def input(self, type: int, shape: tuple[int, ...]) -> Value:
        array = self._random(type, shape)
        value = Value(self.fresh("x"), type, shape, True, _largest(array))
        self.inputs[value.name] = array
        self.values.append(value)
        return value

    def constant(self, array: NDArray[Any]) -> Value:
        type = helper.np_dtype_to_tensor_dtype(array.dtype)
        value = Value(self.fresh("c"), type, array.shape, True, _largest(array))
        self.constants[value.name] = array
        return value

    def weight(self, type: int, shape: tuple[int, ...]) -> Value:
        return self.constant(self._random(type, shape))

    def integers(self, *numbers: int) -> Value:
        return self.constant(np.array(numbers, np.int64))

    def pick(self, accepts: Callable[[Value], bool]) -> Value | None:
        """Return a value that may be read, None if none fits."""
        fitting = [v for v in self.values if np.isfinite(v.bound) and accepts(v)]
        return self.draw(st.sampled_from(fitting)) if fitting else None

    def add(
        self,
        op: str,
        inputs: Sequence[Value | None],
        *,
        outputs: int = 1,
        exact: bool = False,
        bound: float = np.inf,
        **attributes: Any,
    ) -> list[Value]:
        """Add a node whose outputs get the types that ONNX infers; nothing if it cannot."""
        names = [self.fresh("v") for _ in range(outputs)]
        reads = [value.name if value else "" for value in inputs]
        node = helper.make_node(op, reads, names, **attributes)
        types = {v.name: helper.make_tensor_type_proto(v.type, v.shape) for v in inputs if v}
        data = {v.name: self.constants[v.name] for v in inputs if v and v.name in self.constants}
        tensors = {name: numpy_helper.from_array(array, name) for name, array in data.items()}
        schema = onnx.defs.get_schema(op, OPSET, "")
        try:
            inferred = shape_inference.infer_node_outputs(schema, node, types, tensors)
        except (checker.ValidationError, shape_inference.InferenceError, RuntimeError):
            return []
        made = [self._value(name, inferred.get(name), exact, bound) for name in names]
        if any(value is None or prod(value.shape) > MAX_ELEMENTS for value in made):
            return []
        if any(v and v.type in NARROW and LARGEST_NARROW < v.bound < np.inf for v in made):
            return []
        self.nodes.append(node)
        found = [value for value in made if value is not None]
        self.values += found
        return found

    def _value(
        self, name: str, type: onnx.TypeProto | None, exact: bool, bound: float
    ) -> Value | None:
        if type is None or not type.HasField("tensor_type"):
            return None
        tensor = type.tensor_type
        if not tensor.HasField("shape") or any(
            not d.HasField("dim_value") for d in tensor.shape.dim
        ):
            return None
        shape = tuple(d.dim_value for d in tensor.shape.dim)
        if tensor.elem_type == TensorProto.BOOL:
            exact, bound = exact, 1.0
        if tensor.elem_type in NARROW:
            exact = exact and bound <= NARROW[tensor.elem_type]
        return Value(name, tensor.elem_type, shape, exact, bound)

    def _random(self, type: int, shape: tuple[int, ...]) -> NDArray[Any]:
        """Multiples of 1/8 up to 3, or small integers: sums and products of a few are exact."""
        rng = np.random.default_rng(self.draw(st.integers(0, 2**32 - 1)))
        dtype = helper.tensor_dtype_to_np_dtype(type)
        if type in FLOATS:
            return (rng.integers(-24, 25, shape) / 8).astype(dtype)
        low = 0 if dtype.kind in "bu" else -5
        return rng.integers(low, 2 if dtype == np.bool_ else 6, shape).astype(dtype)

    def model(self) -> onnx.ModelProto:
        """Return the model: values without readers are outputs."""
        read = set(_read(self.nodes))
        made = {name for node in self.nodes for name in node.output}
        ends = [v for v in self.values if v.name in made and v.name not in read]
        graph = helper.make_graph(
            self.nodes,
            "fuzz",
            [
                helper.make_tensor_value_info(v.name, v.type, v.shape)
                for v in self.values
                if v.name in self.inputs
            ],
            [helper.make_tensor_value_info(v.name, v.type, v.shape) for v in ends],
            [
                numpy_helper.from_array(a, name)
                for name, a in self.constants.items()
                if name in read
            ],
        )
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=10)


def _read(nodes: Iterable[onnx.NodeProto]) -> Iterator[str]:
    """Yield the names that nodes and their nested nodes read."""
    for node in nodes:
        yield from node.input
        for attribute in node.attribute:
            yield from _read(attribute.g.node)


def _largest(array: NDArray[Any]) -> float:
    return float(np.abs(array.astype(np.float64)).max(initial=0.0))
