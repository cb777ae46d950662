"""Sessions in C: the example, random steps beside a copy of the state, and what is refused."""

import ctypes
import subprocess
from ctypes import POINTER, c_int64, c_void_p
from pathlib import Path

import numpy as np
import onnx
import pytest

import braid
from braid.runtime.executors import NativeExecutor
from braid.runtime.native import NativeModel
from braid.runtime.native_abi import CModel, find_library
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
        f"the capacity is -1, expected a number of elements from 0 to {2**40}",
        f"the capacity is {2**63 - 1}, expected a number of elements from 0 to {2**40}",
        "state 'past' is not known before a step",
        "input 0 of the model is no state",
        "input 'past': dim 2 is 5, expected 4",
        "the state's data is NULL",
        "the model has no state: name its states when you compile it",
        "the context is one of another model than the session",
        f"out of memory: state 'past' with a capacity of {2**40} elements",
    ]


class CSession:
    """A session of a model in C, with a context of its own."""

    def __init__(self, path: Path, capacity: int = 0) -> None:
        self.c = ctypes.CDLL(str(find_library()))  # with signatures of its own
        for name in ("model_open", "model_describe", "context_create", "session_create"):
            getattr(self.c, f"braid_{name}").restype = c_void_p
        for name in ("session_data", "session_fork"):
            getattr(self.c, f"braid_{name}").restype = c_void_p
        self.c.braid_session_length.restype = c_int64
        self.c.braid_last_error.restype = ctypes.c_char_p
        self.model = c_void_p(self.c.braid_model_open(str(path).encode()))
        self.context = c_void_p(self.c.braid_context_create(self.model, 1))
        self.session = c_void_p(self.c.braid_session_create(self.model, c_int64(capacity)))
        address = self.c.braid_model_describe(self.model)
        described = CModel.from_address(address)
        self.names = [described.inputs[i].name.decode() for i in range(described.input_count)]
        self.outputs = described.output_count

    def __enter__(self) -> "CSession":
        assert self.model and self.context and self.session, self.error
        return self

    def __exit__(self, *_: object) -> None:
        self.c.braid_session_close(self.session)
        self.c.braid_context_close(self.context)
        self.c.braid_model_close(self.model)

    @property
    def error(self) -> str:
        return str(self.c.braid_last_error().decode())

    @property
    def length(self) -> int:
        return int(self.c.braid_session_length(self.session))

    def set(self, name: str, value: np.ndarray) -> int:
        shape = (c_int64 * value.ndim)(*value.shape)
        data = value.ctypes.data_as(c_void_p)
        index = c_int64(self.names.index(name))
        return int(self.c.braid_session_set_state(self.session, index, shape, data))

    def data(self, name: str, session: c_void_p | None = None) -> int:
        index = c_int64(self.names.index(name))
        return int(self.c.braid_session_data(session or self.session, index) or 0)

    def step(self, y: np.ndarray, session: c_void_p | None = None, **given: np.ndarray) -> int:
        """Run a step whose last output is `y`."""
        for name, value in given.items():
            index, shape = c_int64(self.names.index(name)), (c_int64 * value.ndim)(*value.shape)
            assert self.c.braid_context_set_input_shape(self.context, index, shape) == 0
        inputs = (c_void_p * len(self.names))(
            *(given[n].ctypes.data if n in given else None for n in self.names)
        )
        outputs = (c_void_p * self.outputs)(*[None] * (self.outputs - 1), y.ctypes.data)
        return int(
            self.c.braid_session_step(session or self.session, self.context, inputs, outputs)
        )


CROSS = """<ir_version: 9, opset_import: ["" : 18]> cross
  (float[B,T,4] x, float[B,S,4] past_encoder, float[B,P,4] past)
  => (float[B,S,4] present_encoder, float[B,N,4] present, float[B,T,4] y) {
    present_encoder = Identity (past_encoder)  present = Concat <axis = 1> (past, x)
    keys = Transpose <perm = [0, 2, 1]> (past_encoder)  s = MatMul (x, keys)
    w = Softmax <axis = -1> (s)  y = MatMul (w, past_encoder) }"""
"""A decoder that hands on what an encoder has given."""


def test_a_state_that_stays_is_not_copied(tmp_path: Path) -> None:
    save(tmp_path / "m.braid", CROSS, past_encoder="present_encoder", past="present")
    random = np.random.default_rng(1)
    encoder = random.standard_normal((2, 5, 4)).astype(np.float32)
    x, y = np.ones((2, 1, 4), np.float32), np.empty((2, 1, 4), np.float32)
    weights = np.exp(x @ encoder.transpose(0, 2, 1))
    wanted = weights / weights.sum(-1, keepdims=True) @ encoder
    with CSession(tmp_path / "m.braid", 64) as own:
        assert own.set("past_encoder", encoder) == 0
        assert own.step(y, x=x) == 1
        assert (
            own.error == "state 'past_encoder' is set, and 'past' is not: set all of them, or none"
        )
        assert own.set("past", np.zeros((0, 2, 4), np.float32)) == 0  # as code has it
        place = own.data("past_encoder")
        fork = c_void_p()
        for length in range(1, 10):
            assert own.step(y, x=x) == 0, own.error
            np.testing.assert_allclose(y, wanted, rtol=1e-5)
            assert own.data("past_encoder") == place and own.length == length
            if length == 3:
                fork.value = own.c.braid_session_fork(own.session)
        assert own.step(y, fork, x=x) == 0
        assert own.data("past_encoder", fork) == place
        assert own.data("past", fork) != own.data("past")
        kept = ctypes.cast(place, POINTER(ctypes.c_float))
        np.testing.assert_array_equal(kept[: encoder.size], encoder.reshape(-1))
        own.c.braid_session_close(fork)


def test_what_stays_takes_no_capacity(tmp_path: Path) -> None:
    save(tmp_path / "m.braid", CROSS, past_encoder="present_encoder")
    with CSession(tmp_path / "m.braid", 2**40) as own:  # memory for no more than there is
        assert own.set("past_encoder", np.ones((2, 3, 4), np.float32)) == 0, own.error
        assert own.length == -1 and own.error == "no state of the model grows"


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
