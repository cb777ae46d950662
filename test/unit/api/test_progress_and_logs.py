"""The progress reports of a compilation."""

import logging
import subprocess
import sys
from collections import Counter
from pathlib import Path

import onnx
import pytest

import braid
from braid.support.diagnostics import Diagnostic, emit
from braid.support.errors import BraidError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("BRAID_CACHE_LIMIT", "1GiB")


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_step_is_told(affine: onnx.ModelProto, jobs: int) -> None:
    told: list[braid.Progress] = []
    braid.compile(affine, jobs=jobs, progress=told.append)
    begun = [one for one in told if one.done == 0]
    assert {one.stage for one in begun} == {"passes", "emit", "compile"}
    steps = Counter(one.stage for one in told)
    for stage in steps:
        expected = sum(one.total + 1 for one in begun if one.stage == stage)
        assert steps[stage] == expected
    assert all(one.name for one in told if one.done)
    passes = [one for one in told if one.stage == "passes"]
    assert [one.done for one in passes] == list(range(passes[0].total + 1))
    assert str(passes[-1]) == f"passes {len(passes) - 1} of {len(passes) - 1}: {passes[-1].name}"
    assert "kernel 'kernel_0'" in {one.name for one in told if one.stage == "compile"}


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("stage", ["passes", "emit", "compile"])
def test_what_a_callback_raises_ends_the_compilation(
    affine: onnx.ModelProto, jobs: int, stage: str
) -> None:
    told: list[braid.Progress] = []

    def stop(progress: braid.Progress) -> None:
        told.append(progress)
        if progress.stage == stage and progress.done:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        braid.compile(affine, jobs=jobs, progress=stop)
    assert told[-1].stage == stage
    braid.compile(affine, jobs=jobs)


def test_progress_that_is_no_function(affine: onnx.ModelProto) -> None:
    with pytest.raises(BraidError, match="progress is 3, expected a function"):
        braid.compile(affine, progress=3)  # pyright: ignore


def test_compilations_are_logged(affine_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "braid"):
        braid.compile(affine_path, jobs=1)
        braid.compile(affine_path, jobs=1)
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert len(said) == 2
    assert said[0][0] == "INFO"
    assert said[0][1].startswith("compiled <braid.Model (x: float32[4, 8])")
    assert said[1] == ("DEBUG", "loaded what was compiled of 'affine.onnx' before")


def test_warnings_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    emit(Diagnostic("warning", "100% odd", hint="do nothing"))
    emit(Diagnostic("remark", "as it should be"))
    assert caplog.record_tuples == [("braid", logging.WARNING, "100% odd (do nothing)")]


SILENT = """
import sys
import braid
from braid.support.diagnostics import Diagnostic, emit
emit(Diagnostic("warning", "odd"))
assert "logging" not in sys.modules
import logging
emit(Diagnostic("warning", "odd"))
logging.basicConfig()
emit(Diagnostic("warning", "seen"))
"""


def test_nothing_is_shown_unless_logging_is_set_up() -> None:
    result = subprocess.run([sys.executable, "-c", SILENT], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "WARNING:braid:seen\n")
