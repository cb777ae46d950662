"""`If`, `Loop` and `Scan`: which scf op they become, and that they compute the same."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from xdsl.dialects import scf
from xdsl.ir import Operation

import braid
from braid.support.errors import BraidError, UnsupportedError

CheckGraph = Callable[..., Any]
node = helper.make_node
X = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)


def value(name: str, shape: list[int], kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def find(imported: Any, kind: type[Operation]) -> list[Operation]:
    return [op for op in imported.module.walk() if isinstance(op, kind)]


def branches() -> dict[str, Any]:
    """Both use `x` of the outer graph."""
    return {
        "then_branch": helper.make_graph([node("Relu", ["x"], ["t"])], "t", [], [value("t", [])]),
        "else_branch": helper.make_graph([node("Neg", ["x"], ["e"])], "e", [], [value("e", [])]),
    }


@pytest.mark.parametrize("condition", [True, False])
def test_if(check_graph: CheckGraph, condition: bool) -> None:
    nodes = [node("If", ["c"], ["y"], **branches())]
    imported = check_graph(nodes, {"c": np.array(condition), "x": X}, ["y"])
    (op,) = find(imported, scf.IfOp)
    keys = op.attributes["braid.profile_keys"].data
    assert {key: name.data for key, name in keys.items()} == {
        "condition": "c",
        "then": "t",
        "else": "e",
    }
    assert op.attributes["braid.name"].data == "y"


def test_if_of_a_known_condition_is_its_branch(check_graph: CheckGraph) -> None:
    nodes = [node("If", ["c"], ["y"], **branches())]
    imported = check_graph(nodes, {"x": X}, ["y"], {"c": np.array(False)})
    assert not find(imported, scf.IfOp)


def test_branches_of_different_types(check_graph: CheckGraph) -> None:
    different = branches()
    different["else_branch"].node[0].CopyFrom(node("Size", ["x"], ["e"]))
    for message in (
        "output 'e' is declared as float32, but is int64",
        r"node 'y' \(If\): the branches give elements of f32 and of i64",
    ):
        outer = [node("If", ["c"], ["y"], **different)]
        for condition in (False, True):
            with pytest.raises(BraidError, match=message):
                check_graph(outer, {"c": np.array(condition), "x": X}, ["y"])
        different["else_branch"].output[0].type.tensor_type.elem_type = TensorProto.INT64


def loop_body(condition: Any, collects: bool = True) -> Any:
    nodes = [
        node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        node("Add", ["s", "f"], ["s2"]),
        condition,
        node("ReduceSum", ["s2", "one"], ["row"], keepdims=0),
    ]
    outputs = [value("c2", [], TensorProto.BOOL), value("s2", [4, 3])]
    inputs = [value("i", [], TensorProto.INT64), value("c", [], TensorProto.BOOL)]
    inputs.append(value("s", [4, 3]))
    return helper.make_graph(
        nodes, "body", inputs, outputs + ([value("row", [4])] if collects else [])
    )


CONSTANTS = {"n": np.array(5), "one": np.array([1]), "true": np.array(True)}


@pytest.mark.parametrize("trip_count", [1, 5])
def test_loop_with_a_known_trip_count_is_a_for(check_graph: CheckGraph, trip_count: int) -> None:
    body = loop_body(node("Identity", ["c"], ["c2"]))
    nodes = [node("Loop", ["n", "true", "x"], ["y", "rows"], body=body)]
    constants = CONSTANTS | {"n": np.array(trip_count)}
    imported = check_graph(nodes, {"x": X}, ["y", "rows"], constants)
    assert len(find(imported, scf.ForOp)) == 1 and not find(imported, scf.WhileOp)


def test_a_loop_that_never_runs_collects_nothing() -> None:
    """ONNX's evaluator has no such loop."""
    body = loop_body(node("Identity", ["c"], ["c2"]))
    graph = helper.make_graph(
        [node("Loop", ["n", "true", "x"], ["y", "rows"], body=body)],
        "g",
        [value("x", [4, 3])],
        [value("y", [4, 3]), value("rows", [0, 4])],
        [numpy_helper.from_array(v, k) for k, v in {**CONSTANTS, "n": np.array(0)}.items()],
    )
    opsets = [helper.make_opsetid("", 18)]
    y, rows = braid.compile(helper.make_model(graph, opset_imports=opsets), cache=False)(X)
    assert np.array_equal(y, X) and rows.shape == (0, 4)


def test_loop_with_a_computed_trip_count(check_graph: CheckGraph) -> None:
    body = loop_body(node("Identity", ["c"], ["c2"]), collects=False)
    constants = {name: CONSTANTS[name] for name in ("one", "true")}
    inputs = {"x": X, "n": np.array(3)}
    imported = check_graph(
        [node("Loop", ["n", "true", "x"], ["y"], body=body)], inputs, ["y"], constants
    )
    assert len(find(imported, scf.ForOp)) == 1
    with pytest.raises(UnsupportedError, match="number of iterations that is not known"):
        collecting = loop_body(node("Identity", ["c"], ["c2"]))
        nodes = [node("Loop", ["n", "", "x"], ["y", "rows"], body=collecting)]
        check_graph(nodes, inputs, ["y", "rows"], constants)


@pytest.mark.parametrize("trip_count", [2, 100])
def test_loop_that_a_condition_ends_is_a_while(check_graph: CheckGraph, trip_count: int) -> None:
    body = loop_body(node("Less", ["f", "four"], ["c2"]), collects=False)
    constants = CONSTANTS | {"n": np.array(trip_count), "four": np.array(4, np.float32)}
    imported = check_graph(
        [node("Loop", ["n", "true", "x"], ["y"], body=body)], {"x": X}, ["y"], constants
    )
    assert len(find(imported, scf.WhileOp)) == 1


@pytest.mark.parametrize("trip_count", ["n", ""])
def test_collecting_until_a_known_iteration(check_graph: CheckGraph, trip_count: str) -> None:
    body = loop_body(node("Less", ["f", "four"], ["c2"]))
    constants = CONSTANTS | {"n": np.array(9), "four": np.array(4, np.float32)}
    nodes = [node("Loop", [trip_count, "true", "x"], ["y", "rows"], body=body)]
    imported = check_graph(nodes, {"x": X}, ["y", "rows"], constants)
    assert not find(imported, scf.WhileOp)


def test_collecting_without_an_end_in_sight_is_refused(check_graph: CheckGraph) -> None:
    body = loop_body(node("Less", ["f", "many"], ["c2"]))
    constants = CONSTANTS | {"many": np.array(1000, np.float32)}
    nodes = [node("Loop", ["", "true", "x"], ["y", "rows"], body=body)]
    with pytest.raises(UnsupportedError, match="that a condition may end"):
        check_graph(nodes, {"x": X}, ["y", "rows"], constants)


def test_collecting_until_the_data_end_it_is_refused(check_graph: CheckGraph) -> None:
    body = loop_body(node("Less", ["f", "most"], ["c2"]))
    nodes = [node("Loop", ["n", "true", "x"], ["y", "rows"], body=body)]
    inputs = {"x": X, "most": np.array(4, np.float32)}
    with pytest.raises(UnsupportedError, match="that a condition may end") as refused:
        check_graph(nodes, inputs, ["y", "rows"], CONSTANTS)
    assert "a row for each of the most iterations" in str(refused.value.hint)


def test_loop_that_never_ends(check_graph: CheckGraph) -> None:
    body = loop_body(node("Identity", ["c"], ["c2"]), collects=False)
    with pytest.raises(BraidError, match=r"\(Loop\): the loop never ends"):
        check_graph([node("Loop", ["", "", "x"], ["y"], body=body)], {"x": X}, ["y"], CONSTANTS)


def test_carried_value_that_changes_its_type(check_graph: CheckGraph) -> None:
    body = loop_body(node("Identity", ["c"], ["c2"]), collects=False)
    body.node[1].CopyFrom(node("Transpose", ["s"], ["s2"]))
    constants = CONSTANTS | {"n": np.array(100)}
    with pytest.raises(UnsupportedError, match=r"'s' changes its type from tensor<4x3xf32> to ten"):
        check_graph([node("Loop", ["n", "", "x"], ["y"], body=body)], {"x": X}, ["y"], constants)


def test_scan(check_graph: CheckGraph) -> None:
    body = helper.make_graph(
        [node("Add", ["sum", "row"], ["sum2"]), node("Exp", ["sum2"], ["kept"])],
        "body",
        [value("sum", [3]), value("row", [3])],
        [value("sum2", [3]), value("kept", [3])],
    )
    scan = node("Scan", ["start", "x"], ["y", "all"], body=body, num_scan_inputs=1)
    imported = check_graph([scan], {"start": X[0] * 0, "x": X}, ["y", "all"])
    assert len(find(imported, scf.ForOp)) == 1


@pytest.mark.parametrize("op", ["Loop", "Scan"])
def test_more_outputs_than_the_body_gives(op: str) -> None:
    """One that nothing uses would not be missed."""
    carried, again = value("v", [3]), value("w", [3])
    count, going = value("i", [], TensorProto.INT64), value("c", [], TensorProto.BOOL)
    inputs = [count, going, carried] if op == "Loop" else [carried, value("row", [3])]
    nodes = [node("Relu", ["v"], ["w"])]
    outputs = [again]
    if op == "Loop":
        nodes.append(node("Identity", ["c"], ["on"]))
        outputs = [value("on", [], TensorProto.BOOL), again]
    body = helper.make_graph(nodes, "body", inputs, outputs)
    more = {"num_scan_inputs": 1} if op == "Scan" else {}
    names = ["n", "", "x"] if op == "Loop" else ["x", "rows"]
    graph = helper.make_graph(
        [node(op, names, ["y", "extra"], body=body, **more)],
        "graph",
        [value("x", [3]), value("rows", [4, 3])],
        [value("y", [3])],
        [numpy_helper.from_array(np.array(4), "n")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    with pytest.raises(BraidError, match="it has 2 outputs, its body gives 1"):
        braid.compile(model)
