"""Kernels of devices are searched by what their backends say of them."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import braid
from braid.dialects.braid.regions import FusedOp
from braid.driver.compile_source import emit_model
from braid.driver.options import CompileOptions
from braid.driver.pipeline import passes_for
from braid.driver.read_source import read_source
from braid.frontends.mlir import parse_mlir
from braid.lowering.gpu.codegen.machine_code import find_tool
from braid.lowering.gpu.launch.gpu_kernel import GpuKernel
from braid.lowering.gpu.machine_analysis.static_model import (
    EntryCode,
    least_seconds,
    predicted_seconds,
)
from braid.lowering.gpu.meter import GpuMeter, gpu_meter
from braid.passes.infrastructure.manager import run_pipeline
from braid.support.diagnostics import Diagnostic, handle_diagnostics
from braid.support.errors import BraidError
from braid.targets.backend import Job
from braid.targets.costs.schedule_records import TunedKernel, append_tuned, load_tuned
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.targets.machines.load import load_target
from braid.tuning.kernel_tasks import KernelTask, kernel_tasks
from braid.tuning.search import Rule
from braid.tuning.tune_kernels import Tuning
from braid.tuning.tune_model import tune_model
from braid.universe import make_context
from test.run.fpga.exported import plain, quantized

MODEL = """
func.func @main(%x: tensor<64x128xbf16> {braid.name = "x"},
                %w: tensor<128x64xbf16> {braid.name = "w"})
    -> (tensor<64x64xbf16> {braid.name = "y"}) {
  %y = braid.matmul %x, %w : (tensor<64x128xbf16>, tensor<128x64xbf16>) -> tensor<64x64xbf16>
  func.return %y : tensor<64x64xbf16>
}
"""


def _has(tool: str) -> bool:
    try:
        find_tool(tool)
    except BraidError:
        return False
    return True


needs_assembler = pytest.mark.skipif(not _has("ptxas"), reason="there is no ptxas")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))


def model() -> ModuleOp:
    return parse_mlir(make_context(), MODEL, "m.mlir").module


def decided() -> ModuleOp:
    """Return the model in the state in which kernels are searched."""
    context = make_context()
    module = read_source(context, model(), target="gpu-emulated").module
    passes = passes_for(module)
    run_pipeline(context, module, passes[: [p.name for p in passes].index("select-schedules")])
    return module


def task() -> KernelTask:
    (found,) = kernel_tasks(decided())
    return found


def kernel(number: int, found: KernelTask) -> GpuKernel:
    points = list(dict.fromkeys(point for level in (0, 1) for point in found.space(level)))
    made = found.emit(points[number], f"k{number}")
    assert isinstance(made, GpuKernel)
    return made


@needs_assembler
def test_kernels_of_a_gpu_are_searched_and_recorded() -> None:
    said: list[str] = []
    tuning = Tuning(rule=Rule(trials=3), jobs=1, say=said.append)
    report = tune_model(model(), tuning, CompileOptions(target="gpu-emulated"))
    assert report.searched == 1 and "predicted time (static model) on gpu:0" in said[1]
    (record,) = load_tuned().values()
    assert record.measure == "predicted time (static model)" and 0 < record.seconds < 1e-3
    again = tune_model(model(), tuning, CompileOptions(target="gpu-emulated"))
    assert (again.searched, again.known) == (0, 1)
    compiled = braid.compile(model(), target="gpu-emulated", jobs=1)
    assert str(compiled.kernels).startswith("1 of 1 kernels have a record")


def test_a_record_makes_the_kernel_of_a_gpu() -> None:
    """Its schedule is emitted, and computes the same."""
    before = emit_model(model(), "ptx", CompileOptions(target="gpu-emulated"))
    found = task()
    assert found.device.name == "gpu:0" and found.key != found.body
    points = [*found.space(0), *found.space(1)]
    other = next(p for p in points if p.schedule["rows"] != found.default[1].schedule["rows"])
    tuned = tune_record(found, other)
    append_tuned(found.key, tuned)
    assert emit_model(model(), "ptx", CompileOptions(target="gpu-emulated")) != before
    compiled = braid.compile(model(), target="gpu-emulated", jobs=1)
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-2, 3, shape) for shape in ((64, 128), (128, 64)))
    y = compiled(x.astype(ml_dtypes.bfloat16), w.astype(ml_dtypes.bfloat16))
    np.testing.assert_allclose(np.asarray(y).astype(np.float32), x @ w, rtol=1e-2, atol=0.5)


def tune_record(found: KernelTask, point: KernelSchedule) -> TunedKernel:
    match = next(m for m in found.matches if m.family.name == point.family)
    return TunedKernel(point, match.family.version, 1e-6, 2e-6, body=found.body)


@needs_assembler
def test_what_cannot_be_faster_is_not_compiled() -> None:
    """A bound stands for its time, until its results are asked for."""
    found = task()
    target = load_target("gpu-emulated")
    with gpu_meter(Job(target, target.device("gpu:0"))) as meter:
        assert isinstance(meter, GpuMeter)
        points = list(dict.fromkeys([*found.space(0), *found.space(1)]))
        some = points[:: len(points) // 6]
        kernels = [found.emit(point, f"k{n}") for n, point in enumerate(some)]
        made = meter.compiled(kernels, found.group)
        assert None not in made
        times = [meter.seconds(one) for one in made if one is not None]
        assert all(time is not None and time >= meter.best[found.group] for time in times)
        bounded = [one for one in made if one is not None and one.compiled is None]
        assert bounded
        for one in bounded[:1]:
            meter._compile([one])  # pyright: ignore[reportPrivateUsage]
            assert one.seconds is not None and one.seconds >= one.least


def test_predictions_follow_work_and_room() -> None:
    found = task()
    own = kernel(0, found)
    machine = found.device.machine
    least = least_seconds(own.launches, own.work, machine)
    (launch, *_) = own.launches.launches
    free = predicted_seconds(own.launches, own.work, {}, machine)
    assert free is not None and 0 < least <= free
    # 65,536 registers are too few for a block of so many threads.
    full = {launch.entry: EntryCode(65_536 * 2 // launch.threads)}
    assert predicted_seconds(own.launches, own.work, full, machine) is None


def test_devices_without_a_meter_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("braid.tuning.kernel_tasks.meter_of", lambda _: None)
    module = decided()
    assert kernel_tasks(module) == []
    assert any(isinstance(op, FusedOp) for op in module.walk())


VIEW = """
func.func @main(%x: tensor<4x6xf32> {braid.name = "x"}) -> (tensor<6x4xf32> {braid.name = "y"}) {
  %y = braid.reshape %x : (tensor<4x6xf32>) -> tensor<6x4xf32>
  func.return %y : tensor<6x4xf32>
}
"""


@pytest.mark.parametrize("target", ["host", "npu-small"])
def test_that_there_is_nothing_to_search_is_said(target: str, tmp_path: Path) -> None:
    model = tmp_path / "view.mlir"
    model.write_text(VIEW)
    said: list[Diagnostic] = []
    tuning = Tuning(rule=Rule(), seconds=60.0, say=lambda line: None)
    with handle_diagnostics(said.append):
        report = tune_model(model, tuning, CompileOptions(target=target))
    assert (report.searched, report.known, report.left) == (0, 0, 0)
    (warning,) = said
    assert warning.severity == "warning" and f"on target '{target}'" in warning.message
    assert warning.hint is not None and "nothing to search" in warning.hint


def test_what_chooses_schedules_without_a_search_is_said() -> None:
    model = quantized(plain(1, 8, (3,)))
    lines, said = list[str](), list[Diagnostic]()
    tuning = Tuning(rule=Rule(levels=1), seconds=0.0, say=lines.append)
    with handle_diagnostics(said.append):
        tune_model(model, tuning, CompileOptions(target="fpga-sim"))
    hints = [*lines, *(each.hint or "" for each in said)]
    assert any("'fpga:0'" in hint and "'select-hls-schedule'" in hint for hint in hints), hints
