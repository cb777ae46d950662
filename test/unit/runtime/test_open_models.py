"""One code for every size, run on a hand-written model."""

import ctypes
import os
import random
import subprocess
import time
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_int64
from pathlib import Path

import numpy as np
import pytest

from braid.runtime.artifact import write_artifact
from braid.runtime.executors import NativeExecutor
from braid.runtime.manifest import UNBOUNDED, Manifest
from braid.runtime.model import Model, load
from braid.runtime.native import NativeContext, NativeModel
from braid.runtime.native_abi import CModel, CTensor, CValueSize, load_library
from braid.support.errors import BraidError
from test.c_programs import PLUGIN, build, with_runtime

SOURCE = Path(__file__).with_name("open_model.c")
PROGRAM = Path(__file__).with_name("open_models.c")


class CBuffer(ctypes.Structure):
    """`braid_buffer_v1`."""

    _fields_ = (("bytes", c_int64), ("first", c_int64), ("last", c_int64))


class CCheck(ctypes.Structure):
    """`braid_size_check_v1`."""

    _fields_ = (("size", c_int64), ("kind", c_int64), ("message", c_char_p))


class COpen(ctypes.Structure):
    """`braid_open_v1`."""

    _fields_ = (
        ("step_count", c_int64),
        ("steps", POINTER(c_int64)),
        ("result_count", c_int64),
        ("results", POINTER(c_int64)),
        ("buffer_count", c_int64),
        ("buffers", POINTER(CBuffer)),
        ("output_shapes", POINTER(POINTER(c_int64))),
        ("check_count", c_int64),
        ("checks", POINTER(CCheck)),
        ("value_count", c_int64),
        ("values", POINTER(CValueSize)),
        ("input_shapes", POINTER(POINTER(c_int64))),
    )


class Parts:
    """A copy of the model's description that can be changed."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.model = CModel.from_buffer_copy(described(library))
        assert self.model.open is not None
        self.open = COpen.from_buffer_copy(COpen.from_address(self.model.open))
        self.model.open = ctypes.addressof(self.open)
        self.steps = (c_int64 * (4 * self.open.step_count))(
            *self.open.steps[: 4 * self.open.step_count]
        )
        self.results = (c_int64 * self.open.result_count)(
            *self.open.results[: self.open.result_count]
        )
        self.buffers = (CBuffer * self.open.buffer_count)(
            *self.open.buffers[: self.open.buffer_count]
        )
        self.checks = (CCheck * self.open.check_count)(*self.open.checks[: self.open.check_count])
        self.inputs = (CTensor * 2)(*self.model.inputs[:2])
        self.s_dims = (c_int64 * 1)(2)
        self.y_shape = (c_int64 * 1)(0)
        self.shapes = (POINTER(c_int64) * 2)(
            ctypes.cast(self.y_shape, POINTER(c_int64)), self.open.output_shapes[1]
        )
        for name in ("steps", "results", "buffers", "checks"):
            field = getattr(self.open, name)
            setattr(self.open, name, ctypes.cast(getattr(self, name), type(field)))
        self.open.output_shapes = self.shapes
        self.inputs[1].dims = ctypes.cast(self.s_dims, POINTER(c_int64))
        self.model.inputs = ctypes.cast(self.inputs, POINTER(CTensor))


Change = Callable[[Parts], None]


def changed(library: ctypes.CDLL, *changes: Change) -> NativeModel:
    parts = Parts(library)
    for change in changes:
        change(parts)
    return NativeModel.from_descriptor(ctypes.addressof(parts.model), None, library, parts)


def step(number: int, word: int, value: int) -> Change:
    return lambda parts: parts.steps.__setitem__(4 * number + word, value)


def entry(list: str, number: int, value: int) -> Change:
    return lambda parts: getattr(parts, list).__setitem__(number, value)


def field(part: str, name: str, value: object) -> Change:
    """Set a field of `model` or `open`, or, as in `buffers 1`, of an element of a list."""
    list, _, number = part.partition(" ")

    def change(parts: Parts) -> None:
        found = getattr(parts, list)
        setattr(found[int(number)] if number else found, name, value)

    return change


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = build(tmp_path_factory.mktemp("open") / "open_model.so", SOURCE, flags=(*PLUGIN, "-O1"))
    return ctypes.CDLL(str(path))


@pytest.fixture(scope="module")
def native(library: ctypes.CDLL) -> NativeModel:
    return NativeModel.from_descriptor(ctypes.addressof(described(library)), None, library)


@pytest.fixture(scope="module")
def model(native: NativeModel) -> Model:
    return Model(native.inputs, native.outputs, NativeExecutor(native, 1))


def described(library: ctypes.CDLL) -> CModel:
    return CModel.in_dll(library, "braid_model")


def sample(batch: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(batch + n)
    return generator.integers(-99, 99, (batch, n)).astype("f4"), np.arange(2.0 * n, dtype="f4")


def check(results: object, x: np.ndarray, s: np.ndarray) -> None:
    y, sums = results  # type: ignore[misc]
    np.testing.assert_array_equal(y, 2 * x.reshape(-1))
    np.testing.assert_array_equal(sums, 2 * x.sum(0) + s[: x.shape[1]])


def test_description(model: Model, native: NativeModel) -> None:
    assert native.inputs[0].dims == ("batch", "n")
    assert native.inputs[0].bound == (UNBOUNDED, UNBOUNDED)
    assert [(dim.name, dim.sizes) for dim in native.dims][:2] == [("batch", ()), ("n", ())]
    x, y = "x: float32[batch, n], s: float32[2 * n]", "y: float32[?], sums: float32[?]"
    assert repr(model) == f"<braid.Model ({x}) -> ({y})>"


def test_many_sizes(model: Model) -> None:
    for batch, n in [(1, 1), (3, 5), (100, 1000), (0, 4), (4, 0), (0, 0), (1000, 3), (3, 5)]:
        x, s = sample(batch, n)
        check(model(x, s), x, s)


def test_wrong_shapes(model: Model) -> None:
    x, s = sample(2, 3)
    for inputs, message in [
        ((x[0], s), r"input 'x' has shape \(3,\), expected \(batch, n\)"),
        ((x, x), r"input 's' has shape \(2, 3\), expected \(2 \* n\)"),
        ((x, s[:5]), r"input 's': dim 0 is not 2 \* n \(batch=2,n=3,2 \* n=5\)"),
        (
            (np.zeros((0, 1000001), "f4"), np.zeros(2000002, "f4")),
            r"input 'x': dim 1 is not at most 1000000 \(batch=0,n=1000001,",
        ),
    ]:
        with pytest.raises(BraidError, match=message):
            model(*inputs)
        check(model(x, s), x, s)


def test_buffers_for_outputs(model: Model) -> None:
    x, s = sample(4, 3)
    y, sums = np.zeros(12, "f4"), np.zeros(3, "f4")
    results = model(x, s, out={"y": y, "sums": sums})
    assert results[0] is y and results[1] is sums
    check(results, x, s)
    flat = np.zeros(12, "f4")
    check(model(x, s, out=[flat, s[:3]]), x, sample(4, 3)[1])
    with pytest.raises(BraidError, match=r"output 'y' has shape \(11,\), expected \(12,\)"):
        model(x, s, out=[y[:11], sums])


def test_shapes_are_needed(native: NativeModel) -> None:
    library, context = load_library(), native.context()
    handle = context.handle
    sizes = (ctypes.c_int64 * 2)(2, 3)

    def refused(index: int) -> str:
        assert not library.braid_context_output_shape(handle, index)
        return library.braid_last_error().decode()

    assert refused(0) == "input 'x': dim 0 is open; set its shape before the run"
    assert library.braid_context_set_input_shape(handle, 0, sizes) == 0
    assert refused(1) == "input 's': dim 0 is open; set its shape before the run"
    sizes[0] = -5
    assert library.braid_context_set_input_shape(handle, 0, sizes) != 0
    error = library.braid_last_error().decode()
    assert error == "input 'x': dim 0 ('batch') is -5, expected at least 0"


def shaped(*shape: int) -> np.ndarray:
    """Return an array that has this shape and hardly any memory."""
    return np.lib.stride_tricks.as_strided(np.zeros(1, "f4"), shape, (0,) * len(shape))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([step(3, 1, 64)], r"size 1 of the model exceeds 64 bits \(batch=549755813888,n=524288"),
        (
            [step(3, 1, 16), field("buffers 1", "bytes", 1)],
            "the model's arena would exceed 64 bits",
        ),
        ([step(3, 0, 0)], "size 1 of the model exceeds 64 bits"),
    ],
    ids=["product", "arena", "number"],
)
def test_sizes_beyond_64_bits(library: ctypes.CDLL, changes: list[Change], message: str) -> None:
    context = changed(library, *changes).context()
    with pytest.raises(BraidError, match=message):
        context.shapes_for([shaped(2**39, 2**19), shaped(2**20)])


def test_inputs_beyond_64_bits(native: NativeModel) -> None:
    context = native.context()
    assert context.shapes_for([shaped(2**39, 2**19), shaped(2**20)]) == [(2**58,), (2**19,)]
    with pytest.raises(BraidError, match="input 'x' would be too large for this computer"):
        context.shapes_for([shaped(2**41, 2**19), shaped(2**20)])
    x, s = sample(3, 2)
    check(context.run([x, s]), x, s)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([step(3, 1, -4)], "buffer 0 of the model would have -24 bytes"),
        ([entry("results", 6, 10)], r"dim 0 of output 'sums' would be -4 \(batch=3,n=2,2 \* n=4"),
        ([entry("s_dims", 0, 1)], "dim 'n' is 4 in input 's', and 2 in an input before it"),
    ],
    ids=["buffer", "output", "dims"],
)
def test_sizes_that_contradict(library: ctypes.CDLL, changes: list[Change], message: str) -> None:
    dims = [field("model", "dim_count", 2), step(2, 1, 1)] if "dim 'n'" in message else []
    with pytest.raises(BraidError, match=message):
        changed(library, *changes, *dims).context().run(sample(3, 2))


def test_an_arena_that_cannot_be_had(native: NativeModel) -> None:
    context = native.context()
    x, s = sample(5, 7)
    check(context.run([x, s]), x, s)
    message = (
        r"out of memory: the model's arena takes 4503599627370496 bytes \(batch=1125899906842624"
    )
    with pytest.raises(BraidError, match=message):
        context.run([np.zeros((2**50, 0), "f4"), np.zeros(0, "f4")])
    check(context.run([x, s]), x, s)
    context.trim()
    check(context.run([x, s]), x, s)


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def test_runs_go_on_after_a_trim(model: Model) -> None:
    for n in (2**12, 3):
        x, s = sample(2**10, n)
        check(model(x, s), x, s)
        model.trim()
        check(model(x[:3], s), x[:3], s)


def with_buffers(library: ctypes.CDLL, *others: tuple[int, int, int]) -> NativeContext:
    """Return the model, with unused buffers after those that it uses."""
    buffers = (CBuffer * (3 + len(others)))(*Parts(library).buffers, *others)
    return changed(
        library,
        field("open", "buffers", ctypes.cast(buffers, POINTER(CBuffer))),
        field("open", "buffer_count", len(buffers)),
    ).context()


@pytest.mark.parametrize("count", [10, 100, 1000])
def test_planning_is_quick(library: ctypes.CDLL, count: int) -> None:
    generator = random.Random(count)
    spans = [1, 1, 1, 2, 3, 40]
    lasts = [4 + i + generator.randrange(generator.choice(spans)) for i in range(count)]
    others = [(generator.randint(1, 3), 3 + i, last) for i, last in enumerate(lasts)]
    context = with_buffers(library, *others)
    seconds: list[float] = []
    for batch in range(1, 100):
        arrays = sample(batch, 3)
        start = time.thread_time()
        context.shapes_for(arrays)
        seconds.append(time.thread_time() - start)
    assert min(seconds) < 0.2e-3 + 0.2e-6 * count


def test_plans_are_kept_within_bytes(library: ctypes.CDLL) -> None:
    """Each of these takes a MiB for the offsets of its buffers."""
    count, sizes = 1 << 17, 30
    context = with_buffers(library, *((1, 3 + i, 3 + i) for i in range(count)))
    for batch in range(10 + sizes):
        if batch == 10:
            before = resident_bytes()
        x, s = sample(batch, 2)
        check(context.run([x, s]), x, s)
    assert resident_bytes() - before < sizes / 4 * 8 * count


def test_streams(model: Model) -> None:
    requests = [sample(batch, n) for batch, n in [(1, 2), (50, 3), (1, 2), (0, 1), (7, 100)]]
    with model.stream(requests) as stream:
        for results, (x, s) in zip(stream, requests, strict=True):
            check(results, x, s)
    wrong = (requests[0][0], requests[1][1])
    with model.stream([wrong, requests[1]], return_errors=True) as stream:
        error, results = stream
    assert isinstance(error, BraidError) and "dim 0 is not 2 * n" in str(error)
    check(results, *requests[1])


def write_open_model(path: Path, native: NativeModel, code: bytes) -> Manifest:
    manifest = Manifest(
        model="open",
        inputs=native.inputs,
        outputs=native.outputs,
        arena_bytes=0,
        target="host",
        triple="x86_64-unknown-linux-gnu",
        cpu_features=(),
        builder="test",
        dims=native.dims,
        output_shapes=(("batch * n",), ("n",)),
    )
    write_artifact(path, manifest, code, np.zeros(0, np.uint8))
    return manifest


def test_an_artifact(library: ctypes.CDLL, native: NativeModel, tmp_path: Path) -> None:
    path = tmp_path / "open.braid"
    manifest = write_open_model(path, native, Path(library._name).read_bytes())
    assert Manifest.from_json(manifest.to_json()) == manifest
    x, s = sample(11, 13)
    check(load(path)(x, s), x, s)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([field("model", "arena_bytes", 64)], "arena bytes of an open model 64"),
        ([field("model", "run", None)], "number of variants 0"),
        ([field("model", "dim_count", 2)], "input 1"),
        ([entry("s_dims", 0, -1)], "no input has dim 2"),
        (
            [entry("s_dims", 0, -1), field("model", "dim_count", 2)],
            "nothing says the size of an open dim of input 1",
        ),
        ([field("open", "step_count", -1)], "number of steps of sizes -1"),
        ([field("open", "step_count", 2**20 + 1)], "number of steps of sizes 1048577"),
        ([field("open", "steps", None)], "number of steps of sizes 16"),
        ([field("open", "step_count", 15)], "sizes, of so many steps: 15"),
        ([step(5, 0, 99)], "sizes, of so many steps: 16"),
        ([step(5, 1, 5)], "sizes, of so many steps: 16"),
        ([step(2, 1, 3)], "sizes, of so many steps: 16"),
        ([entry("results", 0, 16)], "sizes, of so many steps: 16"),
        ([field("open", "result_count", -3)], "number of sizes -3"),
        ([field("open", "result_count", 6)], "shape of output 1"),
        ([field("open", "buffer_count", 2**40)], "number of buffers 1099511627776"),
        ([field("buffers 1", "bytes", 7)], "buffer 1"),
        ([field("buffers 1", "bytes", -1)], "buffer 1"),
        ([field("buffers 2", "last", 1)], "buffer 2"),
        ([field("buffers 0", "first", -1)], "buffer 0"),
        ([field("open", "output_shapes", None)], "shapes of outputs 2"),
        ([entry("y_shape", 0, 7)], "shape of output 0"),
        ([field("open", "check_count", 2**21)], "number of checks 2097152"),
        ([field("checks 0", "size", -1)], "check 0"),
        ([field("checks 1", "kind", 2)], "check 1"),
        ([field("checks 1", "message", None)], "check 1"),
    ],
)
def test_damaged_descriptions(library: ctypes.CDLL, changes: list[Change], message: str) -> None:
    with pytest.raises(BraidError, match=f"descriptor is malformed: {message}"):
        changed(library, *changes)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("open") / "open_models"
    return build(path, PROGRAM, SOURCE, *with_runtime())


@pytest.mark.parametrize("count", [1000, pytest.param(125_000, marks=pytest.mark.slow)])
def test_threads_and_many_sizes(program: Path, count: int) -> None:
    command = [program, "8", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    runs, kept, grown, trimmed = map(int, done.stdout.split())
    assert runs == 8 * count + 100
    assert kept < 1 << 16
    assert grown < 16 << 20
    assert trimmed > 0.95 * (12 << 20)
