"""Branches that cannot be compiled are errors where they are taken, and nothing otherwise."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

import braid
from braid.interpreted import interpret
from braid.support.errors import BraidError, UnsupportedError
from braid.tools.cli import main

FLOAT = TensorProto.FLOAT
X = np.arange(16, dtype=np.float32).reshape(2, 8) - 8
WEIGHT = np.ones((4, 8), np.float32)
node = helper.make_node


def graph(name: str, nodes: Sequence[NodeProto], **weights: np.ndarray) -> GraphProto:
    result = helper.make_tensor_value_info(nodes[-1].output[0], FLOAT, None)
    initializers = [numpy_helper.from_array(value, key) for key, value in weights.items()]
    return helper.make_graph(nodes, name, [], [result], initializers)


def relu(prefix: str = "r") -> GraphProto:
    return graph("relu", [node("Relu", ["x"], [f"{prefix}y"])])


FAILING: dict[str, tuple[GraphProto, str]] = {
    "shape": (
        graph("e", [node("MatMul", ["x", "w"], ["ey"], name="product")], w=WEIGHT),
        r"node 'product' \(MatMul\): the left operand has 8 columns, the right one 4 rows",
    ),
    "rank": (
        graph("e", [node("Unsqueeze", ["x", "a"], ["ey"])], a=np.array([0])),
        "it gives tensor<1x2x8xf32>, and the then branch tensor<2x8xf32>",
    ),
    "missing op": (
        graph("e", [node("Frobnicate", ["x"], ["ey"], domain="com.microsoft")]),
        r"node 'ey' \(Frobnicate\): the op com.microsoft.Frobnicate is not supported",
    ),
    "size by data": (
        graph("e", [node("NonZero", ["x"], ["n"]), node("Cast", ["n"], ["ey"], to=FLOAT)]),
        r"node 'n' \(NonZero\): input 0 \('x'\) is computed while the model runs",
    ),
    "nested": (
        graph(
            "e",
            [
                node("Not", ["c"], ["d"]),
                node(
                    "If",
                    ["d"],
                    ["ey"],
                    then_branch=graph("a", [node("Frob", ["x"], ["ay"], domain="com.microsoft")]),
                    else_branch=graph("b", [node("Gemm", ["x", "x"], ["by"])]),
                ),
            ],
        ),
        "com.microsoft.Frob is not supported",
    ),
}  # fmt: skip


def model(nodes: Sequence[NodeProto], functions: Sequence[Any] = ()) -> ModelProto:
    inputs = [
        helper.make_tensor_value_info("x", FLOAT, [2, 8]),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
    ]
    outputs = [helper.make_tensor_value_info("y", FLOAT, None)]
    opsets = [helper.make_opsetid(d, v) for d, v in (("", 17), ("com.microsoft", 1), ("own", 1))]
    return helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs),
        opset_imports=opsets,
        functions=functions,
        ir_version=9,
    )


def branching(other: GraphProto, *, swapped: bool = False) -> ModelProto:
    then, otherwise = (other, relu()) if swapped else (relu(), other)
    return model([node("If", ["c"], ["y"], name="choice", then_branch=then, else_branch=otherwise)])


@pytest.mark.parametrize("kind", FAILING)
def test_what_is_not_taken_is_no_error(kind: str) -> None:
    other, message = FAILING[kind]
    for run in (interpret, braid.compile):
        compiled = run(branching(other))
        for _ in range(2):
            np.testing.assert_array_equal(compiled(X, np.array(True)), np.maximum(X, 0))
            with pytest.raises(BraidError, match=rf"node 'choice' \(If\): its else .*({message})"):
                compiled(X, np.array(False))


def test_of_open_sizes() -> None:
    proto = branching(FAILING["missing op"][0])
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    compiled = braid.compile(proto)
    for batch in (1, 2):
        x = X[:batch]
        np.testing.assert_array_equal(compiled(x, np.array(True)), np.maximum(x, 0))
        with pytest.raises(BraidError, match="its else branch is taken"):
            compiled(x, np.array(False))


def test_either_branch_may_fail() -> None:
    compiled = braid.compile(branching(FAILING["shape"][0], swapped=True))
    np.testing.assert_array_equal(compiled(X, np.array(False)), np.maximum(X, 0))
    with pytest.raises(BraidError, match="its then branch is taken, which cannot be compiled"):
        compiled(X, np.array(True))


def test_a_known_condition_drops_the_branch() -> None:
    proto = branching(FAILING["shape"][0])
    compiled = braid.compile(proto, constants={"c": True})
    np.testing.assert_array_equal(compiled(X), np.maximum(X, 0))
    with pytest.raises(BraidError, match="the left operand has 8 columns"):
        braid.compile(proto, constants={"c": False})


def test_two_branches_that_cannot_be_compiled_are_refused() -> None:
    two = node(
        "If",
        ["c"],
        ["y"],
        then_branch=graph("a", [node("Frob", ["x"], ["ay"], domain="com.microsoft")]),
        else_branch=FAILING["shape"][0],
    )
    with pytest.raises(UnsupportedError, match=r"the op .*Frob is not supported"):
        braid.compile(model([two]))


def loop_body(nodes: Sequence[NodeProto]) -> GraphProto:
    """Return the body of a loop that computes v2 from v, and continues."""
    return helper.make_graph(
        [*nodes, node("Identity", ["go"], ["go2"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", FLOAT, [2, 8]),
        ],
        [
            helper.make_tensor_value_info("go2", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v2", FLOAT, [2, 8]),
        ],
    )


def in_loop(other: GraphProto) -> NodeProto:
    """Two iterations of `v = if c then relu(v) else other(v)`, and the number that they have."""
    body = loop_body(
        [
            node("If", ["c"], ["picked"], then_branch=relu("l"), else_branch=other),
            node("Add", ["picked", "v"], ["v2"]),
        ]
    )
    return node("Loop", ["count", "", "x"], ["y"], body=body)


@pytest.mark.parametrize("count", ["computed", 100, 2])
def test_in_loops(count: int | str) -> None:
    """A loop whose count is computed, a long one, and one whose iterations can be unrolled."""
    loop = in_loop(FAILING["shape"][0])
    if count == "computed":
        first = [node("ReduceMax", ["x"], ["m"], keepdims=0), node("Cast", ["m"], ["count"], to=7)]
        turns = int(X.max())
    else:
        value = numpy_helper.from_array(np.array(count, np.int64))
        first, turns = [node("Constant", [], ["count"], value=value)], int(count)
    compiled = braid.compile(model([*first, loop]))
    expected = X + turns * np.maximum(X, 0)
    np.testing.assert_array_equal(compiled(X, np.array(True)), expected)
    with pytest.raises(BraidError, match="its else branch is taken"):
        compiled(X, np.array(False))
    np.testing.assert_array_equal(compiled(X, np.array(True)), expected)


def test_in_functions() -> None:
    choice = node("If", ["b"], ["r"], then_branch=relu("f"), else_branch=FAILING["missing op"][0])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    function = helper.make_function("own", "Choose", ["x", "b"], ["r"], [choice], opsets)
    proto = model([node("Choose", ["x", "c"], ["y"], domain="own")], [function])
    compiled = braid.compile(proto)
    np.testing.assert_array_equal(compiled(X, np.array(True)), np.maximum(X, 0))
    with pytest.raises(BraidError, match="Frobnicate is not supported"):
        compiled(X, np.array(False))


def test_a_condition_that_single_iterations_know_is_still_known() -> None:
    """An op that only the first iteration runs has no place in a loop: the loop is unrolled."""
    body = loop_body(
        [
            node("Constant", [], ["zero"], value=numpy_helper.from_array(np.array(0))),
            node("Equal", ["i", "zero"], ["first"]),
            node("Cast", ["i"], ["width"], to=TensorProto.INT64),
            node(
                "If",
                ["first"],
                ["w"],
                then_branch=relu("l"),
                else_branch=graph(
                    "e",
                    [
                        node("Reshape", ["width", "one"], ["times"]),
                        node("Concat", ["one", "times"], ["shape"], axis=0),
                        node("Tile", ["x", "shape"], ["ey"]),
                    ],
                    one=np.array([1]),
                ),
            ),
            node("Add", ["w", "v"], ["v2"]),
        ]
    )
    count = node("Constant", [], ["count"], value=numpy_helper.from_array(np.array(2)))
    compiled = braid.compile(model([count, node("Loop", ["count", "", "x"], ["y"], body=body)]))
    result = compiled(X, np.array(True))
    np.testing.assert_array_equal(result, X + np.maximum(X, 0) + X)


def test_artifacts_commands_and_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto, path = branching(FAILING["shape"][0]), tmp_path / "choice.onnx"
    path.write_bytes(proto.SerializeToString())
    np.save(tmp_path / "no.npy", np.array(False))
    np.save(tmp_path / "yes.npy", np.array(True))
    artifact, text = str(tmp_path / "choice.braid"), str(tmp_path / "choice.mlir")
    assert main(["compile", str(path), "-o", artifact]) == 0
    said = capsys.readouterr().err
    assert "remark: node 'choice' (If): its else branch is an error where it is taken" in said
    assert main(["import", str(path), "-o", text]) == 0
    assert "braid.fail" in Path(text).read_text()
    for file in (artifact, text):
        for name, status in (("no", 1), ("yes", 0)):
            given = ["--random", "--input", f"c={tmp_path / name}.npy"]
            assert main(["run", file, *given]) == status
        assert "its else branch is taken" in capsys.readouterr().err


def test_the_host_runs_them_for_other_devices() -> None:
    compiled = braid.compile(branching(FAILING["shape"][0]), target="gpu-emulated")
    np.testing.assert_array_equal(compiled(X, np.array(True)), np.maximum(X, 0))
    with pytest.raises(BraidError, match="its else branch is taken"):
        compiled(X, np.array(False))
