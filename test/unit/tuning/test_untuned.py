"""What kernels get that have no record of a search: the default, the library's, or a search."""

from pathlib import Path

import numpy as np
import pytest

import braid
from braid.frontends.mlir import parse_mlir
from braid.onnxruntime import SessionOptions
from braid.runtime.artifact import read_artifact
from braid.support.errors import BraidError
from braid.support.shared_objects import ONEDNN, loaded_library
from braid.targets.costs.schedule_records import append_tuned, load_tuned
from braid.tuning.search import Rule
from braid.universe import make_context
from test.unit.tuning.test_tune_kernels import WITH_WEIGHT, only_record, time_by, tune

HAS_LIBRARY = pytest.mark.skipif(loaded_library(ONEDNN) is None, reason="oneDNN is not installed")
X, W = np.ones((24, 40), np.float32), np.ones((40, 48), np.float32)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))


def compiled(untuned: str = "default", **options: object) -> braid.Model:
    module = parse_mlir(make_context(), WITH_WEIGHT, "m.mlir").module
    model = braid.compile(
        module,
        jobs=1,
        parameters={"w": W},
        untuned=untuned,
        **options,  # pyright: ignore[reportArgumentType]
    )
    np.testing.assert_allclose(model(X), X @ W, rtol=1e-5)
    return model


def calls_library(model: braid.Model, path: Path) -> bool:
    model.save(path / "m.braid")
    return ONEDNN in read_artifact(path / "m.braid").manifest.libraries


@HAS_LIBRARY
def test_the_library_takes_what_has_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a record in its preferred layout; with one, in whatever layouts, it counts."""
    missed = compiled("library")
    assert missed.kernels == (0, 1, 0) and calls_library(missed, tmp_path)
    tune(monkeypatch, lambda number: {0: 2.0, 1: 3.0}.get(number, 1.0), model=WITH_WEIGHT)
    assert not only_record().keeps_library
    known = compiled("library")
    assert known.kernels == (1, 1, 0) and not calls_library(known, tmp_path)


@HAS_LIBRARY
def test_a_record_of_another_group_is_none_of_this(monkeypatch: pytest.MonkeyPatch) -> None:
    time_by(monkeypatch, lambda number: 1.0 + number)
    compiled("probe")
    ((key, record),) = load_tuned().items()
    append_tuned(key[::-1], record)
    assert compiled("library").kernels == (1, 1, 0)


def test_probing_is_less_than_tuning(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of what is timed, the default, is the fastest: a record in which a library wins
    is no hit."""
    time_by(monkeypatch, lambda number: 1.0 + number)
    assert compiled("probe").kernels == (1, 1, 1)
    assert only_record().levels == 1
    assert compiled("probe").kernels == (1, 1, 0)
    assert compiled().kernels == (1, 1, 0)
    assert tune(monkeypatch, lambda _: 1.0, model=WITH_WEIGHT)[0].startswith("1 kernels searched")
    assert only_record().levels == 3
    assert compiled("tune").kernels == (1, 1, 0)
    rule = Rule(levels=2)
    said = tune(monkeypatch, lambda _: 1.0, model=WITH_WEIGHT, rule=rule)[0]
    assert said.startswith("0 kernels searched")


def test_no_time_is_no_search() -> None:
    assert compiled("tune", untuned_seconds=0.0).kernels == (0, 1, 0)
    assert not load_tuned()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"untuned": "lib"}, "expected one of default, library, probe, tune"),
        ({"untuned": "library", "kernels": "generated"}, "all to be generated"),
        ({"untuned": "tune", "untuned_seconds": -1.0}, "untuned_seconds"),
        ({"untuned": "probe", "passes": "canonicalize"}, "no pass is 'select-schedules'"),
        ({"untuned": "probe", "cpu": "x86-64-v2"}, "are not timed on this one"),
    ],
)
def test_what_there_is_not(options: dict[str, object], message: str) -> None:
    with pytest.raises(BraidError, match=message):
        compiled(**options)  # pyright: ignore[reportArgumentType]


def test_former_names_of_the_options() -> None:
    module = parse_mlir(make_context(), WITH_WEIGHT, "m.mlir").module
    with pytest.raises(BraidError, match="untuned is 'lib', expected one of default, library"):
        braid.compile(module, on_miss="lib")  # pyright: ignore[reportCallIssue]
    with pytest.raises(BraidError, match="untuned_seconds is -1"):
        braid.compile(module, on_miss_seconds=-1.0)  # pyright: ignore[reportCallIssue]
    options = SessionOptions()
    options.add_session_config_entry("braid.on_miss", "probe")
    assert options.compile_options().untuned == "probe"
