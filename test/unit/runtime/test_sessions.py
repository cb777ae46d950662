"""Sessions in C: the example, random steps beside a copy of the state, and what is refused."""

import ctypes
import subprocess
from ctypes import POINTER, c_int64
from pathlib import Path

import numpy as np
import onnx
import pytest

import braid
from braid.runtime.executors import NativeExecutor
from braid.runtime.native import NativeModel
from braid.runtime.native_abi import CModel
from braid.support.errors import BraidError
from test.c_programs import build, with_runtime

NATIVE = Path(__file__).parents[3] / "runtime" / "native"
EXAMPLE = NATIVE / "examples" / "session_model.c"
RANDOM_SESSIONS = Path(__file__).with_name("random_sessions.c")
STEP = """<ir_version: 9, opset_import: ["" : 18]> step
  (float[B,T,4] x, float[B,P,4] past) => (float[B,N,4] present, float[B,T,4] y) {
    k = Neg (x)  present = Concat <axis = 1> (past, k)
    keys = Transpose <perm = [0, 2, 1]> (present)  s = MatMul (x, keys)
    w = Softmax <axis = -1> (s)  y = MatMul (w, present) }"""
COUNTED = """<ir_version: 9, opset_import: ["" : 18]> g
  (float[B,T,4] x, float[B,P,4] past, float[2,4] sums, int64[1] count)
  => (float[B,N,4] present, float[2,4] next, int64[1] following, float[B,T,4] y)
  <float[1] half = {0.5}, int64[1] one = {1}, int64[1] axis = {1}> {
    present = Concat <axis = 1> (past, x)  total = ReduceSum <keepdims = 0> (x, axis)
    scaled = Mul (sums, half)  next = Add (scaled, total)  following = Add (count, one)
    factor = Cast <to = 1> (following)  y = Mul (x, factor) }"""


def save(path: Path, text: str, **state: str) -> braid.Model:
    model = braid.compile(onnx.parser.parse_model(text), state=state or None, jobs=1)
    model.save(path)
    return model


def save_models(folder: Path) -> tuple[Path, Path]:
    """Return a model with a state and one without."""
    save(folder / "step.braid", STEP, past="present")
    save(folder / "plain.braid", STEP)
    return folder / "step.braid", folder / "plain.braid"


@pytest.fixture(scope="module")
def session_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("example") / "session_model", EXAMPLE, *with_runtime())


@pytest.mark.parametrize("new", [1, 3])
@pytest.mark.parametrize(
    ("text", "state"),
    [
        (STEP, {"past": "present"}),
        (COUNTED, {"past": "present", "sums": "next", "count": "following"}),
    ],
    ids=["grows", "some-are-handed-on"],
)
def test_the_example_equals_python(
    session_model: Path, tmp_path: Path, text: str, state: dict[str, str], new: int
) -> None:
    session = save(tmp_path / "m.braid", text, **state).session()
    x = (np.arange(2 * new * 4) % 17 / 16).astype(np.float32).reshape(2, new, 4)
    command = [session_model, tmp_path / "m.braid", "100", "B=2", f"T={new}"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = said.splitlines()
    assert len(lines) == 200
    for count, (length, y) in enumerate(zip(lines[::2], lines[1::2], strict=True), 1):
        assert length == f"length {count * new}"
        norm = np.linalg.norm(session(x))
        np.testing.assert_allclose(float(y.removeprefix("y: ")), norm, rtol=1e-4)


def test_the_example_refuses_models_without_a_state(session_model: Path, tmp_path: Path) -> None:
    save(tmp_path / "plain.braid", STEP)
    found = subprocess.run(
        [session_model, tmp_path / "plain.braid"], capture_output=True, text=True
    )
    assert found.returncode == 1
    assert "error: the model has no state: name its states when you compile it" in found.stderr


def test_random_sessions(tmp_path: Path) -> None:
    program = build(tmp_path / "sessions", RANDOM_SESSIONS, *with_runtime(), "-lpthread")
    command = [program, *save_models(tmp_path), "1", "4", "2000"]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    *refused, counts = found.stdout.splitlines()
    steps, failures = map(int, counts.split())
    assert steps > 3000 and failures > 200
    assert refused == [
        "the capacity is -1, expected a number of elements from 0",
        f"the capacity is {2**63 - 1}, expected a number of elements from 0",
        "state 'past' is not known before a step",
        "input 0 of the model is no state",
        "input 'past': dim 2 is 5, expected 4",
        "the state's data is NULL",
        "the model has no state: name its states when you compile it",
        "the context is one of another model than the session",
        f"out of memory: state 'past' with a capacity of {2**40} elements",
    ]


class CState(ctypes.Structure):
    """`braid_state_v1`."""

    _fields_ = (
        ("input", c_int64),
        ("output", c_int64),
        ("appended", c_int64),
        ("order", POINTER(c_int64)),
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("state_count", -1),
        ("state_count", 1 << 40),
        ("states", None),
        ("input", -1),
        ("input", 2),
        ("output", 2),
        ("output", -1),
        ("order", (0, 0, 1)),
        ("order", (0, 1, 3)),
        ("order", (-1, 1, 0)),
    ],
)
def test_damaged_descriptions_of_states(field: str, value: object) -> None:
    compiled = braid.compile(onnx.parser.parse_model(STEP), state={"past": "present"})
    executor = compiled._open().executor
    assert isinstance(executor, NativeExecutor)
    address = ctypes.addressof(executor._model.descriptor)
    whole = CModel.from_buffer_copy(CModel.from_address(address))
    assert whole.state_count == 1 and whole.states is not None
    state = CState.from_buffer_copy((ctypes.c_char * 32).from_address(whole.states))
    assert (state.input, state.output, state.appended, state.order[:3]) == (1, 0, 1, [1, 0, 2])
    whole.states = ctypes.addressof(state)
    damaged = whole if field.startswith("state") else state
    setattr(damaged, field, (c_int64 * 3)(*value) if isinstance(value, tuple) else value)
    with pytest.raises(BraidError, match="malformed: state 0"):
        NativeModel.from_descriptor(ctypes.addressof(whole), None, compiled)
