"""Every schedule of some products and convolutions, timed on the GPU that is here.

``python -m benchmarks.gpu_schedules [--target gpu-h200] [--json FILE]`` compiles kernels by the
schedules of levels 0 and 1, at most ``--most`` of a case, in as many processes as there are CPUs,
and then times one after the other by the device's own account, with operands in its last cache
where they fit. A test compares the predictions with ``benchmarks/results/gpu_schedules.json``. It
takes a GPU, and all that compiles.
"""

import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from statistics import median

import numpy as np

import braid
from benchmarks.command import run_command
from benchmarks.gpu_arrays import launched_seconds
from benchmarks.gpu_case import Case
from benchmarks.gpu_cases import convolution, product
from braid.driver.pipeline import passes_for
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.support.errors import BraidError
from braid.targets.machines.resolve import set_target, target_attribute
from braid.tuning.device_kernels import DeviceRunner, runs_alone
from braid.tuning.kernel_tasks import kernel_tasks
from braid.tuning.synthetic_inputs import synthetic_array
from braid.tuning.tune_kernels import SELECT_SCHEDULES
from braid.universe import make_context

_RUNS = 13
_FIRST = 2
"""Runs that do not count."""


@dataclass
class Timed:
    """A kernel by one schedule: how long it takes, in seconds, and at least."""

    case: str
    family: str
    schedule: dict[str, int]
    seconds: float | None = field(default=None)
    least: float | None = field(default=None)


def cases() -> Iterator[Case]:
    """Yield cases of SqueezeNet, ResNet and language models, in f32, and some in f16."""
    for shape in ((48, 192, 15, 3), (512, 1000, 13, 1), (16, 64, 55, 1), (64, 64, 58, 3)):
        yield convolution(*shape, "f32", images=1)
    for shape in ((512, 512, 9, 3), (1024, 256, 14, 1), (32, 64, 30, 3)):
        yield convolution(*shape, "f32", images=1)
    for shape in ((96, 24, 56, 1), (128, 128, 30, 3)):
        yield convolution(*shape, "f32")
    for size in ((128, 768, 768), (128, 3072, 768), (512, 512, 512), (16, 4096, 4096)):
        yield product(*size, "f32")
    yield convolution(256, 256, 16, 3, "f16", images=1)
    for shape in ((256, 256, 16, 3), (512, 512, 9, 3)):
        yield convolution(*shape, "f16")


def points(case: Case, target: str, most: int) -> list[tuple[Timed, str]]:
    """Return the first schedules of the case's kernel, and models with them, as text."""
    context = make_context()
    module = parse_mlir(context, case.text, "case.mlir").module
    set_target(module, target)
    passes = passes_for(module)
    place = [own.name for own in passes].index(SELECT_SCHEDULES)
    run_pipeline(context, module, passes[:place])
    task = next(own for own in kernel_tasks(module) if runs_alone(own))
    with ExitStack() as ending:
        runner = DeviceRunner(target_attribute(module), task.device, ending)
        space = dict.fromkeys(point for level in (0, 1) for point in task.space(level))
        return [
            (Timed(case.name, point.family, dict(point.schedule)), runner.text(task.group, point))
            for point in islice(space, most)
        ]


def compile_to(path: Path, text: str) -> bool:
    """Compile the model, save it to `path`, and return whether it can be compiled."""
    try:
        module = parse_mlir(make_context(), text, "kernel.mlir").module
        braid.compile(module, passes=(), jobs=1, load=False).save(path)
    except BraidError:
        return False
    return True


def time(timed: Timed, path: Path) -> None:
    """Set the times of a compiled kernel."""
    model = braid.load(path)
    inputs = [synthetic_array(own.shape, np.dtype(own.dtype)) for own in model.inputs]
    seconds: list[float] = []
    for _ in range(_RUNS):
        before = launched_seconds(model)
        model.run(inputs)
        seconds.append(launched_seconds(model) - before)
    timed.seconds, timed.least = median(seconds[_FIRST:]), min(seconds[_FIRST:])


def main(*, target: str = "gpu-h200", most: int = 40) -> object:
    """Return the command."""
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor() as pool:
        own = pool.map(partial(points, target=target, most=most), cases())
        found = [point for each in own for point in each]
        paths = [Path(folder) / f"{number}.braid" for number in range(len(found))]
        compiled = list(pool.map(compile_to, paths, (text for _, text in found)))
        rows = [timed for timed, _ in found]
        for timed, path, is_there in zip(rows, paths, compiled, strict=True):
            if is_there:
                time(timed, path)
    for name, group in groupby(rows, key=lambda timed: timed.case):
        took = {str(own.schedule): 1e6 * own.seconds for own in group if own.seconds is not None}
        first, best = next(iter(took)), min(took, key=lambda own: took[own])
        print(
            f"{name:32} {len(took):3}, first {took[first]:8.2f} µs, best {took[best]:8.2f}: {best}"
        )
    return {"target": target, "rows": rows}


if __name__ == "__main__":
    run_command(main)
