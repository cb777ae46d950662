"""The native runtime, run on a hand-written model."""

import ctypes
import gc
import threading
from collections.abc import Callable
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from braid.runtime.native import NativeModel, cpu_supports
from braid.runtime.native_abi import load_library
from braid.support.errors import BraidError

ROWS, COLUMNS = 1000, 8

Build = Callable[..., bytes]


def expected(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    y = 3.0 * x + np.arange(COLUMNS, dtype=np.float32)
    return y, np.sum(y, dtype=np.float64).astype(np.float32)


def sample(rows: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((rows, COLUMNS), np.float32)


@pytest.fixture
def model(artifact_path: Path) -> NativeModel:
    return NativeModel.open(artifact_path)


@pytest.mark.parametrize("threads", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("rows", [1, 2, 5, ROWS])
def test_results(model: NativeModel, threads: int, rows: int) -> None:
    x = sample(rows)
    y, total = model.context(threads).run([x])
    want_y, want_total = expected(x)
    assert y.shape == want_y.shape
    np.testing.assert_allclose(y, want_y, rtol=1e-6)
    np.testing.assert_allclose(total, want_total, rtol=1e-6)


def test_no_iterations(model: NativeModel) -> None:
    x = np.zeros((ROWS, COLUMNS), np.float32)[:0]
    y, total = model.context(2).run([x])
    assert y.shape == (0, COLUMNS)
    assert total == 0.0


def test_description(model: NativeModel) -> None:
    (x,) = model.inputs
    assert (x.name, x.dtype, x.shape, x.bound) == ("x", "float32", (-1, COLUMNS), (ROWS, COLUMNS))
    assert [output.name for output in model.outputs] == ["y", "total"]
    assert model.arena_bytes == ROWS * 8
    assert model.counter_names == ("scaled_sum",)


def test_callers_buffers_are_written_in_place(model: NativeModel) -> None:
    buffers = [np.zeros((ROWS, COLUMNS), np.float32), np.zeros((), np.float32)]
    x = sample(4)
    y, _ = model.context().run([x], buffers)
    assert np.shares_memory(y, buffers[0])
    np.testing.assert_allclose(buffers[0][:4], expected(x)[0], rtol=1e-6)
    assert not buffers[0][4:].any()


def test_strided_input(model: NativeModel) -> None:
    x = np.asfortranarray(sample(6))
    np.testing.assert_allclose(model.context().run([x])[0], expected(x)[0], rtol=1e-6)


def test_profile(model: NativeModel) -> None:
    context = model.context()
    for _ in range(3):
        context.run([sample(ROWS)])
    entry = context.profile()["scaled_sum"]
    assert entry.count == 3
    assert entry.seconds > 0.0
    context.reset_profile()
    assert context.profile()["scaled_sum"].count == 0


def test_threads_share_a_model(model: NativeModel) -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        context, x = model.context(2), sample(ROWS, seed)
        want = expected(x)[0]
        for _ in range(20):
            if not np.allclose(context.run([x])[0], want, rtol=1e-6):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_context_keeps_its_model_alive(artifact_path: Path) -> None:
    context = NativeModel.open(artifact_path).context()
    artifact_path.unlink()
    gc.collect()
    x = sample(3)
    np.testing.assert_allclose(context.run([x])[0], expected(x)[0], rtol=1e-6)


def test_code_from_memory_and_from_a_descriptor(
    code: bytes, section: np.ndarray, tmp_path: Path
) -> None:
    (tmp_path / "model.so").write_bytes(code)
    library = ctypes.CDLL(str(tmp_path / "model.so"))
    address = ctypes.addressof(ctypes.c_char.in_dll(library, "braid_model"))
    x = sample(5)
    for model in (
        NativeModel.from_memory(code, section),
        NativeModel.from_descriptor(address, section, library),
    ):
        np.testing.assert_allclose(model.context().run([x])[0], expected(x)[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "the model has 1 inputs, got 0"),
        ([np.zeros((1, COLUMNS))], "input 'x' has dtype float64, expected float32"),
        (
            [np.zeros((1, COLUMNS), np.dtype(np.float32).newbyteorder())],
            "float32 in the byte order of another machine, expected float32",
        ),
        ([np.zeros((1, 9), np.float32)], r"shape \(1, 9\), expected \(\?<=1000, 8\)"),
        ([np.zeros(COLUMNS, np.float32)], r"shape \(8,\), expected"),
        ([np.zeros((ROWS + 1, COLUMNS), np.float32)], r"shape \(1001, 8\), expected"),
        ([np.full((1, COLUMNS), -1.0, np.float32)], r"x\[0\] is negative"),
        ([np.full((1, COLUMNS), 1e7, np.float32)], "failed with status 7"),
    ],
)
def test_wrong_inputs(model: NativeModel, inputs: list[np.ndarray], message: str) -> None:
    with pytest.raises(BraidError, match=message):
        model.context().run(inputs)


@pytest.mark.parametrize(
    ("buffer", "message"),
    [
        (np.zeros((3, COLUMNS), np.float32), r"shape \(3, 8\), expected \(1000, 8\)"),
        (np.zeros((ROWS, COLUMNS)), "dtype float64"),
        (np.zeros((COLUMNS, ROWS), np.float32).T, "not contiguous"),
    ],
)
def test_wrong_output_buffers(model: NativeModel, buffer: np.ndarray, message: str) -> None:
    with pytest.raises(BraidError, match=message):
        model.context().run([sample(1)], [buffer, np.zeros((), np.float32)])


@pytest.mark.parametrize(
    ("definitions", "message"),
    [
        ({"ABI": 99}, "ABI version 99, this runtime runs versions 13 to 17"),
        ({"FEATURE": "quantum"}, "'quantum', which this runtime does not know"),
        ({"ARENA_BYTES": -1}, "descriptor is malformed: arena bytes -1"),
        ({"WEIGHTS_BYTES": -1}, "descriptor is malformed: weights bytes -1"),
        ({"WEIGHTS_BYTES": 129}, "reads 129 bytes of weights, there are 128"),
    ],
)
def test_refused_code(
    build_code: Build, section: np.ndarray, definitions: dict[str, str | int], message: str
) -> None:
    with pytest.raises(BraidError, match=message):
        NativeModel.from_memory(build_code(**definitions), section)


def test_misplaced_weights_are_refused(code: bytes, section: np.ndarray) -> None:
    memory = np.zeros(256, np.uint8)
    with pytest.raises(BraidError, match="expected a multiple of 64"):
        NativeModel.from_memory(code, memory[1 - memory.ctypes.data % 64 + 64 :][:128])


def test_a_missing_cpu_feature_is_refused(build_code: Build) -> None:
    host = llvm.get_host_cpu_features()
    absent = (name for name in ("xop", "fma4", "sme") if name in host and not host[name])
    missing = next(absent, None)
    if missing is None:
        pytest.skip("this CPU has all the features that the test would miss")
    with pytest.raises(BraidError, match=f"'{missing}', which this CPU does not have"):
        NativeModel.from_memory(build_code(FEATURE=missing))


def test_cpu_features_agree_with_llvm() -> None:
    known = {
        name: present
        for name, present in llvm.get_host_cpu_features().items()
        if load_library().braid_cpu_supports(name.encode()) != -1
    }
    assert len(known) > 10
    assert load_library().braid_cpu_supports(None) == -1
    assert {name: cpu_supports(name) for name in known} == known


def test_garbage_code_is_refused() -> None:
    with pytest.raises(BraidError, match="cannot load the model's code"):
        NativeModel.from_memory(b"\x7fELF garbage")


def test_code_of_another_processor_is_refused(code: bytes) -> None:
    foreign = code[:18] + (243).to_bytes(2, "little") + code[20:]
    with pytest.raises(BraidError, match=r"another processor \(ELF machine 243"):
        NativeModel.from_memory(foreign)


def test_an_arena_too_large_for_memory(build_code: Build, section: np.ndarray) -> None:
    model = NativeModel.from_memory(build_code(ARENA_BYTES=1 << 60), section)
    with pytest.raises(BraidError, match="out of memory: the model's arena takes 11529"):
        model.context()
