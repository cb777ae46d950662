"""Commands on models with a state: steps of sessions, beside numpy and ONNX Runtime."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from braid.runtime.state_session import StateSession
from braid.tools.cli import main

STEP = """<ir_version: 9, opset_import: ["" : 18]> step
  (float[B,T,4] x, float[B,P,4] past) => (float[B,N,4] present, float[B,T,4] y) {
    k = Neg (x)  present = Concat <axis = 1> (past, k)
    keys = Transpose <perm = [0, 2, 1]> (present)  s = MatMul (x, keys)
    w = Softmax <axis = -1> (s)  y = MatMul (w, present) }"""
STATE = ("--state", "past=present")
MASKED = """<ir_version: 9, opset_import: ["" : 18]> masked
  (float[B,T,4] x, int64[B,L] attention_mask, float[B,P,4] past)
  => (float[B,N,4] present, float[B,T,4] y)
  <int64[1] axis = {1}, float one = {1.0}, float low = {-1000.0}> {
    k = Neg (x)  present = Concat <axis = 1> (past, k)
    keys = Transpose <perm = [0, 2, 1]> (present)  s = MatMul (x, keys)
    kept = Cast <to = 1> (attention_mask)  left = Sub (one, kept)  out = Mul (left, low)
    rows = Unsqueeze (out, axis)  masked = Add (s, rows)
    w = Softmax <axis = -1> (masked)  y = MatMul (w, present) }"""
"""A step whose mask has a dim of its own, as exporters name it."""


@pytest.fixture
def model(tmp_path: Path) -> str:
    onnx.save(onnx.parser.parse_model(STEP), tmp_path / "step.onnx")
    return str(tmp_path / "step.onnx")


@pytest.fixture
def masked(tmp_path: Path) -> str:
    onnx.save(onnx.parser.parse_model(MASKED), tmp_path / "masked.onnx")
    return str(tmp_path / "masked.onnx")


def attended(x: np.ndarray, mask: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Return what a step of the masked model computes."""
    scores = np.exp(x @ present.transpose(0, 2, 1) - 1000.0 * (1 - mask[:, None]))
    return scores / scores.sum(-1, keepdims=True) @ present


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
    ops = json.loads(profile.read_text())["ops"]
    # A reorder is a kernel of the code for all sizes alone, which does not run.
    assert {own["count"] for name, own in ops.items() if "/to-" not in name} == {3}


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


@pytest.mark.parametrize("how", [(), ("--interpret",)])
def test_masks_grow_with_the_state(
    masked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: tuple[str, ...]
) -> None:
    x = array(tmp_path / "x.npy", 2, 3, 4)
    mask = np.array([[0, 1, 1], [1, 1, 1]])
    np.save(tmp_path / "mask.npy", mask)
    command = ["run", masked, *STATE, *how, "--input", f"x={tmp_path / 'x.npy'}"]
    command += ["--output-dir", str(tmp_path), "--runs", "3"]
    present = np.concatenate([-x] * 3, axis=1)
    for first, given in (
        (np.ones_like(mask), []),
        (mask, ["--input", f"attention_mask={tmp_path / 'mask.npy'}"]),
    ):
        assert main([*command, *given]) == 0
        wanted = attended(x, np.concatenate([first, np.ones((2, 6))], axis=1), present)
        np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted, rtol=1e-4, atol=1e-5)
    capsys.readouterr()


@pytest.mark.parametrize("how", ["compiled", "--interpret", "artifact"])
def test_sizes_that_follow_are_chosen(
    masked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    command, state = [masked], list(STATE)
    if how == "artifact":
        assert main(["compile", masked, *STATE, "-o", str(tmp_path / "masked.braid")]) == 0
        capsys.readouterr()
        command, state = [str(tmp_path / "masked.braid")], []
    elif how == "--interpret":
        command.append(how)
    if how == "--interpret":  # without a state, past is an input like others
        shapes = {
            o["name"]: o["shape"] for o in said(capsys, "run", *command, "--random")["outputs"]
        }
        assert shapes["present"] == [1, 256, 4]
    found = said(capsys, "run", *command, *state, "--random", "--runs", "3")["outputs"]
    assert found[0]["shape"] == [1, 1027, 4]
    bench = ["bench", *command, *state, "--runs", "3", "--warmup", "1"]
    assert said(capsys, *bench, "--stream")["stream"]["requests"] == 3
    for at in ("P=100", "L=101", "P=100,T=1"):
        found = said(capsys, "run", *command, *state, "--random", "--at", at)["outputs"]
        assert found[0]["shape"] == [1, 101, 4], at
    output = tmp_path / "profile.json"
    if how == "compiled":
        assert main(["profile", "record", *command, *state, "--runs", "2", "-o", str(output)]) == 0
        assert json.loads(output.read_text())["inputs"]["attention_mask"] == [1, 1025]


@pytest.mark.parametrize(
    ("how", "given", "length"),
    [
        ((), (), 0),
        (("--interpret",), (), 0),
        ((), ("--at", "P=9,T=2,B=2"), 9),
        ((), ("--at", "L=7"), 0),
    ],
)
def test_masked_steps_are_verified(
    masked: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    how: tuple[str, ...],
    given: tuple[str, ...],
    length: int,
) -> None:
    seen: list[tuple[int, ...]] = []
    step = StateSession.run_named

    def run_named(self: StateSession, inputs: Any) -> Any:
        seen.append((self.state["past"].shape[1] if self.state else 0, inputs["x"].shape[1]))
        return step(self, inputs)

    monkeypatch.setattr(StateSession, "run_named", run_named)
    found = said(capsys, "verify", masked, *STATE, *how, *given, "--steps", "4")
    assert found["reference"] == "ONNX Runtime" and found["compared"] > 10
    assert not found["differing"] and found["largest"]["error"] < 1e-5
    first = {"P=9,T=2,B=2": 2, "L=7": 7}.get(given[-1] if given else "", 128)
    new = 2 if "P=9,T=2,B=2" in given else 1
    assert seen == [(length, first), *((length + first + n * new, new) for n in range(3))]


def test_decisions_are_made_at_sizes_that_follow(
    masked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = said(capsys, "explain", masked, *STATE, "--at", "P=16")
    sizes = found["page"]["sizes"]
    assert sizes["likely"] == {"B": 1, "T": 128, "P": 16, "L": 144}
    assert len({p["size"] for p in sizes["points"] if p["symbol"] == "P"}) > 3
    chosen = [r["data"] for r in found["remarks"] if r["pass"] == "select-likely-sizes"]
    assert [(own["P"], own["L"]) for own in chosen] == [(1024, 1152), (1024, 1025)]


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
    message = refused(capsys, "verify", model, "--steps", "2")
    assert "--steps is for models with a state" in message and "hint" in message
    message = refused(capsys, "verify", model, *STATE, "--per-cluster")
    assert "--per-cluster compares single runs" in message
