"""Replays the rule by which a search stops, on spaces of CPU kernels that were measured whole.

`python -m benchmarks.stopping record FILE` measures all schedules of levels 0 to 2 of small
kernels here, in turns with oneDNN's kernel, and adds what is not in FILE yet, until `--seconds` are
over; `python -m benchmarks.stopping replay FILE` says what the rule saves, and what it loses, with
`--library-speed 1 2` also where the library counts as twice as fast as it was.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.provenance import provenance
from braid.frontends.mlir import parse_mlir
from braid.graph_pipeline import passes_for
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.layout.select_layouts import SelectLayoutsPass
from braid.targets.kernels.kernel_family import LEVELS
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.tuning.kernel_tasks import KernelTask, kernel_tasks
from braid.tuning.library_kernels import LIBRARY_SCHEDULE
from braid.tuning.measured_task import MeasuredTask
from braid.tuning.search import Rule, search
from braid.tuning.timed_kernels import TimedKernels
from braid.tuning.timing_worker import timing_worker
from braid.universe import make_context

ROUNDS = 3
PRODUCTS = (
    *((1, 64, 64), (1, 256, 128), (4, 96, 96), (8, 64, 256), (16, 128, 64), (24, 40, 48)),
    *((32, 32, 32), (33, 65, 80), (48, 192, 64), (64, 64, 64), (128, 32, 96), (7, 48, 512)),
    *((256, 256, 256), (128, 768, 768), (384, 64, 384), (197, 96, 400)),
    *((1, 2048, 512), (512, 16, 8), (1000, 8, 10), (2, 4000, 17)),
)
"""Rows, depth, columns."""
CONVOLUTIONS = (
    *((16, 16, 8, 3), (32, 32, 7, 3), (16, 64, 14, 1), (64, 16, 14, 1), (8, 24, 12, 3)),
    *((24, 24, 9, 3), (48, 48, 7, 1), (3, 16, 16, 3), (16, 32, 6, 5), (32, 16, 10, 1)),
    *((64, 64, 30, 3), (128, 128, 16, 3), (256, 64, 28, 1), (3, 32, 37, 7), (1, 8, 40, 11)),
)
"""Channels in and out, extent of the image, extent of the window; channels last."""
DEPTHWISE = ((32, 16, 3), (64, 12, 5), (24, 20, 7), (20, 15, 3))
"""Channels, extent of the image, extent of the window; channels last."""
POOLS = (
    *(("max", 64, 56, 3, 2), ("max", 192, 28, 3, 2), ("max", 480, 14, 3, 2), ("max", 16, 40, 2, 2)),
    *(("max", 256, 14, 3, 1), ("max", 24, 30, 5, 1), ("max", 512, 13, 3, 1), ("max", 96, 55, 3, 2)),
    *(("average", 64, 28, 2, 2), ("average", 128, 14, 3, 1), ("average", 32, 40, 3, 2)),
    *(("average", 832, 7, 7, 1), ("average", 48, 21, 5, 2), ("max", 1000, 8, 2, 2)),
)
"""Kind, channels, extent of the image, extent of the window, stride; channels last."""
SOFTMAXES = ((64, 128), (12, 1000), (512, 64))
"""Rows, columns."""


def products() -> Iterator[str]:
    for rows, depth, columns in PRODUCTS:
        x, w = f"tensor<{rows}x{depth}xf32>", f"tensor<{depth}x{columns}xf32>"
        y = f"tensor<{rows}x{columns}xf32>"
        yield (
            f"func.func @main(%x: {x}) -> {y} {{\n"
            f'  %w = braid.parameter {{key = "w"}} : {w}\n'
            f"  %y = braid.matmul %x, %w : ({x}, {w}) -> {y}\n  func.return %y : {y}\n}}\n"
        )


def convolutions() -> Iterator[str]:
    for inputs, outputs, size, window in CONVOLUTIONS:
        yield _convolution(inputs, outputs, size, window, 1)
    for channels, size, window in DEPTHWISE:
        yield _convolution(channels, channels, size, window, channels)


def _convolution(inputs: int, outputs: int, size: int, window: int, groups: int) -> str:
    x = f"tensor<1x{inputs}x{size}x{size}xf32>"
    w = f"tensor<{outputs}x{inputs // groups}x{window}x{window}xf32>"
    out = size - window + 1
    y = f"tensor<1x{outputs}x{out}x{out}xf32>"
    return (
        f"func.func @main(%x: {x}) -> {y} {{\n"
        f'  %w = braid.parameter {{key = "w"}} : {w}\n'
        "  %y = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, "
        f"pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = {groups} : i64}} : "
        f"({x}, {w}) -> {y}\n  func.return %y : {y}\n}}\n"
    )


def pools() -> Iterator[str]:
    for kind, channels, size, window, stride in POOLS:
        out = (size - window) // stride + 1
        x, y = (f"tensor<1x{channels}x{extent}x{extent}xf32>" for extent in (size, out))
        yield (
            f"func.func @main(%x: {x}) -> {y} {{\n"
            f'  %y = braid.pool %x {{kind = "{kind}", window = array<i64: {window}, {window}>, '
            f"strides = array<i64: {stride}, {stride}>, dilations = array<i64: 1, 1>, "
            f"pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>}} : ({x}) -> {y}\n"
            f"  func.return %y : {y}\n}}\n"
        )


def softmaxes() -> Iterator[str]:
    for rows, columns in SOFTMAXES:
        x = f"tensor<{rows}x{columns}xf32>"
        yield (
            f"func.func @main(%x: {x}) -> {x} {{\n"
            f"  %y = braid.softmax %x {{dim = 1 : i64}} : ({x}) -> {x}\n"
            f"  func.return %y : {x}\n}}\n"
        )


def tasks_of(text: str, layout: str) -> list[KernelTask]:
    """The kernels of a function that the library has too, in `layout` wherever there is a choice.

    Layouts chosen by cost may be mixed, which the library has no kernel for.
    """
    context = make_context()
    module = parse_mlir(context, text, "kernel.mlir").module
    passes = [
        replace(pass_, algorithm=f"fixed:{layout}")
        if isinstance(pass_, SelectLayoutsPass)
        else pass_
        for pass_ in passes_for(module)
    ]
    place = [pass_.name for pass_ in passes].index("select-schedules")
    run_pipeline(context, module, passes[:place])
    return [task for task in kernel_tasks(module) if task.library]


def measured(task: KernelTask) -> dict[str, Any] | None:
    """All schedules of a kernel, and the library's; medians of rounds, in microseconds."""
    with timing_worker() as worker:
        own = MeasuredTask(task, TimedKernels(worker, None))
        if own.library_seconds() is None:
            return None
        levels = [list(own.space(level)) for level in range(LEVELS)]
        points = [LIBRARY_SCHEDULE, *dict.fromkeys(p for level in levels for p in level)]
        found: dict[KernelSchedule, list[float]] = {point: [] for point in points}
        for _ in range(ROUNDS):
            for point, seconds in found.items():
                if (one := own.seconds(point)) is not None:
                    seconds.append(one)
    times = {p: round(statistics.median(s) * 1e6, 4) for p, s in found.items() if s}
    library = found[LIBRARY_SCHEDULE]
    spread = (max(library) - min(library)) / statistics.median(library)
    rows = [[[str(p), times.get(p)] for p in level] for level in levels]
    return {"library": times[LIBRARY_SCHEDULE], "spread": round(spread, 3), "levels": rows}


def record(path: Path, seconds: float) -> None:
    data: dict[str, Any] = provenance(("onednn-cpu-gomp", "llvmlite"))
    if path.exists():
        data = json.loads(path.read_text())
    kernels: dict[str, Any] = data.setdefault("kernels", {})
    end = time.monotonic() + seconds
    given = [(text, "ab") for text in (*products(), *softmaxes())]
    given += [(text, "acdb") for text in (*convolutions(), *pools())]
    for text, layout in given:
        for task in tasks_of(text, layout) if time.monotonic() < end else ():
            if str(task) in kernels:
                continue
            found = measured(task)
            if found is not None:
                kernels[str(task)] = found
                path.write_text(json.dumps(data, separators=(",", ":")) + "\n")
                print(f"{task}: library {found['library']} µs", flush=True)


def replayed(kernel: Mapping[str, Any], rule: Rule) -> tuple[int, int, float, float]:
    """Evaluations of the search and of all points; microseconds as found, and of the best."""
    levels = [[(point, time) for point, time in level] for level in kernel["levels"]]
    times = {point: time for level in levels for point, time in level}
    found = search(
        lambda level: [point for point, _ in levels[level]],
        lambda point: times[point],
        kernel["library"],
        rule,
    )
    best = min([kernel["library"], *(time for time in times.values() if time is not None)])
    return sum(step.tried for step in found.steps), len(times), found.seconds, best


def replay(path: Path, speed: float = 1.0) -> dict[str, float]:
    """What the rule saves where the library is best, and loses over all kernels.

    The library counts as `speed` times as fast as it was measured.
    """
    kernels = list(json.loads(path.read_text())["kernels"].values())
    kernels = [kernel | {"library": kernel["library"] / speed} for kernel in kernels]
    results = [replayed(kernel, Rule()) for kernel in kernels]
    own = [r for r, k in zip(results, kernels, strict=True) if r[3] == k["library"]]
    asked, every = (sum(result[n] for result in own) for n in (0, 1))
    found, best = (sum(result[n] for result in results) for n in (2, 3))
    saved = 1 - asked / every if every else float("nan")
    return {
        "library is so many times as fast": speed,
        "kernels": len(kernels),
        "library is best": len(own),
        "evaluations saved there": round(saved, 4),
        "evaluations saved in all": round(
            1 - sum(r[0] for r in results) / sum(r[1] for r in results), 4
        ),
        "time lost": round(found / best - 1, 4),
    }


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("record", "replay"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--library-speed", type=float, nargs="*", default=[1.0])
    given = parser.parse_args(arguments)
    if given.what == "record":
        record(given.file, given.seconds)
    for speed in given.library_speed:
        print(json.dumps(replay(given.file, speed), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
