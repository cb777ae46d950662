"""What the kernels of a run take and what is between them, beside the time by the clock.

    python -m benchmarks.kernel_times --models DIR [--only NAME…] [--runs 30] [--json FILE]

Runs on one thread are traced. Kernels are what their counters say; *between* is what the trace
shows of a run without any kernel; *outside* is the rest of the time of the caller's clock, which
nobody assigns: calling the model from Python. Nothing is scaled to fit. The prediction of each
kernel is that of `braid explain` without a profile. Judged are that kernels and what is between
them add up to a run within 3 %, and that in `LARGE` models no more than 5 % is between kernels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

import braid
from benchmarks.command import Judged, run_command
from benchmarks.models.inputs import random_inputs
from benchmarks.models.make import make
from benchmarks.provenance import provenance
from braid.driver.read_source import read_source
from braid.runtime.traces import EventKind, TraceEvent
from braid.tools.commands.recording import profile_of, record_runs
from braid.tools.explain.model_page import Questions, explain_model
from braid.universe import make_context

MODELS = (
    *("resnet50", "bert_base", "squeezenet", "densenet121", "inception_v1"),
    *("shufflenet", "inception_v2", "transformer_block", "darts_v2", "unet"),
)
LARGE = ("resnet50", "bert_base")
_MOST_OUTSIDE = 0.03
_MOST_BETWEEN = 0.05
_WARMUP = 3
_SHOWN = 10


@dataclass(frozen=True)
class KernelTime:
    """The seconds of a kernel in one run: predicted, None for unknown, and measured."""

    kernel: str
    predicted: float | None
    mean: float
    median: float


@dataclass(frozen=True)
class ModelTimes:
    """Mean seconds of a run of a model, what they consist of, and its `count` kernels' slowest.

    `outside` and `between_share` are medians over the runs of shares of the clock's time: of what
    neither kernels nor what is between them took, and of what was between. A mean has what the
    system did with the CPU meanwhile.
    """

    model: str
    runs: int
    wall: float
    kernels: float
    between: float
    predicted: float
    outside: float
    between_share: float
    count: int
    slowest: tuple[KernelTime, ...]

    @property
    def is_right(self) -> bool:
        """Return whether both shares are as they should be."""
        is_small = self.model not in LARGE or self.between_share <= _MOST_BETWEEN
        return abs(self.outside) <= _MOST_OUTSIDE and is_small


def measure(path: Path, runs: int, seed: int) -> ModelTimes:
    """Run the model at `path`, and add up what its kernels and what is between them took."""
    model = braid.compile(path, profile=True)
    named = random_inputs(path, seed)
    inputs = [named[spec.name] for spec in model.inputs]
    with model.traced() as trace:
        found = record_runs(model, lambda: model.run(inputs), runs, _WARMUP)
        between = _between(trace.events())[_WARMUP:]
    walls = [run.seconds for run in found]
    kernels = [sum(entry.seconds for entry in run.entries.values()) for run in found]
    known = list(zip(walls, kernels, between, strict=True))
    profile, predicted = profile_of(path, {}, found), _predicted(path)
    assert profile.runs is not None
    count = profile.runs.count
    rows = [
        KernelTime(name, predicted.get(name), op.seconds / count, op.quartiles[1])
        for name, op in profile.ops.items()
        if op.seconds is not None and op.quartiles is not None
    ]
    return ModelTimes(
        path.stem,
        runs,
        mean(walls),
        mean(kernels),
        mean(between),
        sum(predicted.values()),
        median(1 - (inside + gaps) / wall for wall, inside, gaps in known),
        median(gaps / wall for wall, _, gaps in known),
        len(rows),
        tuple(sorted(rows, key=lambda row: -row.median)[:_SHOWN]),
    )


def _between(events: Sequence[TraceEvent]) -> list[float]:
    """Return the seconds of each run in which its thread was in no kernel."""
    runs = sorted((e for e in events if e.kind is EventKind.RUN), key=lambda e: e.begin)
    kernels = [e for e in events if e.kind is EventKind.KERNEL]
    return [
        run.seconds - sum(e.seconds for e in kernels if run.begin <= e.begin and e.end <= run.end)
        for run in runs
    ]


def _predicted(path: Path) -> Mapping[str, float]:
    """Return the seconds that each kernel is predicted to take in one run, with its start."""
    context = make_context()
    page = explain_model(context, lambda: read_source(context, path).module, path.stem, Questions())
    return {"+".join(row.ops): row.predicted + row.starts for row in page.kernels}


def main(*, models: Path, only: Sequence[str] = MODELS, runs: int = 30, seed: int = 1) -> Judged:
    """Measure, print a line a model, and judge the sums."""
    found: list[ModelTimes] = []
    for name in only:
        own = measure(make(models, name), runs, seed)
        found.append(own)
        print(
            f"{name:18} {own.wall * 1e3:8.3f} ms, predicted {own.predicted * 1e3:8.3f} ms, "
            f"{own.count:4} kernels, between {own.between_share:6.2%}, "
            f"outside {own.outside:6.2%}{'' if own.is_right else '  WRONG'}",
            flush=True,
        )
    return Judged({**provenance(), "models": found}, all(own.is_right for own in found))


if __name__ == "__main__":
    run_command(main)
