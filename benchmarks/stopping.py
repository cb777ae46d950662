"""Replays the rule by which a search stops, on spaces of CPU kernels that were measured whole.

`python -m benchmarks.stopping record FILE` measures all schedules of levels 0 to 2 of small kernels
here, in turns with oneDNN's kernel, and adds what is not in FILE yet, until `--seconds` are over;
`python -m benchmarks.stopping replay FILE` prints the savings and the losses by the rule, with
`--library-speed 1 2` also for a library that is twice as fast, with `--least-gain 0` by thresholds
alone.
"""

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from benchmarks.command import run_command
from benchmarks.provenance import provenance
from benchmarks.stopping_kernels import GivenKernel, given_kernels
from braid.driver.pipeline import passes_for
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.layout.select_layouts import SelectLayoutsPass
from braid.targets.kernels.kernel_family import LEVELS
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.tuning.kernel_tasks import KernelTask, kernel_tasks
from braid.tuning.library_kernels import LIBRARY_SCHEDULE
from braid.tuning.measured_task import MeasuredTask
from braid.tuning.search import LEAST_GAIN, Rule, search
from braid.tuning.timed_kernels import TimedKernels
from braid.tuning.timing_worker import timing_worker
from braid.universe import make_context

ROUNDS = 3


def tasks_of(kernel: GivenKernel) -> list[KernelTask]:
    """Those that the library has too, in the kernel's layout wherever there is a choice.

    Layouts chosen by cost may be mixed, which the library has no kernel for.
    """
    context = make_context()
    module = parse_mlir(context, kernel.text, "kernel.mlir").module
    passes = [
        replace(pass_, algorithm=f"fixed:{kernel.layout}")
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
    for given in given_kernels():
        if given.name in kernels or time.monotonic() > end:
            continue
        for task in tasks_of(given):
            found = measured(task)
            if found is not None:
                kernels[given.name] = found
                path.write_text(json.dumps(data, separators=(",", ":")) + "\n")
                print(f"{given.name}: {task}: library {found['library']} µs", flush=True)


def replayed(kernel: Mapping[str, Any], rule: Rule) -> tuple[int, int, float, float]:
    """Replay the search: its evaluations and all points, microseconds as found and of the best."""
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


def replay(path: Path, speed: float = 1.0, rule: Rule | None = None) -> dict[str, float]:
    """Return what the rule saves where the library is best, and loses over all kernels.

    The library counts as `speed` times as fast as it was measured.
    """
    kernels = list(json.loads(path.read_text())["kernels"].values())
    kernels = [kernel | {"library": kernel["library"] / speed} for kernel in kernels]
    results = [replayed(kernel, rule or Rule()) for kernel in kernels]
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


def main(
    what: Annotated[str, ["record", "replay"]],
    file: Path,
    *,
    seconds: float = 240.0,
    library_speed: Sequence[float] = (1.0,),
    least_gain: float = LEAST_GAIN,
) -> None:
    if what == "record":
        record(file, seconds)
    for speed in library_speed:
        rule = Rule(least_gain=least_gain)
        print(json.dumps(replay(file, speed, rule), indent=1))


if __name__ == "__main__":
    run_command(main)
