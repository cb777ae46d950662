"""Searches schedules for the kernels of one model on this machine, and records what it finds."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from braid.support.cache_directory import cache_directory
from braid.support.claims import claims
from braid.support.errors import BraidError
from braid.targets.costs.schedule_records import TunedKernel, append_tuned, load_tuned
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.targets.machines.cpus import NATIVE, cpu_machine
from braid.targets.machines.machine import Machine
from braid.targets.machines.resolve import target_of
from braid.tuning.kernel_tasks import KernelTask, kernel_tasks
from braid.tuning.measured_task import MeasuredTask
from braid.tuning.model_tuning import search_by_model
from braid.tuning.search import Found, Rule, Step, search
from braid.tuning.timing import Clock
from braid.tuning.timing_worker import timing_worker

_CLAIMS = "tuning.lock"
"""Where tuners tell each other which kernels they search."""


@dataclass
class TuningReport:
    """How many kernels were searched, have a faster schedule, were known, or are left.

    `library` counts those of which a vendor's kernel is the fastest.
    """

    searched: int = 0
    faster: int = 0
    library: int = 0
    known: int = 0
    left: int = 0
    before: float = 0.0
    after: float = 0.0
    """Seconds of the searched kernels in one run of the model, by default and as found."""

    def __str__(self) -> str:
        gain = f", together {self.before / self.after:.3f} times as fast" if self.after else ""
        library = f"; a library's are faster than {self.library}" if self.library else ""
        return (
            f"{self.searched} kernels searched, {self.faster} of them are faster{gain}{library}; "
            f"{self.known} known before, {self.left} left"
        )


def tune_kernels(
    module: ModuleOp,
    rule: Rule,
    time_limit: float,
    *,
    jobs: int | None = None,
    again: bool = False,
    by_model: bool = False,
    say: Callable[[str], None] = lambda _: None,
    goes_on: Callable[[Step], bool] = lambda _: True,
    clock: Clock = time.monotonic,
    target: str | None = None,
) -> TuningReport:
    """Searches the kernels of `module`, whose layouts and storage are decided, and records them.

    Kernels that are predicted to take the most of a run come first, and those that compute the same
    are searched once. What was searched before, through as many levels, is left as it is, unless
    `again`. After `time_limit` seconds no further kernel is compiled. A search `by_model` looks at
    all levels at once. `say` gets a line for each step of a search, the last one when the result is
    recorded. A kernel that another process searches meanwhile is left to that. Raises BraidError
    where the store cannot be written, or the kernels are for another CPU than this one.
    """
    _check_machine(target_of(module, target).host_device.machine)
    began, report = clock(), TuningReport()
    known = _searched(rule)

    def is_spent() -> bool:
        return clock() - began > time_limit

    with timing_worker() as worker, claims(cache_directory() / _CLAIMS) as claimed:
        for task in kernel_tasks(module, target):
            with claimed.claim(task.key) as is_ours:
                now = _searched(rule) if is_ours else known
                done = now - known if again else now
                if task.key in done:
                    report.known += 1
                elif is_spent() or not is_ours:
                    report.left += 1
                else:
                    measured = MeasuredTask(task, worker, jobs, rule.trials)
                    search = _Search(measured, rule, by_model, say, is_spent, goes_on)
                    _count(report, task, search.recorded())
    return report


def _searched(rule: Rule) -> frozenset[str]:
    """What was searched through as many levels."""
    return frozenset(key for key, kernel in load_tuned().items() if kernel.levels >= rule.levels)


def _check_machine(machine: Machine) -> None:
    """Raises BraidError for one that is not this."""
    here = cpu_machine(NATIVE)
    if (machine.triple, machine.cpu) != (here.triple, here.cpu):
        raise BraidError(
            f"kernels for CPU '{machine.name}' are not timed on this one, '{here.name}'",
            hint="search them there; braid records export and import move what was found",
        )


def _count(report: TuningReport, task: KernelTask, kernel: TunedKernel | None) -> None:
    if kernel is None:
        report.left += 1
        return
    runs = task.seconds / max(task.default[0].seconds(task.choice), 1e-12)
    report.searched += 1
    report.faster += kernel.chosen is not None
    report.library += kernel.keeps_library
    report.before += runs * kernel.baseline
    report.after += runs * kernel.seconds


@dataclass(frozen=True)
class _Search:
    """The search of one kernel; see `tune_kernels`."""

    measured: MeasuredTask
    rule: Rule
    by_model: bool
    say: Callable[[str], None]
    is_spent: Callable[[], bool]
    goes_on: Callable[[Step], bool]

    def recorded(self) -> TunedKernel | None:
        """What was found, which is in the store once it is said; None where nothing ran."""
        measured, task = self.measured, self.measured.task
        self.say(str(task))
        default = measured.seconds(task.default[1])
        if default is None:
            self.say("  the default kernel could not be measured")
            return None
        library = measured.library_seconds()
        if library is not None:
            self.say(f"  library {library * 1e6:.4g} µs, default {default * 1e6:.4g} µs")
        found = self._found(default if library is None else library)
        for step in found.steps:
            self.say(f"  {step}")
        kernel = measured.confirmed(found, default, self.rule)
        append_tuned(task.key, kernel)
        measured.record_library(kernel)
        self.say(f"  {_verdict(kernel)}")
        return kernel

    def _found(self, baseline: float) -> Found[KernelSchedule]:
        measured, task, is_spent = self.measured, self.measured.task, self.is_spent
        if not self.by_model:
            space, seconds = measured.space, measured.seconds
            return search(
                space, seconds, baseline, self.rule, is_spent=is_spent, goes_on=self.goes_on
            )
        return search_by_model(
            lambda level: list(measured.space(level)),
            measured.seconds,
            baseline,
            self.rule,
            task.group,
            task.key,
            is_spent=is_spent,
        )


def _verdict(kernel: TunedKernel) -> str:
    if kernel.library is not None and kernel.keeps_library:
        ours = kernel.seconds * 1e6
        return f"the library stays, {kernel.library * 1e6:.4g} µs; generated {ours:.4g} µs"
    if kernel.chosen is None:
        return f"the default schedule stays, {kernel.baseline * 1e6:.4g} µs"
    return (
        f"{kernel.chosen}: {kernel.seconds * 1e6:.4g} µs, "
        f"the default takes {kernel.baseline * 1e6:.4g} µs"
    )
