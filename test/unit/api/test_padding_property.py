"""Random graphs: wherever padding is proven, the first rows of a padded run are those without.

Padding is garbage here, since the proof assumes nothing about it.
"""

from collections.abc import Callable, Iterator
from itertools import count

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from braid.analysis.interpreter import interpret
from braid.dialects.braid.variants import padded_from
from braid.driver.sources.buckets import read_bucketed
from braid.frontends.onnx import import_onnx

node = helper.make_node
LARGEST, ROW = 4, (4, 3)
CONSTANTS: dict[str, np.ndarray] = {
    "zero": np.array([0]),
    "one": np.array([1]),
    "two": np.array([2]),
    "three": np.array([3]),
    "last": np.array([-1]),
    "first": np.array([np.iinfo(np.int64).min]),
    "around": np.array([0, 0, 1, 0, 0, 1]),
    "columns": np.array([2, 0, 1]),
    "rows": np.array([3, 1, 1, 0]),
    "flat": np.array([-1, 12]),
    "back": np.array([-1, 4, 3]),
    "keep": np.array([0, 4, 3]),
    "mixed": np.array([4, -1, 3]),
    "least": np.array(0, np.int64),
    "most": np.array(2, np.int64),
    "doubled": np.array([1, 1, 2], np.float32),
    "square": np.random.default_rng(0).standard_normal((12, 12)).astype(np.float32) / 4,
    "kernel": np.random.default_rng(1).standard_normal((4, 4, 3)).astype(np.float32) / 4,
}
Made = Callable[[str, str, Iterator[str]], list[NodeProto]]
"""From the names of a value and of a result to the nodes between them."""


def chain(*steps: tuple[str, list[str], dict[str, object]]) -> Made:
    """Nodes in a row; `x` is the value at hand, `v` the value at the beginning."""

    def made(value: str, result: str, names: Iterator[str]) -> list[NodeProto]:
        nodes: list[NodeProto] = []
        at = value
        for index, (op, inputs, attributes) in enumerate(steps):
            out = result if index == len(steps) - 1 else next(names)
            given = [{"x": at, "v": value}.get(name, name) for name in inputs]
            outputs = [out] if op != "TopK" else [out, next(names)]
            nodes.append(node(op, given, outputs, **attributes))
            at = out
        return nodes

    return made


def by_index(op: str, axis: int) -> Made:
    """Elements at, or scattered to, indices that are computed of the value, 0 to 2."""

    def made(value: str, result: str, names: Iterator[str]) -> list[NodeProto]:
        absolute, whole, index = next(names), next(names), next(names)
        given = [value, index] if op == "GatherElements" else [value, index, value]
        return [
            node("Abs", [value], [absolute]),
            node("Cast", [absolute], [whole], to=TensorProto.INT64),
            node("Clip", [whole, "least", "most"], [index]),
            node(op, given, [result], axis=axis),
        ]

    return made


INDEPENDENT: dict[str, Made] = {
    "tanh": chain(("Tanh", ["x"], {})),
    "reflection": chain(
        ("Pad", ["x", "around"], {"mode": "reflect"}),
        ("Slice", ["x", "one", "four", "two"], {}),
    ),
    "edge": chain(
        ("Pad", ["x", "around"], {"mode": "edge"}),
        ("Slice", ["x", "zero", "three", "two"], {}),
    ),
    "columns": chain(("Gather", ["x", "columns"], {"axis": 2})),
    "rows": chain(("Gather", ["x", "rows"], {"axis": 1})),
    "elements": by_index("GatherElements", 2),
    "scattered": by_index("ScatterElements", 2),
    "top": chain(("TopK", ["x", "three"], {"axis": 2})),
    "softmax": chain(("Softmax", ["x"], {"axis": 1})),
    "sums": chain(("CumSum", ["x", "two"], {})),
    "product": chain(
        ("Reshape", ["x", "flat"], {}),
        ("MatMul", ["x", "square"], {}),
        ("Reshape", ["x", "back"], {}),
    ),
    "window": chain(("Conv", ["x", "kernel"], {"pads": [1, 1]})),
    "resized": chain(
        ("Resize", ["x", "", "doubled"], {"mode": "linear"}),
        ("Slice", ["x", "one", "four", "two"], {}),
    ),
    "transposed": chain(("Transpose", ["x"], {"perm": [0, 2, 1]}), ("Reshape", ["x", "keep"], {})),
}
DEPENDENT: dict[str, Made] = {
    "softmax": chain(("Softmax", ["x"], {"axis": 0})),
    "sums": chain(("CumSum", ["x", "zero"], {"reverse": 1})),
    "sums from the start": chain(("CumSum", ["x", "zero"], {})),
    "reversed": chain(("Slice", ["x", "last", "first", "zero", "last"], {})),
    "mean": chain(("ReduceMean", ["x"], {"axes": [0]}), ("Sub", ["v", "x"], {})),
    "first of all": chain(("TopK", ["x", "one"], {"axis": 0}), ("Add", ["v", "x"], {})),
    "last": chain(("Gather", ["x", "last"], {"axis": 0}), ("Add", ["v", "x"], {})),
    "first": chain(("Gather", ["x", "zero"], {"axis": 0}), ("Add", ["v", "x"], {})),
    "scattered": by_index("ScatterElements", 0),
    "elements": by_index("GatherElements", 0),
    "mixed": chain(
        ("Reshape", ["x", "mixed"], {}),
        ("Softmax", ["x"], {"axis": 0}),
        ("Reshape", ["x", "back"], {}),
    ),
    "transposed": chain(("Transpose", ["x"], {"perm": [1, 0, 2]}), ("Reshape", ["x", "back"], {})),
    "size": chain(
        ("Shape", ["x"], {"start": 0, "end": 1}),
        ("Cast", ["x"], {"to": TensorProto.FLOAT}),
        ("Mul", ["x", "v"], {}),
    ),
}


def model(ops: list[Made]) -> ModelProto:
    names = (f"t{number}" for number in count())
    nodes, value = list[NodeProto](), "x"
    for index, op in enumerate(ops):
        result = "y" if index == len(ops) - 1 else next(names)
        nodes += op(value, result, names)
        value = result
    constants = CONSTANTS | {"four": np.array([4])}
    used = {name for each in nodes for name in each.input}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *ROW])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", *ROW])],
        [numpy_helper.from_array(value, name) for name, value in constants.items() if name in used],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def least_padded(proto: ModelProto, rng: np.random.Generator) -> int | None:
    """Return the least padded size, after a check of the results of all padded sizes."""
    source = read_bucketed(proto, buckets={"n": [LARGEST]})
    least = padded_from(source.module).get("n")
    for size in range(least or LARGEST, LARGEST):
        large = 2 * rng.standard_normal((LARGEST, *ROW)).astype(np.float32)
        (padded,) = interpret(
            source.module, [large], function="main_0", parameters=source.parameters
        )
        small = import_onnx(proto, dims={"n": size})
        (expected,) = interpret(small.module, [large[:size]], parameters=small.parameters)
        np.testing.assert_allclose(padded[:size], expected, rtol=1e-5, atol=1e-6)
    return least


@pytest.mark.parametrize("kind", INDEPENDENT)
def test_rows_apart_are_padded(kind: str) -> None:
    assert least_padded(model([INDEPENDENT[kind]]), np.random.default_rng(0)) == 1


@pytest.mark.parametrize(
    "kind", [k for k in DEPENDENT if k not in ("sums from the start", "first")]
)
def test_rows_that_need_each_other_are_not(kind: str) -> None:
    assert least_padded(model([DEPENDENT[kind]]), np.random.default_rng(0)) is None


def test_random_graphs() -> None:
    rng = np.random.default_rng(0)
    independent, all_of_them = (
        list(INDEPENDENT.values()),
        [*INDEPENDENT.values(), *DEPENDENT.values()],
    )
    for number in range(60):
        known = independent if number % 3 else all_of_them
        ops = [known[i] for i in rng.integers(0, len(known), rng.integers(2, 6))]
        least = least_padded(model(ops), rng)
        assert least == 1 or known is all_of_them
