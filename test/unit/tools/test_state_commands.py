"""Commands on models with a state: steps of sessions, beside numpy and ONNX Runtime."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from braid.tools.cli import main

STEP = """<ir_version: 9, opset_import: ["" : 18]> step
  (float[B,T,4] x, float[B,P,4] past) => (float[B,N,4] present, float[B,T,4] y) {
    k = Neg (x)  present = Concat <axis = 1> (past, k)
    keys = Transpose <perm = [0, 2, 1]> (present)  s = MatMul (x, keys)
    w = Softmax <axis = -1> (s)  y = MatMul (w, present) }"""
STATE = ("--state", "past=present")


@pytest.fixture
def model(tmp_path: Path) -> str:
    onnx.save(onnx.parser.parse_model(STEP), tmp_path / "step.onnx")
    return str(tmp_path / "step.onnx")


def said(capsys: pytest.CaptureFixture[str], *command: str) -> Any:
    assert main([*command, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["result"]


def refused(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    assert main(list(command)) == 1
    return capsys.readouterr().err


def array(path: Path, *shape: int) -> np.ndarray:
    value = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    np.save(path, value)
    return value


@pytest.mark.parametrize("how", ["compiled", "--interpret", "artifact"])
def test_runs_are_steps(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    x, past = array(tmp_path / "x.npy", 2, 1, 4), array(tmp_path / "past.npy", 2, 3, 4)
    command = ["run", model, *STATE]
    if how == "artifact":  # which knows its state
        assert main(["compile", model, *STATE, "-o", str(tmp_path / "step.braid")]) == 0
        capsys.readouterr()
        command = ["run", str(tmp_path / "step.braid")]
    elif how == "--interpret":
        command.append(how)
    command += ["--input", f"x={tmp_path / 'x.npy'}", "--output-dir", str(tmp_path)]
    command += ["--runs", "3"]
    for before, given in ((past[:, :0], []), (past, ["--input", f"past={tmp_path / 'past.npy'}"])):
        assert main([*command, *given]) == 0
        found = np.load(tmp_path / "present.npy")
        np.testing.assert_array_equal(found, np.concatenate([before, -x, -x, -x], axis=1))
        scores = np.exp(x @ found.transpose(0, 2, 1))
        wanted = scores / scores.sum(-1, keepdims=True) @ found
        np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted, rtol=1e-4, atol=1e-5)


def test_a_profile_is_of_the_steps(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    array(tmp_path / "x.npy", 1, 1, 4)
    profile = tmp_path / "profile.json"
    given = ["--input", f"x={tmp_path / 'x.npy'}", "--runs", "3", "--profile", str(profile)]
    assert main(["run", model, *STATE, *given]) == 0
    capsys.readouterr()
    counts = {own["count"] for own in json.loads(profile.read_text())["ops"].values()}
    assert counts == {3}


def test_bench_measures_steps_after_one_state(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("bench", model, *STATE, "--runs", "4", "--warmup", "1")
    found = said(capsys, *command, "--at", "P=100,B=2", "--stream", "--by-kernel")
    assert found["runs"] == 4 and found["output_bytes"] == 2 * 4 * 4  # y of one new element
    assert found["stream"]["requests"] == 4 and found["stream"]["capacity"] == 1
    assert any("y" in each["kernel"] for each in found["kernels"])
    assert said(capsys, *command, "--at", "T=7")["output_bytes"] == 7 * 4 * 4
    assert said(capsys, "bench", model, "--runs", "1", "--at", "P=8,T=1")["output_bytes"] == 160


def test_recorded_profiles_are_of_steps(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "profile.json"
    command = ("profile", "record", model, *STATE, "--at", "P=64", "-o", str(output))
    assert said(capsys, *command, "--runs", "2")["runs"] == 2
    assert json.loads(output.read_text())["inputs"] == {"x": [1, 1, 4], "past": [1, 64, 4]}


@pytest.mark.parametrize("given", [(), ("--interpret",), ("--at", "P=9,T=2,B=2")])
def test_steps_are_verified(
    model: str, capsys: pytest.CaptureFixture[str], given: tuple[str, ...]
) -> None:
    found = said(capsys, "verify", model, *STATE, *given)
    assert found["reference"] == "ONNX Runtime" and found["compared"] == 6
    assert not found["differing"] and found["largest"]["error"] < 1e-5


def test_a_state_that_differs_is_seen(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from braid.runtime.growing_state import Growth

    kept = Growth.after

    def damaged(self: Growth, state: Any, shape: Any) -> Any:
        state.array[..., -1:] = 7.0  # what earlier steps have written
        return kept(self, state, shape)

    monkeypatch.setattr(Growth, "after", damaged)
    assert main(["verify", model, *STATE]) == 1
    assert "first op that differs from ONNX Runtime: 'present'" in capsys.readouterr().out


def test_explain_shows_the_states_passes(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = said(capsys, "explain", model, *STATE)
    plain = said(capsys, "explain", model)
    assert len(found["remarks"]) > len(plain["remarks"])  # a function for steps of one element


def test_what_cannot_be(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["run", "--random"], ["bench"], ["verify"], ["explain"]):
        name, *rest = command
        message = refused(capsys, name, model, *rest, "--state", "last=present")
        assert "the model has no input 'last'" in message
        message = refused(capsys, name, model, *rest, "--state", "past=next")
        assert "the model has no output 'next'" in message
    assert "expected NAME=VALUE" in refused(capsys, "run", model, "--state", "past")
    array(tmp_path / "past.npy", 2, 3)
    given = ("--random", "--input", f"past={tmp_path / 'past.npy'}")
    assert "past" in refused(capsys, "run", model, *STATE, *given)
    message = refused(capsys, "verify", model, *STATE, "--per-cluster")
    assert "--per-cluster compares single runs" in message
