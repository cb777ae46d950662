"""Which integers inputs may be, so that what is looked up by them is there."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from braid.analysis.structure.index_ranges import ANY, IndexRange, index_ranges
from braid.driver.sources.signature import entry_of
from braid.frontends.onnx import import_onnx
from braid.tools.cli import main

node = helper.make_node
INTEGER = TensorProto.INT64
TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)
CONSTANTS = {
    "table": TABLE,
    "one": np.array(1),
    "two": np.array(2),
    "ten": np.array(10),
    "flat": np.array([4]),
    "zero": np.array(0),
    "zeros": np.zeros((4, 4), np.float32),
}
GATHER = node("Gather", ["table", "i"], ["y"])


def model(nodes: Sequence[NodeProto], shape: Sequence[int] = (2, 2)) -> ModelProto:
    used = {name for each in nodes for name in each.input}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", INTEGER, list(shape))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in CONSTANTS.items() if name in used],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def then_gather(*nodes: NodeProto) -> ModelProto:
    return model([*nodes, GATHER])


CASES: dict[str, tuple[ModelProto, IndexRange]] = {
    "an index": (model([node("Gather", ["table", "x"], ["y"])]), IndexRange(0, 2)),
    "of columns": (model([node("Gather", ["table", "x"], ["y"], axis=1)]), IndexRange(0, 3)),
    "reshaped": (then_gather(node("Reshape", ["x", "flat"], ["i"])), IndexRange(0, 2)),
    "cast": (
        then_gather(
            node("Cast", ["x"], ["f"], to=TensorProto.FLOAT), node("Cast", ["f"], ["i"], to=INTEGER)
        ),
        IndexRange(0, 2),
    ),
    "added to": (then_gather(node("Add", ["one", "x"], ["i"])), IndexRange(-1, 1)),
    "taken from": (then_gather(node("Sub", ["ten", "x"], ["i"])), IndexRange(8, 10)),
    "less a number": (then_gather(node("Sub", ["x", "ten"], ["i"])), IndexRange(10, 12)),
    "multiplied": (then_gather(node("Mul", ["x", "two"], ["i"])), IndexRange(0, 1)),
    "divided": (then_gather(node("Div", ["x", "two"], ["i"])), IndexRange(0, 5)),
    "clipped": (then_gather(node("Clip", ["x", "zero", "two"], ["i"])), ANY),
    "clipped too far": (
        then_gather(node("Clip", ["x", "zero", "ten"], ["i"])), IndexRange(most=2)
    ),
    "tuples": (model([node("GatherND", ["table", "x"], ["y"])]), IndexRange(0, 2)),
    "elements": (
        model([node("GatherElements", ["table", "x"], ["y"], axis=1)]), IndexRange(0, 3)
    ),
    "scattered elements": (
        model(
            [
                node("Cast", ["x"], ["u"], to=TensorProto.FLOAT),
                node("ScatterElements", ["table", "x", "u"], ["y"]),
            ]
        ),
        IndexRange(0, 2),
    ),
    "both": (
        model(
            [
                node("Gather", ["zeros", "x"], ["a"]),
                node("Gather", ["table", "x"], ["b"]),
                node("Add", ["a", "b"], ["y"]),
            ]
        ),
        IndexRange(0, 2),
    ),
    "no index": (model([node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)]), ANY),
}  # fmt: skip


@pytest.mark.parametrize("kind", CASES)
def test_range(kind: str) -> None:
    proto, expected = CASES[kind]
    assert index_ranges(entry_of(import_onnx(proto).module)) == [expected]


def test_indices_that_a_loop_hands_round() -> None:
    body = helper.make_graph(
        [
            node("Gather", ["table", "v"], ["g"]),
            node("ReduceSum", ["g"], ["s"], keepdims=0),
            node("Add", ["t", "s"], ["t2"]),
            node("Identity", ["v"], ["v2"]),
            node("Identity", ["go"], ["go2"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("k", INTEGER, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", INTEGER, [2, 2]),
            helper.make_tensor_value_info("t", TensorProto.FLOAT, []),
        ],
        [
            helper.make_tensor_value_info("go2", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v2", INTEGER, [2, 2]),
            helper.make_tensor_value_info("t2", TensorProto.FLOAT, []),
        ],
    )
    table = node("Constant", [], ["table"], value=numpy_helper.from_array(TABLE))
    count = node("Constant", [], ["count"], value=numpy_helper.from_array(np.array(100)))
    start = node("Constant", [], ["start"], value=numpy_helper.from_array(np.array(0, np.float32)))
    loop = node("Loop", ["count", "", "x", "start"], ["v9", "y"], body=body)
    (found,) = index_ranges(entry_of(import_onnx(model([table, count, start, loop])).module))
    assert found == IndexRange(0, 2)


def test_a_long_chain_ends() -> None:
    nodes = [node("Add", [f"i{n}" if n else "x", "one"], [f"i{n + 1}"]) for n in range(3000)]
    nodes.append(node("Cast", ["i3000"], ["y"], to=TensorProto.FLOAT))
    assert index_ranges(entry_of(import_onnx(model(nodes)).module)) == [ANY]


@pytest.mark.parametrize("kind", ["an index", "less a number", "taken from", "tuples", "divided"])
def test_commands_draw_what_is_there(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lookup.onnx"
    path.write_bytes(CASES[kind][0].SerializeToString())
    for seed in ("0", "1"):
        assert main(["verify", str(path), "--seed", seed]) == 0
    assert main(["run", str(path), "--random", "--interpret"]) == 0
    assert main(["bench", str(path), "--interpret", "--runs", "1"]) == 0
