"""Schedules of kernels are searched by their time on a device where there is one."""

from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

import braid
from braid.driver.options import CompileOptions
from braid.frontends.mlir import parse_mlir
from braid.targets.costs.schedule_records import TunedKernel, load_tuned
from braid.tuning.device_kernels import MEASURED_THERE
from braid.tuning.search import Rule
from braid.tuning.tune_kernels import Tuning, TuningReport
from braid.tuning.tune_model import tune_model
from braid.universe import make_context
from test.run.cuda.conftest import TARGET, Driver
from test.unit.tuning.test_meters import MODEL, needs_assembler

pytestmark = needs_assembler


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path / "cache"))


def model() -> ModuleOp:
    return parse_mlir(make_context(), MODEL, "m.mlir").module


def tuned(said: list[str] | None = None, levels: int = 3) -> tuple[TuningReport, TunedKernel]:
    say = (lambda _: None) if said is None else said.append
    rule = Rule(trials=3, levels=levels)
    report = tune_model(model(), Tuning(rule=rule, jobs=1, say=say), CompileOptions(target=TARGET))
    (record,) = load_tuned().values()
    return report, record


def test_kernels_are_timed_where_the_device_is(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It also searches those whose times were predicted before, but does not replace measurements
    by predictions."""
    monkeypatch.setenv("BRAID_CUDA_LIBRARY", "/nowhere/libcuda.so.1")
    said: list[str] = []
    assert tuned(said, levels=1)[1].measure.startswith("predicted")
    assert said[0].startswith("nothing runs on gpu:0 here: ") and "/nowhere/libcuda.so.1" in said[0]
    monkeypatch.setenv("BRAID_CUDA_LIBRARY", str(driver.library))
    said.clear()
    report, record = tuned(said, levels=2)
    assert report.searched == 1 and f"{MEASURED_THERE} on gpu:0" in said[1]
    assert record.measure == MEASURED_THERE and record.seconds > 0 and not record.refused
    # The first three schedules by the median of ten runs, one run to see that the device is here.
    assert driver.calls().count("cuGraphLaunch") >= 31
    assert driver.violations() == []
    compiled = braid.compile(model(), target=TARGET)
    assert str(compiled.kernels).startswith("1 of 1 kernels have a record")
    monkeypatch.setenv("BRAID_CUDA_LIBRARY", "/nowhere/libcuda.so.1")
    assert tuned()[0].known == 1


def test_why_a_gpu_that_is_here_does_not_run_them_is_said(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU that runs their code is refused as well: its times would be recorded as the
    target's."""
    monkeypatch.setenv("STANDIN_CAPABILITY", "9.0")
    said: list[str] = []
    assert tuned(said, levels=1)[1].measure.startswith("predicted")
    assert "is sm_80, and what is here is sm_90" in said[0]
    assert driver.violations() == []
