"""Fills the records that layout selection reads, for one model on this machine."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from braid.lowering.host.codegen.compiler import compile_kernels
from braid.support.errors import BraidError
from braid.targets.costs.cost_records import append_records, load_records
from braid.targets.kernels.kernel_family import Kernel, KernelFamily
from braid.tuning.layout_candidates import Candidate, layout_candidates
from braid.tuning.timing import Clock, TimingRequest, stored_arguments
from braid.tuning.timing_worker import timing_worker

_ROUNDS = 2

Measure = Callable[[TimingRequest], float | None]


@dataclass
class MeasuringReport:
    """The numbers of kernels measured, known before, not to be had, or left for lack of time."""

    measured: int = 0
    known: int = 0
    failed: int = 0
    left: int = 0

    def __str__(self) -> str:
        return (
            f"{self.measured} kernels measured, {self.known} known before, "
            f"{self.failed} failed, {self.left} left"
        )


def measure_layouts(
    module: ModuleOp,
    families: Sequence[KernelFamily],
    time_limit: float,
    *,
    jobs: int | None = None,
    clock: Clock = time.monotonic,
) -> MeasuringReport:
    """Time the kernels of all groups of `module` in all layouts, and all reorders.

    Recorded kernels are not measured again. The choices of a group are recorded together
    or not at all, since a measurement and a prediction are not compared fairly; groups whose
    kernels are predicted to take longest come first. After `time_limit` seconds no further group
    is begun.
    """
    began, report = clock(), MeasuringReport()
    records = load_records()
    sets = sorted(
        layout_candidates(module, families),
        key=lambda candidates: max(c.predicted for c in candidates),
        reverse=True,
    )
    with timing_worker() as worker:
        for candidates in sets:
            known = [records.get(c.key) is not None for c in candidates]
            if all(known):
                report.known += len(candidates)
            elif clock() - began > time_limit:
                report.left += len(candidates)
            else:
                measure_set(candidates, worker.seconds, report, jobs)
    return report


def measure_set(
    candidates: Sequence[Candidate],
    measure: Measure,
    report: MeasuringReport,
    jobs: int | None = None,
) -> None:
    """Compile and time candidates, and record those that ran.

    They are timed in turns and the least time counts, so that all meet the same machine.
    """
    seconds: dict[str, float] = {}
    requests = list(_requests(candidates, jobs))
    for _ in range(_ROUNDS):
        for candidate, request in requests:
            measured = None if request is None else measure(request)
            if measured is not None:
                seconds[candidate.key] = min(measured, seconds.get(candidate.key, measured))
    report.measured += len(seconds)
    report.failed += len(candidates) - len(seconds)
    append_records(seconds, {c.key: c.describe() for c in candidates})


def _requests(
    candidates: Sequence[Candidate], jobs: int | None
) -> Iterator[tuple[Candidate, TimingRequest | None]]:
    """Return requests for compiled kernels; None for a candidate that no kernel can be made of."""
    kernels: list[tuple[Candidate, Kernel]] = []
    for number, candidate in enumerate(candidates):
        try:
            kernels.append((candidate, candidate.kernel(f"candidate_{number}")))
        except BraidError:
            yield candidate, None
    try:
        objects = compile_kernels([kernel for _, kernel in kernels], jobs=jobs)
    except BraidError:
        yield from ((candidate, None) for candidate, _ in kernels)
        return
    for (candidate, kernel), object_code in zip(kernels, objects, strict=True):
        yield (
            candidate,
            TimingRequest.of(
                kernel, object_code, stored_arguments(candidate.group, candidate.choice)
            ),
        )
