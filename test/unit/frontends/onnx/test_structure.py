"""Models whose names and graphs are wrong at all shapes, and similar valid ones.

The checker or ONNX Runtime refuses each of the former, and both take each of the latter.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto
from onnx.helper import (
    make_function,
    make_graph,
    make_model,
    make_node,
    make_opsetid,
    make_tensor_value_info,
)
from onnx.numpy_helper import from_array

import braid
from braid.frontends.onnx import import_onnx
from braid.support.errors import BraidError

FLOAT, INT32, INT64, BOOL = (
    TensorProto.FLOAT,
    TensorProto.INT32,
    TensorProto.INT64,
    TensorProto.BOOL,
)
X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


def value(name: str, kind: int = FLOAT, shape: Sequence[int] = (2, 3)) -> ValueInfoProto:
    return make_tensor_value_info(name, kind, shape)


def branch(nodes: Sequence[NodeProto], *outputs: ValueInfoProto, **inputs: int) -> GraphProto:
    return make_graph(nodes, "s", [value(name, kind) for name, kind in inputs.items()], outputs)


def model_of(
    nodes: Sequence[NodeProto],
    functions: Sequence[FunctionProto] = (),
    *,
    inputs: Sequence[ValueInfoProto] = (value("x"),),
    outputs: Sequence[str] = ("y",),
    domains: Sequence[str] = ("own",),
    kind: int = FLOAT,
) -> ModelProto:
    graph = make_graph(
        nodes,
        "g",
        [*inputs, value("c", BOOL, ())],
        [value(name, kind, (3, 2, 3) if name == "o" else (2, 3)) for name in outputs],
        [from_array(np.array(3), "k")],
    )
    opsets = [make_opsetid("", 18), *(make_opsetid(domain, 1) for domain in domains)]
    return make_model(graph, opset_imports=opsets, functions=functions, ir_version=9)


def if_node(then: GraphProto, otherwise: GraphProto, output: str = "y") -> NodeProto:
    return make_node("If", ["c"], [output], name="if", then_branch=then, else_branch=otherwise)


RIGHT = branch([make_node("Abs", ["x"], ["p"])], value("p"))


def if_model(otherwise: GraphProto) -> ModelProto:
    return model_of([if_node(RIGHT, otherwise)])


ITERATION, CONDITION = value("i", INT64, ()), value("d", BOOL, ())
GOES_ON = make_node("Identity", ["d"], ["d2"])


def loop_model(
    node: NodeProto, inputs: Sequence[ValueInfoProto], output: ValueInfoProto
) -> ModelProto:
    body = make_graph([GOES_ON, node], "b", inputs, [value("d2", BOOL, ()), output])
    return model_of(
        [make_node("Loop", ["k", "", "x"], ["y"], name="loop", body=body)],
        kind=output.type.tensor_type.elem_type,
    )


def function(name: str = "f", **changes: Sequence[str]) -> FunctionProto:
    return make_function(
        "own",
        name,
        changes.get("inputs", ["a"]),
        changes.get("outputs", ["b"]),
        [make_node("Neg", ["a"], ["b"])],
        [make_opsetid("", 18)],
    )


CALL = make_node("f", ["x"], ["y"], name="call", domain="own")

INVALID = {
    "carried value changes its elements": (
        loop_model(
            make_node("Cast", ["v"], ["w"], to=INT32),
            [ITERATION, CONDITION, value("v")],
            value("w", INT32),
        ),
        "carried value 'v' has elements of f32, then of i32",
    ),
    "input of a body is declared otherwise": (
        loop_model(
            make_node("Add", ["v", "v"], ["w"]),
            [ITERATION, CONDITION, value("v", INT32)],
            value("w"),
        ),
        "input 'v' of its graph is declared as int32, but is float32",
    ),
    "number of an iteration is a float": (
        loop_model(
            make_node("Add", ["v", "v"], ["w"]),
            [value("i", FLOAT, ()), CONDITION, value("v")],
            value("w"),
        ),
        "input 'i' of its graph is declared as float32, but is int64",
    ),
    "inputs of a body have one name": (
        model_of(
            [
                make_node(
                    "Loop",
                    ["k", "", "x", "x"],
                    ["y", "z"],
                    body=make_graph(
                        [GOES_ON, make_node("Neg", ["v"], ["w"])],
                        "b",
                        [ITERATION, CONDITION, value("v"), value("v")],
                        [value("d2", BOOL, ()), value("w"), value("w")],
                    ),
                )
            ]
        ),
        "graph 'b' has 2 inputs 'v'",
    ),
    "branches have different elements": (
        if_model(branch([make_node("Cast", ["x"], ["q"], to=INT32)], value("q", INT32))),
        "the branches give elements of f32 and of i32",
    ),
    "branch with an input": (
        if_model(branch([make_node("Neg", ["x"], ["q"])], value("q"), z=FLOAT)),
        r"node 'if' \(If\) has a branch with inputs 'z'",
    ),
    "branch uses what is nowhere": (
        if_model(branch([make_node("Neg", ["nowhere"], ["q"])], value("q"))),
        r"node 'q' \(Neg\) uses 'nowhere', which nothing produces",
    ),
    "branch defines a name twice": (
        if_model(
            branch([make_node("Neg", ["x"], ["q"]), make_node("Abs", ["x"], ["q"])], value("q"))
        ),
        "'q' is defined several times in graph 's'",
    ),
    "branch defines a name from around it": (
        if_model(branch([make_node("Neg", ["x"], ["k"])], value("k"))),
        r"'k' is defined in a graph of node 'if' \(If\), and before in a graph around it",
    ),
    "branch gives a value from around it": (
        if_model(branch([], value("x"))),
        "graph 's' gives 'x', which it does not define",
    ),
    "branch with an op that ONNX does not have": (
        if_model(branch([make_node("Nonesuch", ["x"], ["q"])], value("q"))),
        r"node 'q' \(Nonesuch\) is of a type that ONNX does not have",
    ),
    "branch with elements that an op does not take": (
        if_model(
            branch(
                [make_node("Cast", ["x"], ["t"], to=INT32), make_node("Sin", ["t"], ["q"])],
                value("q", INT32),
            )
        ),
        r"node 'q' \(Sin\): input 0 \('input'\) has element type int32",
    ),
    "two inputs of one name": (
        model_of([make_node("Neg", ["x"], ["y"])], inputs=[value("x"), value("x")]),
        "graph 'g' has 2 inputs 'x'",
    ),
    "two functions of one name": (
        model_of([CALL], [function(), function()]),
        "function 'own.f' is defined 2 times",
    ),
    "function of a domain without an opset": (
        model_of([CALL], [function()], domains=()),
        r"node 'call' \(f\) is of domain 'own', without an opset",
    ),
    "function gives a value twice": (
        model_of([make_node("f", ["x"], ["y", "z"], domain="own")], [function(outputs=["b", "b"])]),
        "function 'own.f' gives 'b' 2 times",
    ),
    "function gives what it does not make": (
        model_of([CALL], [function(outputs=["z"])]),
        "function 'own.f' gives 'z', which it does not define",
    ),
}


def is_refused_by_others(model: ModelProto) -> bool:
    """Return whether the checker refuses a model, or ONNX Runtime where the checker does not."""
    try:
        onnx.checker.check_model(model, full_check=True)
        onnxruntime.InferenceSession(model.SerializeToString())
    except Exception:
        return True
    return False


@pytest.mark.parametrize("name", INVALID)
def test_what_is_wrong_at_all_shapes_is_an_error(name: str) -> None:
    model, message = INVALID[name]
    assert is_refused_by_others(model)
    with pytest.raises(BraidError, match=message) as raised:
        import_onnx(model)
    assert raised.value.location is not None


def loop_with_own_names() -> ModelProto:
    body = make_graph(
        [
            GOES_ON,
            make_node("Add", ["v", "v"], ["v2"]),
            make_node("Identity", ["v2"], ["o"]),
        ],
        "b",
        [ITERATION, CONDITION, value("v")],
        [value("d2", BOOL, ()), value("v2"), value("o")],
    )
    return model_of([make_node("Loop", ["k", "", "x"], ["y", "o"], body=body)], outputs=["y", "o"])


VALID = {
    "name of the output": model_of(
        [
            if_node(
                branch([make_node("Neg", ["x"], ["y"])], value("y")),
                branch([make_node("Abs", ["x"], ["y"])], value("y")),
            )
        ]
    ),
    "names of a loop's outputs": loop_with_own_names(),
    "name of a later value": model_of(
        [
            if_node(
                branch(
                    [make_node("Neg", ["x"], ["z"]), make_node("Abs", ["z"], ["p"])], value("p")
                ),
                branch([make_node("Abs", ["x"], ["q"])], value("q")),
                "t",
            ),
            make_node("Exp", ["t"], ["z"]),
            make_node("Add", ["z", "t"], ["y"]),
        ]
    ),
    "names of the other branch": model_of(
        [
            if_node(
                branch(
                    [make_node("Neg", ["x"], ["p"]), make_node("Exp", ["p"], ["q"])], value("q")
                ),
                branch(
                    [make_node("Abs", ["x"], ["q"]), make_node("Exp", ["q"], ["p"])], value("p")
                ),
            )
        ]
    ),
}


@pytest.mark.parametrize("name", VALID)
@pytest.mark.parametrize("condition", [True, False])
def test_names_of_inner_graphs_are_their_own(name: str, condition: bool) -> None:
    model = VALID[name]
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    expected = session.run(None, {"x": X, "c": np.array(condition)})
    found = braid.compile(model, jobs=1)(X, np.array(condition))
    for one, other in zip(found if isinstance(found, tuple) else [found], expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_a_loop_that_grows_is_unrolled() -> None:
    """A state whose open size differs after each iteration does not keep its size."""
    body = make_graph(
        [GOES_ON, make_node("Concat", ["v", "v"], ["w"], axis=0)],
        "b",
        [ITERATION, CONDITION, value("v", FLOAT, ("n", 3))],
        [value("d2", BOOL, ()), value("w", FLOAT, ("m", 3))],
    )
    model = model_of([make_node("Loop", ["k", "", "x"], ["y"], body=body)])
    model.graph.input[0].CopyFrom(value("x", FLOAT, ("n", 3)))
    model.graph.output[0].CopyFrom(value("y", FLOAT, ("m", 3)))
    compiled = braid.compile(model, jobs=1)
    for rows in (1, 2, 5):
        x = np.ones((rows, 3), np.float32)
        np.testing.assert_array_equal(compiled(x, np.array(True)), np.ones((8 * rows, 3)))


@pytest.mark.parametrize(
    ("node", "weight", "opset", "message"),
    [
        (make_node("Upsample", ["x", "w"], ["y"]), [1, 1, 2, 2], 10, "no such op any more"),
        (make_node("Scatter", ["x", "w", "x"], ["y"]), [0], 11, "no such op any more"),
        (
            make_node("GroupNormalization", ["x", "w", "w"], ["y"], num_groups=2),
            [1, 2, 3, 4],
            18,
            r"its scale has shape \[4\], expected \[2\]",
        ),
        (
            make_node("GroupNormalization", ["x", "w", "w"], ["y"], num_groups=2),
            [1, 2],
            21,
            r"its scale has shape \[2\], expected \[4\]",
        ),
    ],
)
def test_ops_of_other_opsets(
    node: NodeProto, weight: Sequence[int], opset: int, message: str
) -> None:
    graph = make_graph(
        [node],
        "g",
        [value("x", FLOAT, (1, 4, 2, 2))],
        [value("y", FLOAT, (1, 4, 4, 4))],
        [from_array(np.array(weight, np.float32), "w")],
    )
    model = make_model(graph, opset_imports=[make_opsetid("", opset)], ir_version=8)
    with pytest.raises(BraidError, match=message):
        import_onnx(model)


def test_a_newer_format() -> None:
    model = model_of([make_node("Neg", ["x"], ["y"])])
    model.ir_version = 99
    with pytest.raises(BraidError, match="IR version 99, expected at most"):
        import_onnx(model)


TEXTS = {
    "graph": lambda m: setattr(m.graph, "name", "QQQQ"),
    "op": lambda m: setattr(m.graph.node[0], "op_type", "QQQQ"),
    "domain": lambda m: setattr(m.graph.node[0], "domain", "QQQQ"),
    "node": lambda m: setattr(m.graph.node[0], "name", "QQQQ"),
    "operand": lambda m: m.graph.node[0].input.append("QQQQ"),
    "attribute": lambda m: m.graph.node[0].attribute.add(name="QQQQ", type=2, i=1),
    "dim": lambda m: m.graph.input[0].type.tensor_type.shape.dim.add(dim_param="QQQQ"),
    "weight": lambda m: m.graph.initializer.append(from_array(X, "QQQQ")),
    "metadata": lambda m: m.metadata_props.add(key="a", value="QQQQ"),
    "opset": lambda m: m.opset_import.add(domain="QQQQ", version=1),
}


@pytest.mark.parametrize("change", TEXTS.values(), ids=TEXTS)
def test_text_that_is_no_utf8(change: Callable[[ModelProto], object], tmp_path: Path) -> None:
    """Check bytes, files and parsed models, and that unused parts may be anything."""
    graph = make_graph([make_node("Relu", ["x"], ["y"])], "g", [value("x")], [value("y")])
    model = make_model(graph, opset_imports=[make_opsetid("", 18)], ir_version=9)
    model.graph.doc_string = "RRRR"
    sound = model.SerializeToString().replace(b"RRRR", b"\xc9RRR")
    np.testing.assert_array_equal(braid.compile(sound)(X), np.maximum(X, 0))
    change(model)
    data = model.SerializeToString().replace(b"QQQQ", b"\xc9QQQ")
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    for source in (data, path, ModelProto.FromString(data)):
        with pytest.raises(BraidError, match=r"is b'\\xc9QQQ', expected text in UTF-8"):
            braid.compile(source)
