"""Sessions that keep the state of a model, beside ONNX Runtime."""

import asyncio
import json
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import braid
from braid.runtime.manifest import Manifest
from braid.support.errors import BraidError
from braid.tools.cli import main

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
def compiled(appends: bool) -> braid.Model:
    return braid.compile(proto(), state=STATE if appends else None)


@pytest.fixture(params=[False, True], ids=["handed-on", "appended-to"])
def model(request: pytest.FixtureRequest) -> braid.Model:
    """Return the step, whose cache is a new array each time, or grows in place."""
    return compiled(request.param)


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
def test_steps_equal_those_of_onnx_runtime(model: braid.Model, batch: int) -> None:
    session, peer = model.session(STATE), Peer(batch)
    assert not session.state
    for length in (5, *[1] * 30, 4, 1):
        x = floats(batch, length, 8)
        check(session(x), peer(x))
    assert session.state["past_key"].shape == (batch, 2, 40, 4)
    assert session.state["past_count"].tolist() == [33]


def test_forks_do_not_share_what_follows(model: braid.Model) -> None:
    session, x = model.session(STATE), floats(1, 3, 8)
    session(x)
    other = session.fork()
    first, second = floats(1, 1, 8), floats(1, 1, 8)
    for own, step in ((session, first), (other, second)):
        peer = Peer(1)
        peer(x)
        check(own(step), peer(step))
    assert session.state["past_key"].shape == other.state["past_key"].shape
    assert not np.array_equal(session.state["past_key"], other.state["past_key"])


def test_reset(model: braid.Model) -> None:
    session, x = model.session(STATE), floats(2, 2, 8)
    wanted = session(x)
    session(x)
    session.reset()
    check(session(x), list(wanted))
    kept = {name: array.copy() for name, array in session.state.items()}
    wanted = session(x)
    session.reset(kept)
    check(session(x=x), list(wanted))


def test_a_call_that_fails_leaves_the_state(model: braid.Model) -> None:
    session = model.session(STATE)
    session(floats(1, 2, 8))
    before = session.state["past_key"].copy()
    with pytest.raises(BraidError, match=r"'B' is 2|'B' is 1|expected"):
        session(floats(2, 1, 8))
    np.testing.assert_array_equal(session.state["past_key"], before)
    session(floats(1, 1, 8))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"last_*": "present_*"}, r"no input 'last_\*'"),
        ({"past_*": "next_*"}, "no output 'next_key'"),
        ({"past_count": "y"}, "input 'past_count' is int64 of rank 1, output 'y' is float32"),
        (
            {"past_*": "present_*", "past_key": "present_value"},
            "input 'past_key' takes the values of outputs 'present_key' and 'present_value'",
        ),
        ({}, "expected names of outputs by names of inputs"),
        (["past_key"], "expected names of outputs by names of inputs"),
    ],
)
def test_states_that_there_are_not(model: braid.Model, state: Any, message: str) -> None:
    with pytest.raises(BraidError, match=message):
        model.session(state)


def test_states_that_options_say_and_there_are_not() -> None:
    with pytest.raises(BraidError, match="no output 'next_key'"):
        braid.compile(proto(), state={"past_*": "next_*"})
    with pytest.raises(BraidError, match="nothing says what the state of the model is"):
        compiled(False).session()
    for capacity in (-1, 2**40 + 1):
        with pytest.raises(BraidError, match=f"is {capacity}, expected .* 0 to 1,099,511,627,776"):
            compiled(True).session(capacity=capacity)
    with pytest.raises(BraidError, match="compiled for given sizes keeps no state"):
        sizes = {"B": [1], "T": [1], "P": [1, 2]}
        braid.compile(proto(), state=STATE, shape_buckets=sizes)


UNFIT = """<ir_version: 9, opset_import: ["" : 18]> unfit
  (float[1,T,4] x, float[PAST] past, float[1,P,4] past_two)
  => (float[1,M,4] present, float[1,N,4] present_two) {
    present = Concat <axis = 1> (past, x)  present_two = Concat <axis = 1> (past_two, x, x) }"""


@pytest.mark.parametrize(
    ("past", "dims", "state", "message"),
    [
        (
            "1,8,4",
            {},
            "past",
            r"'past' of shape \(1, 8, 4\) .* 'present' of shape \(1, T \+ 8, 4\)",
        ),
        ("1,8,4", {"T": 2}, "past", r"\(1, 8, 4\) .* 'present' of shape \(1, 10, 4\)"),
        ("1,P,4", {"T": 2, "P": 3}, "past", r"\(1, 3, 4\) .* 'present' of shape \(1, 5, 4\)"),
        (
            "1,P,4",
            {},
            "past*",
            r"'past_two' .* where 'P' is that of output 'present' of shape",
        ),
    ],
)
def test_states_that_never_fit(past: str, dims: dict[str, int], state: str, message: str) -> None:
    unfit = onnx.parser.parse_model(UNFIT.replace("PAST", past))
    with pytest.raises(BraidError, match=message) as refusal:
        braid.compile(unfit, dims=dims, state={state: state.replace("past", "present")})
    assert "leave the dim open along which the state grows" in str(refusal.value)
    if dims:  # numbers tell a session, too
        with pytest.raises(BraidError, match="can never take the value"):
            braid.compile(unfit, dims=dims).session({"past": "present"})


CROSS = """<ir_version: 9, opset_import: ["" : 18]> cross
  (float[B,T,4] x, float[B,S,4] past_encoder, float[B,P,4] past)
  => (float[B,S,4] present_encoder, float[B,N,4] present, float[B,T,4] y) {
    present_encoder = Identity (past_encoder)  present = Concat <axis = 1> (past, x)
    keys = Transpose <perm = [0, 2, 1]> (past_encoder)  s = MatMul (x, keys)
    w = Softmax <axis = -1> (s)  y = MatMul (w, past_encoder) }"""


def test_what_an_encoder_has_given_is_not_copied() -> None:
    model = braid.compile(onnx.parser.parse_model(CROSS), state={"past*": "present*"})
    encoder, x = floats(2, 5, 4), floats(2, 1, 4)
    first = {"past_encoder": encoder, "past": floats(2, 3, 4)}
    (_, _, wanted) = model(x=x, **first)
    session = model.session(capacity=64)
    session.reset(first)
    place = session.state["past_encoder"].ctypes.data
    forks = [session.fork() for _ in range(2)]
    for own in (session, *forks, session):
        np.testing.assert_array_equal(own(x), wanted)
        assert own.state["past_encoder"].ctypes.data == place
        np.testing.assert_array_equal(own.state["past_encoder"], encoder)
    assert session.state["past"].shape[1] == 5 and forks[0].state["past"].shape[1] == 4
    huge = braid.compile(onnx.parser.parse_model(CROSS), state={"past_*": "present_*"})
    kept = huge.session(capacity=2**40)  # of which what stays takes nothing
    kept.reset({"past_encoder": encoder})
    np.testing.assert_allclose(kept(x=x, past=first["past"])[1], wanted, rtol=1e-5)


def test_what_is_appended_to_is_not_copied() -> None:
    session = compiled(True).session(capacity=16)
    places: set[int] = set()
    for _ in range(16):
        session(floats(2, 1, 8))
        places.add(session.state["past_key"].ctypes.data)
    assert len(places) == 1
    session(floats(2, 1, 8))
    assert session.state["past_key"].ctypes.data not in places
    assert not session.state["past_key"].flags.writeable


def test_the_first_that_goes_on_has_the_memory() -> None:
    first = compiled(True).session(capacity=16)
    first(floats(1, 2, 8))
    place, other = first.state["past_key"].ctypes.data, first.fork()
    other(floats(1, 1, 8))
    first(floats(1, 1, 8))
    assert other.state["past_key"].ctypes.data == place != first.state["past_key"].ctypes.data


def test_a_call_that_fails_gives_memory_back() -> None:
    session = compiled(True).session(capacity=16)
    session(floats(1, 2, 8))
    place = session.state["past_key"].ctypes.data
    with pytest.raises(BraidError):
        session(floats(2, 1, 8))
    session(floats(1, 1, 8))
    assert session.state["past_key"].ctypes.data == place


def test_forks_go_on_in_threads() -> None:
    root = compiled(True).session(capacity=64)
    root(floats(1, 3, 8))
    steps = [[floats(1, 1, 8) for _ in range(20)] for _ in range(6)]

    def run(own: list[np.ndarray]) -> list[Any]:
        session = root.fork()
        return [session(x) for x in own]

    with ThreadPoolExecutor(len(steps)) as pool:
        found = list(pool.map(run, steps))
    for own, results in zip(steps, found, strict=True):
        session = compiled(False).session(STATE)
        session.reset(dict(root.state))
        for x, result in zip(own, results, strict=True):
            check(result, session(x))


def test_calls_and_artifacts_have_the_dims_of_the_model(tmp_path: Path) -> None:
    appending, plain = compiled(True), compiled(False)
    assert (appending.inputs, appending.outputs) == (plain.inputs, plain.outputs)
    assert repr(appending) == repr(plain)
    past = {name: floats(2, 2, 3, 4) for name in ("past_key", "past_value")}
    given = {"x": floats(2, 2, 8), **past, "past_count": np.array([7])}
    wanted = plain(given)
    check(appending(given), wanted)
    appending.save(tmp_path / "step.braid")
    loaded = braid.load(tmp_path / "step.braid")
    out = [np.empty_like(each) for each in wanted]
    loaded(given, out=out)
    check(out, wanted)
    with appending.stream([given, given]) as results:
        for result in results:
            check(result, wanted)
    with pytest.raises(BraidError, match="dim 'B' is 3 in input 'past_key'"):
        loaded({**given, "past_key": past["past_key"].transpose(2, 0, 1, 3)})
    session = loaded.session()
    session.reset({**past, "past_count": np.array([7])})
    y, most = session(given["x"])
    check([y, most], [wanted[0], wanted[4]])
    check([session.state["past_key"]], [wanted[1]])


def test_one_output_is_the_next_value_of_two_inputs() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]> g
      (float[B,T,4] x, float[B,P,4] past, float[B,Q,4] last) => (float[B,N,4] present, float[] y) {
      present = Concat <axis = 1> (past, x)  s = ReduceSum <keepdims = 0> (present)
      t = ReduceMax <keepdims = 0> (last)  y = Add (s, t) }"""
    appending = braid.compile(onnx.parser.parse_model(text), state={"past": "present"})
    session = appending.session({"past": "present", "last": "present"})
    first = floats(2, 3, 4)
    session.reset({"past": np.zeros((2, 0, 4), np.float32), "last": first})
    steps = [floats(2, length, 4) for length in (3, 1, 1)]
    for count, x in enumerate(steps, 1):
        whole = np.concatenate(steps[:count], axis=1)
        before = first if count == 1 else np.concatenate(steps[: count - 1], axis=1)
        np.testing.assert_allclose(session(x), whole.sum() + before.max(), rtol=1e-4)
        np.testing.assert_array_equal(session.state["past"], whole)
        np.testing.assert_array_equal(session.state["last"], whole)


def test_prompts_and_steps_are_decided_at_lengths_of_their_own() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]> g
      (float[B,T,4] x, float[B,P,4] past, float[B,T,M] mask) => (float[B,N,4] present, float y) {
      present = Concat <axis = 1> (past, x)  keys = Transpose <perm = [0, 2, 1]> (present)
      scores = MatMul (x, keys)  masked = Add (scores, mask)  w = Softmax <axis = -1> (masked)
      y = MatMul (w, present) }""".replace("float y", "float[B,T,4] y")
    source = onnx.parser.parse_model(text)
    session = braid.compile(source, state={"past": "present"}).session()
    peer = onnxruntime.InferenceSession(source.SerializeToString())
    past, length = np.zeros((2, 0, 4), np.float32), 0
    for count in (5, 1, 2, 1):
        length += count
        given = {"x": floats(2, count, 4), "mask": floats(2, count, length)}
        past, y = peer.run(None, {**given, "past": past})
        check([session(**given), session.state["past"]], [y, past])


def test_what_is_shown_has_the_dims_of_the_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own, plain = (compiled(each)._repr_html_() for each in (True, False))  # pyright: ignore[reportPrivateUsage]
    assert own.partition("</table>")[0] == plain.partition("</table>")[0]
    compiled(True).save(tmp_path / "step.braid")
    main(["inspect", str(tmp_path / "step.braid")])
    said = capsys.readouterr().out
    assert "state past_key is present_key in the next run, and is appended to in place" in said
    assert "state past_count is present_count in the next run, and is handed on" in said


def test_tensors_give_tensors(model: braid.Model) -> None:
    torch: Any = pytest.importorskip("torch")
    session, other = model.session(STATE), model.session(STATE)
    for _ in range(2):
        x = floats(2, 3, 8)
        for found, wanted in zip(session(torch.from_numpy(x)), other(x), strict=True):
            assert isinstance(found, torch.Tensor)
            check([found.numpy()], [wanted])


def test_wrong_calls(model: braid.Model) -> None:
    session = model.session(STATE)
    with pytest.raises(BraidError, match=r"input 'past_count' is part of the state"):
        session({"x": floats(1, 1, 8), "past_count": np.zeros(1, np.int64)})
    with pytest.raises(BraidError, match="got 2 inputs, the model has 1 beside its state"):
        session(floats(1, 1, 8), floats(1, 1, 8))
    with pytest.raises(BraidError, match=r"'past_value' is missing"):
        session.reset({"past_key": np.zeros((1, 2, 0, 4), np.float32), "past_count": [0]})
    with pytest.raises(BraidError, match=r"'past_other' is no state"):
        session.reset({"past_other": np.zeros((1, 2, 0, 4), np.float32)})
    with pytest.raises(BraidError, match="the state is a list, expected arrays by the names"):
        session.reset([1])  # pyright: ignore[reportArgumentType]
    kept = {"past_key": [[1.0], [1.0, 2.0]], "past_value": 0.0, "past_count": [0]}
    with pytest.raises(BraidError, match="input 'past_key' is a list that is not an array"):
        session.reset(kept)
    with pytest.raises(BraidError, match="input 'x' is a list that is not an array"):
        session([[1.0], [1.0, 2.0]])
    with pytest.raises(BraidError, match="input 'x' is given twice"):
        session(floats(1, 1, 8), x=floats(1, 1, 8))
    with pytest.raises(BraidError, match=r"StateSession.fork takes 0 arguments by position"):
        session.fork(1)  # pyright: ignore[reportCallIssue]
    with pytest.raises(BraidError, match="capacity is True, expected a number"):
        model.session(STATE, capacity=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"order": [1, 0]}, "state 'past_key' cannot take the value of 'present_key'"),
        ({"output": "y"}, "state 'past_key' cannot take the value of 'y'"),
        ({"input": "past"}, "it has no state 'past' of output 'present_key'"),
        ({"input": "past_value"}, "state 'past_value' is there twice"),
        ({"output": "present_value", "order": [0, 1, 2, 3]}, "has its dims in two orders"),
    ],
)
def test_manifests_with_states_that_there_are_not(changes: dict[str, Any], message: str) -> None:
    package = compiled(True).packaged()
    fields = json.loads(package.manifest.to_json())
    fields["state"][0] |= changes
    with pytest.raises(BraidError, match=message):
        Manifest.from_json(json.dumps(fields))


def test_streams_are_steps_in_order(model: braid.Model) -> None:
    session, peer = model.session(STATE), Peer(2)
    steps = [floats(2, length, 8) for length in (4, 1, 1, 3, 1)]
    requests = [steps[0], (steps[1],), {"x": steps[2]}, *steps[3:]]
    with session.stream(requests) as stream:
        for x, found in zip(steps, stream, strict=True):
            check(found, peer(x))
    assert session.state["past_key"].shape == (2, 2, 10, 4)
    x = floats(2, 1, 8)
    check(session(x), peer(x))  # which goes on


def test_a_request_that_fails_leaves_the_state(model: braid.Model) -> None:
    session, peer = model.session(STATE), Peer(1)
    steps = [floats(1, 2, 8), floats(3, 1, 8), floats(1, 1), floats(1, 1, 8)]
    found = list(session.stream(steps, return_errors=True))
    assert [isinstance(each, BraidError) for each in found] == [False, True, True, False]
    check(found[0], peer(steps[0]))
    check(found[3], peer(steps[3]))
    stream = session.stream([floats(1, 1, 8), floats(3, 1, 8), floats(1, 1, 8)])
    next(stream)
    with pytest.raises(BraidError, match=r"'B' is 3|'B' is 1|expected"):
        next(stream)
    assert list(stream) == []
    assert session.state["past_count"].tolist() == [3]
    with pytest.raises(BraidError, match="return_errors is 1, expected True or False"):
        session.stream([], return_errors=1)  # pyright: ignore[reportArgumentType]


def test_streams_take_asynchronous_requests(model: braid.Model) -> None:
    session, steps = model.session(STATE), [floats(1, 1, 8) for _ in range(4)]

    async def requests() -> AsyncIterator[np.ndarray]:
        for x in steps:
            yield x

    async def run() -> list[Any]:
        return [found async for found in session.stream(requests())]

    peer = Peer(1)
    for x, found in zip(steps, asyncio.run(run()), strict=True):
        check(found, peer(x))


def test_a_dim_behind_dims_of_one_is_appended_to_in_place() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]> g
      (float[1,T,4] x, float[1,P,4] past) => (float[1,N,4] present, float y) {
      present = Concat <axis = 1> (past, x)  y = ReduceSum <keepdims = 0> (present) }"""
    session = braid.compile(onnx.parser.parse_model(text), state={"past": "present"}).session(
        capacity=8
    )
    steps = [floats(1, length, 4) for length in (3, 1, 4, 1)]
    places = list[int]()
    for count, x in enumerate(steps, 1):
        whole = np.concatenate(steps[:count], axis=1)
        np.testing.assert_allclose(session(x), whole.sum(), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(session.state["past"], whole)
        places.append(session.state["past"].ctypes.data)
    assert len(set(places[:3])) == 1 and places[3] != places[0]
