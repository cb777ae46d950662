"""Decoders whose two graphs are the branches of an `If`, as Optimum merges them, beside ONNX
Runtime.
"""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import braid
from braid.support.errors import BraidError
from braid.tools.cli import main

PAST = {
    f"past_key_values.0.{name}": f"present.0.{name}"
    for name in ("decoder.key", "decoder.value", "encoder.key")
}
STATE = {"past_key_values.*": "present.*"}
WIDTH = 8


def branch(prefix: str, has_past: bool) -> onnx.GraphProto:
    """Return a graph of the decoder: with the past, or of the tokens and the encoder alone."""
    nodes: list[onnx.NodeProto] = []

    def node(op: str, inputs: list[str], result: str, **attributes: Any) -> str:
        found = prefix + result
        nodes.append(helper.make_node(op, inputs, [found], **attributes))
        return found

    results = dict.fromkeys(f"{prefix}{name}" for name in ("logits", *PAST.values()))
    x = node("Gather", ["table", "input_ids"], "x")
    k = node("Neg", [x], "k")
    if has_past:
        key = node("Concat", ["past_key_values.0.decoder.key", k], "present.0.decoder.key", axis=1)
        value = node(
            "Concat", ["past_key_values.0.decoder.value", x], "present.0.decoder.value", axis=1
        )
        cross = node("Identity", ["past_key_values.0.encoder.key"], "present.0.encoder.key")
    else:
        key = node("Identity", [k], "present.0.decoder.key")
        value = node("Identity", [x], "present.0.decoder.value")
        cross = node("Neg", ["encoder_hidden_states"], "present.0.encoder.key")
    scores = node("MatMul", [x, node("Transpose", [key], "kt", perm=[0, 2, 1])], "scores")
    kept = node("Unsqueeze", [node("Cast", ["attention_mask"], "kept", to=1), "row"], "rows")
    left = node("Mul", [node("Sub", ["one", kept], "left"), "low"], "out")
    weights = node("Softmax", [node("Add", [scores, left], "masked")], "weights", axis=-1)
    own = node("MatMul", [weights, value], "own")
    heard = node("MatMul", [x, node("Transpose", [cross], "ct", perm=[0, 2, 1])], "heard")
    read = node("MatMul", [node("Softmax", [heard], "shares", axis=-1), cross], "read")
    node("Add", [own, read], "logits")
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results]
    return helper.make_graph(nodes, f"{prefix}branch", [], ports)


@cache
def merged() -> onnx.ModelProto:
    """Return a decoder with an encoder's keys, which `use_cache_branch` chooses a branch of."""
    node = helper.make_node(
        "If",
        ["use_cache_branch"],
        ["logits", *PAST.values()],
        then_branch=branch("with_past.", True),
        else_branch=branch("no_past.", False),
    )

    def floats(name: str, *dims: Any) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)

    ids, encoded = ("batch_size", "sequence_length"), ("batch_size", "encoder_length", WIDTH)
    past = ("batch_size", "past_length", WIDTH)
    inputs = [
        helper.make_tensor_value_info("input_ids", TensorProto.INT64, ids),
        helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ("batch_size", "total")),
        floats("encoder_hidden_states", *encoded),
        *(floats(name, *(past if ".decoder." in name else encoded)) for name in PAST),
        helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, (1,)),
    ]
    outputs = [floats(name, "batch_size", None, WIDTH) for name in ("logits", *PAST.values())]
    table = np.random.default_rng(0).standard_normal((32, WIDTH)).astype(np.float32)
    constants = {
        "table": table,
        "row": np.array([1]),
        "one": np.float32(1),
        "low": np.float32(-1e4),
    }
    values = [onnx.numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()]
    graph = helper.make_graph([node], "merged", inputs, outputs, values)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    return model


class Peer:
    """ONNX Runtime with a state of its own, which a prompt makes by the branch without a past."""

    def __init__(self, encoder: np.ndarray) -> None:
        self.session = onnxruntime.InferenceSession(merged().SerializeToString())
        self.encoder = encoder
        batch = len(encoder)
        self.state = {name: np.zeros((batch, 0, WIDTH), np.float32) for name in PAST}
        self.steps = 0

    def inputs(self, ids: np.ndarray) -> dict[str, Any]:
        mask = np.ones(
            (len(ids), self.state["past_key_values.0.decoder.key"].shape[1] + ids.shape[1])
        )
        given = {"input_ids": ids, "attention_mask": mask.astype(np.int64)}
        return {**given, "encoder_hidden_states": self.encoder}

    def __call__(self, ids: np.ndarray) -> Any:
        branch = {"use_cache_branch": np.array([self.steps > 0])}
        logits, *state = self.session.run(None, {**self.inputs(ids), **self.state, **branch})
        self.state = dict(zip(PAST, state, strict=True))
        self.steps += 1
        return logits


def prompts() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    return random.standard_normal((2, 5, WIDTH)).astype(np.float32), random.integers(0, 32, (2, 12))


@pytest.mark.parametrize("value", [True, 1, np.array([True])])
def test_the_branch_with_the_past_appends_in_place(value: object) -> None:
    encoder, ids = prompts()
    model = braid.compile(merged(), constants={"use_cache_branch": value}, state=STATE)
    session, peer = model.session(capacity=32), Peer(encoder)
    session.reset(
        {n: np.zeros((2, 0, WIDTH), np.float32) for n in PAST}
        | {"past_key_values.0.encoder.key": -encoder}
    )
    first = session.state["past_key_values.0.encoder.key"].ctypes.data
    names = {spec.name for spec in model.inputs}
    for begin, end in ((0, 4), *((i, i + 1) for i in range(4, 10)), (10, 12)):
        given = {n: v for n, v in peer.inputs(ids[:, begin:end]).items() if n in names}
        np.testing.assert_allclose(session(given), peer(ids[:, begin:end]), rtol=1e-4, atol=1e-5)
    for name, array in peer.state.items():
        np.testing.assert_array_equal(session.state[name], array)
    assert session.state["past_key_values.0.encoder.key"].ctypes.data == first


def test_both_branches_run_as_they_are() -> None:
    encoder, ids = prompts()
    session, peer = braid.compile(merged()).session(STATE), Peer(encoder)
    for begin, end in ((0, 4), (4, 5), (5, 6), (6, 8)):
        chosen = {"use_cache_branch": np.array([begin > 0])}
        found = session({**peer.inputs(ids[:, begin:end]), **chosen})
        np.testing.assert_allclose(found, peer(ids[:, begin:end]), rtol=1e-4, atol=1e-5)


def test_the_way_out_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BraidError, match="data decide sizes of the model") as refusal:
        braid.compile(merged(), state=STATE)
    assert 'constants={"use_cache_branch": 1}' in str(refusal.value)
    with pytest.raises(BraidError, match="is 2, expected true, false, 1 or 0"):
        braid.compile(merged(), constants={"use_cache_branch": 2})
    onnx.save(merged(), tmp_path / "merged.onnx")
    command = [str(tmp_path / "merged.onnx"), "--state", "past_key_values.*=present.*"]
    assert main(["run", *command, "--random", "--constant", "use_cache_branch=1"]) == 0
    capsys.readouterr()
