"""Streams of chips are searched by simulation, and made by what was found."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

import braid
from braid.driver.options import CompileOptions
from braid.driver.pipeline import passes_for
from braid.driver.read_source import read_source
from braid.lowering.npu.measured_stream import StreamRequest, answer
from braid.lowering.npu.stream_family import StreamKernel
from braid.lowering.npu.stream_group import described_machine
from braid.lowering.npu.stream_meter import stream_meter
from braid.lowering.npu.stream_schedule import DEFAULT, StreamSchedule, space
from braid.passes.infrastructure.manager import run_pipeline
from braid.targets.backend import Job
from braid.targets.costs.schedule_records import load_tuned
from braid.targets.machines.load import load_target
from braid.tuning.kernel_runs import Reference
from braid.tuning.kernel_tasks import KernelTask, backend_tasks
from braid.tuning.search import Rule
from braid.tuning.space_files import read_space
from braid.tuning.tune_kernels import Tuning
from braid.tuning.tune_model import tune_model
from braid.universe import make_context
from test.run.models.conftest import FLOAT, Writer, as_model

CHIPS = ("npu-small", "npu-davinci")
SELECT = "select-stream-schedules"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))


def two_layers(prefix: str = "w") -> ModelProto:
    """Convolutions whose tensors are a quarter of a chip's memory, and what stands between."""
    w = Writer()
    first = w.op("Relu", w.op("Conv", "x", w.weight(24, 8, 3, 3), pads=[1] * 4))
    w.op("Conv", first, w.weight(24, 24, 1, 1), name="y")
    shape = [1, 8, 56, 56]
    proto: Any = as_model(w.graph([("x", FLOAT, shape)], [("y", FLOAT, [1, 24, 56, 56])]))
    for tensor in proto.graph.initializer:
        for node in proto.graph.node:
            names = [prefix + n if n == tensor.name else n for n in node.input]
            del node.input[:]
            node.input.extend(names)
        tensor.name = prefix + tensor.name
    return proto


def task_of(proto: ModelProto, target: str) -> KernelTask:
    context = make_context()
    module = read_source(context, proto, target=target).module
    passes = passes_for(module)
    run_pipeline(context, module, passes[: [p.name for p in passes].index(SELECT)])
    (found,) = backend_tasks(module, SELECT)
    return found


def job_of(target: str) -> Job:
    known = load_target(target)
    return Job(known, known.default_device)


@pytest.mark.parametrize("target", CHIPS)
def test_what_is_found_is_used(target: str) -> None:
    proto, lines = two_layers(), list[str]()
    x = np.random.default_rng(0).normal(size=(1, 8, 56, 56)).astype(np.float32)
    before = braid.compile(proto, target=target)
    assert before.kernels == (0, 1, 0)
    expected = before(x)
    report = tune_model(
        proto, Tuning(rule=Rule(levels=1), say=lines.append), CompileOptions(target=target)
    )
    assert (report.searched, report.faster) == (1, 1), lines
    assert any("simulated time" in line for line in lines)
    (found,) = load_tuned().values()
    assert found.chosen is not None and found.seconds < found.baseline
    after = braid.compile(proto, target=target)
    assert after.kernels == (1, 1, 0)
    np.testing.assert_allclose(after(x), expected, rtol=2e-4, atol=1e-5)
    (was,), (now,) = before.launched_seconds().values(), after.launched_seconds().values()
    assert was == pytest.approx(found.baseline, rel=1e-3)
    assert now == pytest.approx(found.seconds, rel=1e-3)
    assert tune_model(proto, Tuning(rule=Rule(levels=1)), CompileOptions(target=target)).known == 1


@pytest.mark.parametrize(("target", "levels"), [("npu-small", 3), ("npu-davinci", 1)])
def test_streams_compute_by_every_schedule(target: str, levels: int) -> None:
    task, chip = task_of(two_layers(), target), load_target(target).default_backend
    reference = Reference.of(task.group, task.choice)
    assert reference is not None
    ran = set[StreamSchedule]()
    for schedule in (each for level in range(levels) for each in space(level)):
        kernel = task.matches[0].emit("k", schedule.entries)
        request = StreamRequest(str(kernel.module), chip, schedule, 0.0)
        if answer(request).seconds is None:  # so small tiles that there are none
            continue
        made = answer(replace(request, operands=reference.operands))
        assert made.results is not None and reference.agrees(made.results), schedule
        ran.add(schedule)
    assert DEFAULT in ran and len(ran) > 4 * levels


def test_what_takes_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_of(two_layers(), "npu-small")
    match, schedule = task.default
    with stream_meter(job_of("npu-small")) as meter:
        kernel = match.emit("k", schedule.schedule)
        meter.limits[task.group] = 0.0
        assert meter.compiled([kernel], task.group) == [None]
        meter.limits[task.group] = 60.0
        (made,) = meter.compiled([kernel], task.group)  # by another process
        assert made is not None and meter.seconds(made) is not None


def test_streams_without_room_are_left_out() -> None:
    task = task_of(two_layers(), "npu-small")
    kernel = task.matches[0].emit("k", StreamSchedule(parts=1 << 12).entries)
    assert isinstance(kernel, StreamKernel)
    with stream_meter(job_of("npu-small")) as meter:
        assert meter.compiled([kernel], task.group) == [None]


def test_keys_are_of_what_is_computed_and_of_the_chip() -> None:
    own, other = (task_of(two_layers(name), "npu-small").key for name in ("w", "v"))
    assert own == other  # names of weights are no part
    assert task_of(two_layers(), "npu-davinci").key != own
    chip = load_target("npu-small").default_backend
    faster = replace(chip, units=(replace(chip.units[0], rate=1e10), *chip.units[1:]))
    assert described_machine(chip) != described_machine(faster)


def test_spaces_may_be_files(tmp_path: Path) -> None:
    file = tmp_path / "space.toml"
    file.write_text('[stream]\nmode = "replace"\nparts = [9, 11]\n')
    task = replace(task_of(two_layers(), "npu-small"), spaces=read_space(file))
    parts = [point.schedule["parts"] for point in task.space(0)]
    assert parts == [DEFAULT.parts, 9, 11]


def test_misses_are_searched() -> None:
    compiled = braid.compile(two_layers(), target="npu-small", untuned="probe", load=False)
    assert compiled.kernels == (1, 1, 1)
