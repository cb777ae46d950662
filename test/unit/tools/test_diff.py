"""`braid diff`: models, artifacts and sets of options, and what of them differs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from braid.tools.cli import main


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    write("a.onnx", "Relu")
    write("b.onnx", "Sigmoid")


def write(name: str, op: str, batch: int | str = 1) -> None:
    """Write a convolution, for which Winograd's algorithm is the fastest, with ops after it."""
    generator = np.random.default_rng(0)
    weights = numpy_helper.from_array(
        generator.standard_normal((32, 32, 3, 3)).astype(np.float32), "w"
    )
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv", pads=[1] * 4),
        helper.make_node(op, ["c"], ["y"], "last"),
    ]
    ports = [
        helper.make_tensor_value_info(port, TensorProto.FLOAT, [batch, 32, 32, 32])
        for port in ("x", "y")
    ]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], [weights])
    opset = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), name)


def found(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["diff", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["result"]


def test_two_sets_of_options(capsys: pytest.CaptureFixture[str]) -> None:
    result = found(capsys, "a.onnx", "--b", "--numerics strict")
    assert not result["equal"] and result["b"]["options"] == "--numerics strict"
    changed = {change["name"]: change for change in result["kernels"]}
    (conv,) = (change for name, change in changed.items() if "c" in name.split("+"))
    assert "winograd" in conv["a"]["schedule"] and "winograd" not in conv["b"]["schedule"]
    assert conv["a"]["layouts"] != conv["b"]["layouts"]
    assert {change["name"] for change in result["bytes"]} >= {"weights made at load", "arena"}
    assert result["seconds"]["a"] < result["seconds"]["b"] and not result["is_measured"]
    assert main(["diff", "a.onnx", "--b", "--numerics strict"]) == 0
    shown = capsys.readouterr().out
    assert "kernels that were decided differently" in shown and "A is " in shown


def test_two_models(capsys: pytest.CaptureFixture[str]) -> None:
    result = found(capsys, "a.onnx", "b.onnx")
    assert not result["equal"]
    ops = [{c[side]["ops"] for c in result["kernels"] if c[side] is not None} for side in "ab"]
    assert any("maximum" in each for each in ops[0])
    assert not any("maximum" in each for each in ops[1]) and ops[1]


def test_equal_ones(capsys: pytest.CaptureFixture[str]) -> None:
    Path("c.onnx").write_bytes(Path("a.onnx").read_bytes())
    assert main(["diff", "a.onnx", "c.onnx", "--exit-code"]) == 0
    shown = capsys.readouterr().out
    assert "nothing differs" in shown and " 0 different" in shown


def test_artifacts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "a.onnx", "-o", "a.braid"]) == 0
    assert main(["compile", "a.onnx", "--numerics", "strict", "-o", "b.braid"]) == 0
    result = found(capsys, "a.braid", "b.braid")
    assert result["kernels"] is None and result["a"]["kind"] == "artifact"
    names = {change["name"] for change in result["bytes"]}
    assert names >= {"artifact", "code", "weights made at load"}
    assert found(capsys, "a.braid", "a.onnx")["equal"]
    assert main(["diff", "a.braid", "b.braid", "--exit-code", "-q"]) == 1
    assert "give the models" in capsys.readouterr().out


@pytest.mark.parametrize("compiled", [False, True])
def test_other_values_alone(compiled: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Check models of equal decisions and bytes that differ in a weight, or in the code."""
    model = onnx.load("a.onnx")
    model.graph.initializer[0].raw_data = np.ones((32, 32, 3, 3), np.float32).tobytes()
    onnx.save(model, "ones.onnx")
    write("neg.onnx", "Neg")
    write("abs.onnx", "Abs")
    for first, second, what in (("a", "ones", "weight '"), ("neg", "abs", "code")):
        names = [f"{first}.onnx", f"{second}.onnx"]
        if compiled:
            for name in names:
                assert main(["compile", name, "-o", f"{name[:3]}.braid"]) == 0
            names = [f"{name[:3]}.braid" for name in names]
            capsys.readouterr()
        result = found(capsys, *names)
        assert not result["equal"]
        assert any(change["name"].startswith(what) for change in result["contents"])
        assert main(["diff", *names, "--exit-code"]) == 1
        shown = capsys.readouterr().out
        assert "nothing differs" not in shown and "digests of contents" in shown


def test_times_are_measured_in_turns(capsys: pytest.CaptureFixture[str]) -> None:
    result = found(capsys, "a.onnx", "--b", "--numerics strict", "--measure", "3")
    assert result["is_measured"] and min(result["seconds"]["a"], result["seconds"]["b"]) > 0
    kernels = [c[side] for c in result["kernels"] for side in "ab" if c[side] is not None]
    assert any(kernel["source"] == "measured here" for kernel in kernels)


def test_sides_have_the_shared_options_too(capsys: pytest.CaptureFixture[str]) -> None:
    write("open.onnx", "Relu", "batch")
    result = found(capsys, "open.onnx", "--dim", "batch=2", "--b", "--dim batch=3")
    (ports,) = (change for change in result["settings"] if change["name"] == "inputs")
    assert "[2, 32" in ports["a"] and "[3, 32" in ports["b"]
    result = found(capsys, "open.onnx", "--dim", "batch=2", "--b", "--numerics strict")
    assert all(change["name"] != "inputs" for change in result["settings"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a.onnx"], "would be compared with itself"),
        (["a.onnx", "--b", "--frob"], "--b is '--frob': No such option"),
        (["a.onnx", "--b", "'"], '--b is "\'"'),
        (["a.onnx", "--b", "--threads many"], "--threads"),
        (["a.onnx", "none.onnx"], "cannot read 'none.onnx'"),
    ],
)
def test_mistakes(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *words]) == 1
    out, err = capsys.readouterr()
    assert message in err and "hint: " in err and out == ""
