"""Models that are pickled and copied, and run in other processes."""

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from pathlib import Path

import joblib
import numpy as np
import onnx
import pytest

import braid
from braid.support.errors import BraidError

Expected = Callable[[np.ndarray], np.ndarray]
ORIGINS = ("compiled", "loaded", "kept")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("BRAID_CACHE_LIMIT", "1GiB")


@pytest.fixture(params=ORIGINS)
def model(
    request: pytest.FixtureRequest, affine_path: Path, tmp_path: Path, cache: None
) -> braid.Model:
    """Return a model whose weights are in memory, in a file of the user, or in the cache."""
    if request.param == "kept":
        braid.compile(affine_path, jobs=1)
        return braid.compile(affine_path, threads=2)
    compiled = braid.compile(affine_path, jobs=1, threads=2, cache=False)
    if request.param == "compiled":
        return compiled
    compiled.save(tmp_path / "saved.braid")
    return braid.load(tmp_path / "saved.braid", threads=2)


def check(model: braid.Model, x: np.ndarray, expected: Expected) -> None:
    y, total = model(x)
    np.testing.assert_allclose(y, expected(x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(total, expected(x).sum(), rtol=1e-5)


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_pickle(
    model: braid.Model, x: np.ndarray, expected: Expected, protocol: int, tmp_path: Path
) -> None:
    text = pickle.dumps(model, protocol)
    (tmp_path / "saved.braid").unlink(missing_ok=True)
    model.close()
    again = pickle.loads(text)
    assert again.threads == 2
    assert repr(again) == repr(model)
    check(again, x, expected)
    again.save(tmp_path / "again.braid")
    check(braid.load(tmp_path / "again.braid"), x, expected)


def test_weights_stay_out_of_the_pickle_where_it_is_asked_for(
    model: braid.Model, x: np.ndarray, expected: Expected
) -> None:
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(model, 5, buffer_callback=buffers.append)
    assert len(text) < 500 < buffers[0].raw().nbytes
    check(pickle.loads(text, buffers=buffers), x, expected)


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
def test_copies_end_and_count_apart(
    affine: onnx.ModelProto,
    x: np.ndarray,
    expected: Expected,
    make: Callable[[braid.Model], braid.Model],
) -> None:
    model = braid.compile(affine, jobs=1, profile=True)
    model(x)
    copied = make(model)
    check(copied, x, expected)
    check(copied, x, expected)
    assert {entry.count for entry in model.profile().values()} == {1}
    assert {entry.count for entry in copied.profile().values()} == {2}
    model.close()
    check(copied, x, expected)


def test_interpreted_models_are_copied_and_not_pickled(
    affine: onnx.ModelProto, x: np.ndarray, expected: Expected
) -> None:
    model = braid.interpret(affine)
    check(copy.deepcopy(model), x, expected)
    with pytest.raises(BraidError, match="an interpreted model has no code to save"):
        pickle.dumps(model)


def test_what_is_not_loaded_stays_so(affine: onnx.ModelProto, tmp_path: Path) -> None:
    again = pickle.loads(pickle.dumps(braid.compile(affine, jobs=1, load=False)))
    with pytest.raises(BraidError, match="compiled to be saved, not to run"):
        again.run([np.zeros((4, 8), np.float32)])
    again.save(tmp_path / "again.braid")
    braid.load(tmp_path / "again.braid")


def test_emulated_devices_stay_emulated(
    affine: onnx.ModelProto, x: np.ndarray, expected: Expected
) -> None:
    model = braid.compile(affine, target="gpu-h100", emulate=True, jobs=1)
    assert model.devices
    check(pickle.loads(pickle.dumps(model)), x, expected)


def test_a_damaged_pickle_is_refused(model: braid.Model, x: np.ndarray) -> None:
    text = bytearray(pickle.dumps(model, 5))
    weights = max(spec.offset + spec.nbytes for spec in model.packaged().manifest.weights)
    text[text.find(b"BRAIDART") + 4096 + weights - 1] ^= 1
    with pytest.raises(BraidError, match="'<pickled model>' is damaged"):
        pickle.loads(bytes(text))(x)


def test_spawned_workers(model: braid.Model, x: np.ndarray, expected: Expected) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        results = pool.map(model, [x, 2 * x, 3 * x])
    for number, (y, _) in enumerate(results, 1):
        np.testing.assert_allclose(y, expected(number * x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib(model: braid.Model, x: np.ndarray, expected: Expected, backend: str) -> None:
    calls = (joblib.delayed(model)(number * x) for number in (1, 2, 3))
    results = joblib.Parallel(n_jobs=2, backend=backend)(calls)
    for number, (y, _) in enumerate(results, 1):
        np.testing.assert_allclose(y, expected(number * x), rtol=1e-5, atol=1e-5)


def test_joblib_keeps_models_in_files(
    model: braid.Model, x: np.ndarray, expected: Expected, tmp_path: Path
) -> None:
    joblib.dump(model, tmp_path / "model.joblib", compress=3)
    check(joblib.load(tmp_path / "model.joblib"), x, expected)
