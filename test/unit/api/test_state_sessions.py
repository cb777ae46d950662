"""Sessions that keep the state of a model, beside ONNX Runtime."""

from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import braid
from braid.support.errors import BraidError

RANDOM = np.random.default_rng(5)
STEP = """<ir_version: 9, opset_import: ["" : 18]> step
  (float[B,T,8] x, float[B,2,P,4] past_key, float[B,2,P,4] past_value, int64[1] past_count)
  => (float[B,T,8] y, float[B,2,N,4] present_key, float[B,2,N,4] present_value,
      int64[1] present_count, float[] most)
  <int64[4] split = {0, 0, 2, 4}, int64[3] join = {0, 0, 8}, int64[1] one = {1}> {
    h = Reshape (x, split)  q = Transpose <perm = [0, 2, 1, 3]> (h)  k = Neg (q)
    present_key = Concat <axis = 2> (past_key, k)
    present_value = Concat <axis = 2> (past_value, q)
    t = Transpose <perm = [0, 1, 3, 2]> (present_key)  s = MatMul (q, t)
    w = Softmax <axis = -1> (s)  r = MatMul (w, present_value)
    u = Transpose <perm = [0, 2, 1, 3]> (r)  y = Reshape (u, join)
    present_count = Add (past_count, one)  most = ReduceMax <keepdims = 0> (s) }"""
STATE = {"past_*": "present_*"}


@cache
def proto() -> onnx.ModelProto:
    return onnx.parser.parse_model(STEP)


@cache
def model() -> braid.Model:
    return braid.compile(proto())


def floats(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


class Peer:
    """ONNX Runtime with a state of its own."""

    def __init__(self, batch: int) -> None:
        self.session = onnxruntime.InferenceSession(proto().SerializeToString())
        empty = np.zeros((batch, 2, 0, 4), np.float32)
        self.state: dict[str, Any] = {
            "past_key": empty,
            "past_value": empty,
            "past_count": np.zeros(1, np.int64),
        }

    def __call__(self, x: np.ndarray) -> list[Any]:
        y, *state, most = self.session.run(None, {"x": x, **self.state})
        self.state = dict(zip(self.state, state, strict=True))
        return [y, most]


def check(found: Any, wanted: list[Any]) -> None:
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", [1, 3])
def test_steps_equal_those_of_onnx_runtime(batch: int) -> None:
    session, peer = model().session(STATE), Peer(batch)
    assert not session.state
    for length in (5, *[1] * 30, 4, 1):
        x = floats(batch, length, 8)
        check(session(x), peer(x))
    assert session.state["past_key"].shape == (batch, 2, 40, 4)
    assert session.state["past_count"].tolist() == [33]


def test_forks_do_not_share_what_follows() -> None:
    session, x = model().session(STATE), floats(1, 3, 8)
    session(x)
    other = session.fork()
    first, second = floats(1, 1, 8), floats(1, 1, 8)
    for own, step in ((session, first), (other, second)):
        peer = Peer(1)
        peer(x)
        check(own(step), peer(step))
    assert session.state["past_key"].shape == other.state["past_key"].shape
    assert not np.array_equal(session.state["past_key"], other.state["past_key"])


def test_reset() -> None:
    session, x = model().session(STATE), floats(2, 2, 8)
    wanted = session(x)
    session(x)
    session.reset()
    check(session(x), list(wanted))
    kept = {name: array.copy() for name, array in session.state.items()}
    wanted = session(x)
    session.reset(kept)
    check(session(x=x), list(wanted))


def test_a_call_that_fails_leaves_the_state() -> None:
    session = model().session(STATE)
    session(floats(1, 2, 8))
    before = session.state["past_key"]
    with pytest.raises(BraidError, match=r"'B' is 2|'B' is 1|expected"):
        session(floats(2, 1, 8))
    assert session.state["past_key"] is before
    session(floats(1, 1, 8))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"last_*": "present_*"}, r"no input 'last_\*'"),
        ({"past_*": "next_*"}, "no output 'next_key'"),
        ({"past_count": "y"}, "input 'past_count' is int64 of rank 1, output 'y' is float32"),
        ({}, "expected names of outputs by names of inputs"),
        (["past_key"], "expected names of outputs by names of inputs"),
    ],
)
def test_states_that_there_are_not(state: Any, message: str) -> None:
    with pytest.raises(BraidError, match=message):
        model().session(state)


def test_wrong_calls() -> None:
    session = model().session(STATE)
    with pytest.raises(BraidError, match=r"input 'past_count' is part of the state"):
        session({"x": floats(1, 1, 8), "past_count": np.zeros(1, np.int64)})
    with pytest.raises(BraidError, match="got 2 inputs, the model has 1 beside its state"):
        session(floats(1, 1, 8), floats(1, 1, 8))
    with pytest.raises(BraidError, match=r"'past_value' is missing"):
        session.reset({"past_key": np.zeros((1, 2, 0, 4), np.float32), "past_count": [0]})
    with pytest.raises(BraidError, match=r"'past_other' is no state"):
        session.reset({"past_other": np.zeros((1, 2, 0, 4), np.float32)})
