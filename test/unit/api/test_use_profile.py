"""From a run to a profile, and from the profile to the attributes that decisions weigh by."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from xdsl.dialects import scf

import braid
from braid.driver.read_source import read_source
from braid.passes.profile.annotate_profile import AnnotateProfilePass
from braid.universe import make_context

FLOAT = TensorProto.FLOAT


@pytest.fixture
def model() -> onnx.ModelProto:
    """Three times y ← 2 y or y + 1, by whether y is positive; nothing of it has a name to keep."""

    def branch(kind: str, other: str) -> onnx.GraphProto:
        result = helper.make_tensor_value_info(kind, FLOAT, [4])
        return helper.make_graph([helper.make_node(kind, ["s", other], [kind])], kind, [], [result])

    body = helper.make_graph(
        [
            helper.make_node("Identity", ["s0"], ["s"]),
            helper.make_node("ReduceMax", ["s"], ["most"], keepdims=0),
            helper.make_node("Greater", ["most", "zero"], ["positive"]),
            helper.make_node(
                "If",
                ["positive"],
                ["s1"],
                then_branch=branch("Mul", "two"),
                else_branch=branch("Add", "one"),
            ),
            helper.make_node("Identity", ["go"], ["on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("s0", FLOAT, [4]),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("s1", FLOAT, [4]),
        ],
    )
    constants = {"zero": 0.0, "one": 1.0, "two": 2.0}
    tensors = [helper.make_tensor(name, FLOAT, [], [v]) for name, v in constants.items()]
    tensors.append(helper.make_tensor("steps", TensorProto.INT64, [], [3]))
    tensors.append(helper.make_tensor("true", TensorProto.BOOL, [], [True]))
    graph = helper.make_graph(
        [helper.make_node("Loop", ["steps", "true", "x"], ["y"], body=body)],
        "counted",
        [helper.make_tensor_value_info("x", FLOAT, [4])],
        [helper.make_tensor_value_info("y", FLOAT, [4])],
        tensors,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_counts_of_regions_come_back(model: onnx.ModelProto, tmp_path: Path) -> None:
    profiled = braid.compile(model, jobs=1, profile=True)
    for start in (1.0, -2.5):  # Positive at once; after three steps.
        profiled(np.full(4, start, np.float32))
    counts = {name: entry.count for name, entry in profiled.profile().items()}
    assert sorted(n for name, n in counts.items() if name.endswith("/region")) == [2, 3, 3, 6]
    path = tmp_path / "p.json"
    ops = {name: {"count": count, "seconds": 0.0} for name, count in counts.items()}
    path.write_text(json.dumps({"ops": ops}))
    source = read_source(context := make_context(), model)
    AnnotateProfilePass(str(path)).apply(context, source.module)
    (loop,) = (op for op in source.module.walk() if isinstance(op, scf.ForOp))
    (branch,) = (op for op in source.module.walk() if isinstance(op, scf.IfOp))
    assert loop.attributes["braid.trip_count"].value.data == 3.0
    assert branch.attributes["braid.branch_probability"].value.data == 0.5
    used = braid.compile(model, jobs=1, use_profile=path)
    np.testing.assert_allclose(used(np.ones(4, np.float32)), np.full(4, 8.0))
