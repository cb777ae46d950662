"""Measuring the kernels of one task: by its schedules, and of a vendor's library."""

import statistics
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.regions import FusedOp
from braid.support.errors import BraidError
from braid.targets.backend import KernelMeter
from braid.targets.costs.cost_records import append_records, load_records, withdraw_records
from braid.targets.costs.schedule_records import TunedKernel
from braid.targets.kernels.kernel_family import LEVELS, Kernel
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.targets.kernels.keys import record_key
from braid.tuning.device_kernels import DeviceKernels
from braid.tuning.kernel_runs import Reference
from braid.tuning.kernel_tasks import KernelTask
from braid.tuning.library_kernels import LIBRARY_SCHEDULE, LibraryKernel
from braid.tuning.search import Final, Found, Rule, Stop
from braid.tuning.turns import MOST_TURNS, TURNS, is_faster, is_open, ratio

WRONG = "wrong results"
SLOWER_IN_MODEL = "slower in the model"
LIBRARY_COST = "library: "
"""The prefix of a task's text in the record of the cost of a library's kernel."""
_NO_KERNEL = "no kernel could be made"
_NO_TIME = "it crashed, or took too long"
_TOGETHER = 8
"""Kernels that are compiled at once."""


@dataclass
class MeasuredTask:
    """Kernels of one task: compiled a few at once, in the order of the space, and measured.

    `made` is the kernel that `meter` compiled for them, None for a failure; `refused` says why
    schedules do not count.
    """

    task: KernelTask
    meter: KernelMeter | DeviceKernels
    made: dict[KernelSchedule, Any | None] = field(default_factory=dict[KernelSchedule, Any])
    waiting: list[KernelSchedule] = field(default_factory=list[KernelSchedule])
    library: LibraryKernel | None = None
    refused: dict[KernelSchedule, str] = field(default_factory=dict[KernelSchedule, str])

    def space(self, level: int) -> Iterator[KernelSchedule]:
        """Yield the points of one level, as far as they may be tried at all."""
        if level >= LEVELS:
            return
        points = dict.fromkeys(self.task.space(level))
        self.waiting = [point for point in points if point not in self.made]
        yield from points

    def seconds(self, point: KernelSchedule) -> float | None:
        """Return the seconds of one run of the kernel by `point`; None if there is none, or it
        crashes or hangs.
        """
        if point not in self.made:
            rest = (each for each in self.waiting if each not in self.made and each != point)
            self._compile([point, *islice(rest, _TOGETHER - 1)])
        made = self.made[point]
        seconds = None if made is None else self.meter.seconds(made)
        if seconds is None:
            self.refused[point] = _NO_KERNEL if made is None else _NO_TIME
        return seconds

    def library_seconds(self) -> float | None:
        """Return the seconds of the library's fastest correct kernel; None if there is none."""
        times: dict[LibraryKernel, float] = {}
        for kernel in self.task.library:
            request = kernel.request()
            seconds = None if request is None else self.meter.seconds(request)
            if request is None or seconds is None:
                continue
            if self._runs_right(request, kernel.group, kernel.choice):
                times[kernel] = seconds
        if not times:
            return None
        self.library = min(times, key=lambda kernel: times[kernel])
        self.made[LIBRARY_SCHEDULE] = self.library.request()
        return times[self.library]

    def confirmed(self, found: Found[KernelSchedule], default: float, rule: Rule) -> TunedKernel:
        """Return the fastest schedule that is right, and is faster than the default beyond the
        noise.

        The library's kernel is the result where it is faster than that beyond the noise, or where
        the rule of the search says so.
        """
        schedule = self.task.default[1]
        best = schedule
        for point in sorted(found.times, key=lambda point: found.times[point]):
            if point == schedule or found.times[point] >= default or self._is_right(point):
                best = schedule if found.times[point] >= default else point
                break
        times = self._in_turns([best, schedule])
        match = next(m for m in self.task.matches if m.family.name == best.family)
        old = _middle(times[schedule], default)
        faster = _is_less if self.meter.is_exact else is_faster
        kernel = TunedKernel(
            None,
            match.family.version,
            old,
            old,
            str(self.task),
            levels=0 if _is_cut_short(found, rule) else rule.levels,
            body=self.task.body,
            measure=self.meter.quantity,
            steps=tuple(step.fields for step in found.steps),
            refused={str(point): why for point, why in self.refused.items()},
        )
        if best != schedule and faster(times[best], times[schedule]):
            kernel = replace(kernel, chosen=best, seconds=old * ratio(times[best], times[schedule]))
        if self.library is None or len(times[LIBRARY_SCHEDULE]) < TURNS:
            return kernel
        library = old * ratio(times[LIBRARY_SCHEDULE], times[schedule])
        generated = times[schedule if kernel.chosen is None else best]
        keeps = found.point is None
        if rule.final is Final.FASTEST:
            keeps = is_faster(times[LIBRARY_SCHEDULE], generated)
        vendor = self.library.match.family.name
        return replace(kernel, library=library, keeps_library=keeps, vendor=vendor)

    def _in_turns(self, points: Sequence[KernelSchedule]) -> dict[KernelSchedule, list[float]]:
        """Return times of these kernels and of the library's, measured in turns, on a machine in
        one state.
        """
        library = () if self.library is None else (LIBRARY_SCHEDULE,)
        times: dict[KernelSchedule, list[float]] = {point: [] for point in (*points, *library)}
        default = self.task.default[1]
        for turn in range(1 if self.meter.is_exact else MOST_TURNS):
            challenged = [(own, times[than]) for own in times if own != default for than in points]
            if turn >= TURNS and not any(is_open(times[own], than) for own, than in challenged):
                break
            for each in times:
                if (seconds := self.seconds(each)) is not None:
                    times[each].append(seconds)
        return times

    def record_library(self, kernel: TunedKernel) -> None:
        """Let layouts be chosen by the library's time, where it wants weights stored otherwise.

        Times of layouts are predictions mostly: the library's is that of the default schedule, by
        as much less as was measured. A result that is not kept has none, and none from before.
        """
        library, choice = self.library, self.task.choice
        if library is None or kernel.library is None or library.choice == choice:
            return
        first, table = self.task.default[0], load_records()
        key = record_key(library.group, library.choice, library.match.family)
        what = {key: f"{LIBRARY_COST}{self.task}"}
        if not kernel.keeps_library:
            if key in table:
                withdraw_records(what)
            return
        known = table.get(record_key(self.task.group, choice, first.family))
        seconds = (first.candidate.seconds(choice) if known is None else known) / kernel.baseline
        append_records({key: seconds * kernel.library}, what)

    def _is_right(self, point: KernelSchedule) -> bool:
        made = self.made[point]
        is_right = made is not None and self._runs_right(made, self.task.group, self.task.choice)
        if not is_right:
            self.refused[point] = WRONG
        return is_right

    def _runs_right(self, made: Any, group: FusedOp, choice: LayoutChoice) -> bool:
        """Return whether the results are those of the ops; if these have no semantics, no schedule
        counts.
        """
        reference = Reference.of(group, choice)
        if reference is None:
            return False
        results = self.meter.results(made, reference.operands, reference.unwritten())
        return results is not None and reference.agrees(results)

    def _compile(self, points: Sequence[KernelSchedule]) -> None:
        """Fill `made`, with None for what cannot be emitted or compiled."""
        self.made.update(dict.fromkeys(points))
        if isinstance(self.meter, DeviceKernels):
            self.made.update(zip(points, self.meter.made_by(points), strict=True))
            return
        kernels: dict[KernelSchedule, Kernel] = {}
        for number, point in enumerate(points):
            with suppress(BraidError):
                kernels[point] = self.task.emit(point, f"candidate_{number}")
        made = self.meter.compiled(list(kernels.values()), self.task.group)
        self.made.update(zip(kernels, made, strict=True))


def _is_cut_short(found: Found[KernelSchedule], rule: Rule) -> bool:
    """Return whether time was over within the first level, so that the kernel is to be searched
    yet.
    """
    if not found.steps or found.steps[-1].level or found.steps[-1].stop is not Stop.BUDGET:
        return False
    return rule.trials is None or found.steps[-1].tried < rule.trials


def _middle(times: Sequence[float], otherwise: float) -> float:
    return statistics.median(times) if times else otherwise


def _is_less(times: Sequence[float], than: Sequence[float]) -> bool:
    """Return whether one exact time is less than the other."""
    return bool(times and than) and times[0] < than[0]
