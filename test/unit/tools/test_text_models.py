"""Commands on a model that gives text and mappings: they compute with the numbers of these."""

import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

ML = "ai.onnx.ml"
LABELS = ["stop", "go"]
BRAID = Path(sys.executable).with_name("braid")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["x"],
            ["label", "scores"],
            domain=ML,
            coefficients=[1.0, 0.5, -1.0, 2.0],
            intercepts=[0.1, 0.0],
            classlabels_strings=LABELS,
        ),
        helper.make_node("ZipMap", ["scores"], ["p"], domain=ML, classlabels_strings=LABELS),
    ]
    row = helper.make_map_type_proto(
        TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    )
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])],
        [
            helper.make_tensor_value_info("label", TensorProto.STRING, ["n"]),
            helper.make_value_info("p", helper.make_sequence_type_proto(row)),
        ],
    )
    versions = [helper.make_opsetid("", 18), helper.make_opsetid(ML, 1)]
    path = tmp_path_factory.mktemp("text") / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=versions, ir_version=9), path)
    return path


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (("verify",), "ops agree"),
        (("bench",), "median"),
        (("run", "--random"), "int64"),
        (("inspect",), "braid.arg_reduce"),
    ],
    ids=lambda value: value[0],
)
def test_commands(model: Path, command: tuple[str, ...], shown: str) -> None:
    done = subprocess.run(
        [BRAID, command[0], model, *command[1:]], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout
