"""Searches schedules for the kernels of one model on this machine, and records the results."""

import itertools
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from xdsl.dialects.builtin import ModuleOp

from braid.dialects.braid.attributes import TargetAttr
from braid.dialects.braid.settings import settings_of
from braid.lowering.host.codegen.compiler import available_cpus
from braid.support.diagnostics import Diagnostic, emit
from braid.support.errors import BraidError
from braid.support.records.record_store import default_store
from braid.support.settings import Kernels
from braid.targets.backend import Job, KernelMeter
from braid.targets.backends import kernel_families, meter_of
from braid.targets.costs.schedule_records import MEASURED, TunedKernel, append_tuned, load_tuned
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.targets.machines.cpus import NATIVE, cpu_machine
from braid.targets.machines.machine import Machine
from braid.targets.machines.resolve import target_attribute, target_of
from braid.targets.machines.target import Device, Target
from braid.tuning.budget import Budget
from braid.tuning.device_kernels import (
    MEASURED_THERE,
    DeviceKernels,
    DeviceRunner,
    runs_alone,
)
from braid.tuning.kernel_tasks import KernelTask, backend_tasks, kernel_tasks
from braid.tuning.measured_task import WRONG, MeasuredTask
from braid.tuning.measuring_workers import MeasuringWorker, MeasuringWorkers, local_worker
from braid.tuning.model_classes import class_of, first_space
from braid.tuning.model_tuning import search_by_model
from braid.tuning.model_verdict import Verdict
from braid.tuning.ray_workers import ray_workers
from braid.tuning.search import Found, Order, Rule, Turn, search
from braid.tuning.space_files import FamilySpace, check_spaces
from braid.tuning.timed_kernels import TimedKernels
from braid.tuning.timing import Clock

SELECT_SCHEDULES = "select-schedules"
"""The pass that gives schedules to the groups that fusion makes."""


@dataclass
class TuningReport:
    """The numbers of kernels that were searched, have a faster schedule, were known, or are left.

    `library` counts those for which a vendor's kernel is the fastest, `rounds` the rounds of
    choosing layouts, and `keys` are the kernels of the model in the last round.
    """

    searched: int = 0
    faster: int = 0
    library: int = 0
    known: int = 0
    left: int = 0
    before: float = 0.0
    after: float = 0.0
    """Seconds of the searched kernels in one run of the model, by default and as found."""
    rounds: int = 0
    keys: frozenset[str] = frozenset()
    names: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The names of the ops that each kernel computes, joined by `+`, of all its places."""
    own: set[str] = field(default_factory=set[str])
    """The tasks that were searched."""
    whole: Sequence[Verdict] = ()
    """The verdicts on which schedules stay, if the model as a whole was compared."""

    def add(self, other: "TuningReport") -> None:
        """Count what `other` does of the same model's other kernels."""
        for name in ("searched", "faster", "library", "known", "left", "before", "after"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.keys |= other.keys
        self.names |= other.names

    def __str__(self) -> str:
        gain = f", together {self.before / self.after:.3f} times as fast" if self.after else ""
        library = f"; a library's are faster than {self.library}" if self.library else ""
        return (
            f"{self.searched} kernels searched, {self.faster} of them are faster{gain}{library}; "
            f"{self.known} known before, {self.left} left"
            f"{''.join(f'; {verdict}' for verdict in self.whole[:1])}"
        )


Steer = Callable[[KernelTask, Turn[KernelSchedule]], Order[KernelSchedule]]
"""A function that returns the orders of the user between the levels of a kernel's search."""


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """The settings of a search for kernels, with a limit in `seconds` for all together, by `clock`.

    `rule` decides when the search of a kernel stops; `steer` is asked between its levels;
    `by_model` all levels are one space. `jobs` processes compile. Kernels that were searched
    through as many levels are skipped, unless `again`. `spaces` say what is searched, and
    `model_class` what first: one of `CLASSES`, None for what families have. `say` gets a line for
    each step, the last one of a kernel when the result is recorded; `progress` gets how many
    kernels are done, of how many, and the seconds that are left for them. `ray` is the address of a
    cluster that measures. With `whole_model`, schedules that do not make the whole model faster are
    reverted.
    """

    rule: Rule = field(default_factory=Rule)
    seconds: float = 600.0
    jobs: int | None = None
    again: bool = False
    by_model: bool = False
    spaces: Sequence[FamilySpace] = ()
    model_class: str | None = None
    say: Callable[[str], None] = lambda _: None
    progress: Callable[[int, int, float], None] = lambda _, __, ___: None
    steer: Steer | None = None
    clock: Clock = time.monotonic
    ray: str | None = None
    whole_model: bool = True


def tune_kernels(
    module: ModuleOp,
    tuning: Tuning,
    target: str | None = None,
    report: TuningReport | None = None,
    *,
    selecting: str = SELECT_SCHEDULES,
) -> TuningReport:
    """Search the kernels of `module`, as the pass `selecting` sees it, and record them.

    By default that pass is `select-schedules`, which sees decided layouts and storage; other passes
    are those of backends that form groups themselves (`Backend.groups`).

    Kernels that are predicted to take the most of a run come first, and those that compute the same
    are searched once. Each kernel gets its share of the time by the predicted seconds of all
    remaining ones; after that it is not compiled any further. A kernel that another process
    searches meanwhile is left to that. Raises BraidError where the store cannot be written, the
    kernels are for another CPU than this one, or spaces do not fit. `report` is that of a round
    before, with other layouts, of whose kernels none is searched `again`.
    """
    # A library's kernels are measured beside those that are generated.
    settings = replace(settings_of(module), kernels=Kernels.GENERATED, library_on_miss=False)
    known = target_of(module, target).with_settings(settings)
    spaces = list(tuning.spaces)
    if tuning.model_class is not None:
        spaces += first_space(class_of(module, tuning.model_class))
    if selecting == SELECT_SCHEDULES:
        tasks = kernel_tasks(module, known, spaces)
    else:
        tasks = backend_tasks(module, selecting, known, spaces)
    devices = [*dict.fromkeys([known.host_device, *(task.device for task in tasks)])]
    matches = [match for task in tasks for match in task.matches]
    families = [family for device in devices for family in kernel_families(device)]
    names = [family.name for family in (*families, *(match.family for match in matches))]
    for message, location in check_spaces(tuning.spaces, names, matches):
        emit(Diagnostic("warning", message, location=location))
    report = report or TuningReport()
    with _Meters.of(known, target_attribute(module, target), tasks, tuning) as meters:
        for device, why in meters.refusals.items() if not report.rounds else ():
            tuning.say(f"nothing runs on {device.name} here: {why}")
        _tune(tasks, tuning, report, meters)
    return report


def _tune(
    tasks: Sequence[KernelTask], tuning: Tuning, report: TuningReport, meters: "_Meters"
) -> None:
    known = meters.searched(tasks, tuning.rule)
    others = [task for task in tasks if task.key not in report.own]
    waiting = [task for task in others if tuning.again or task.key not in known]
    report.known, report.left = len(others) - len(waiting), 0
    report.rounds, report.keys = report.rounds + 1, frozenset(task.key for task in tasks)
    report.names |= {task.key: task.counters for task in tasks}
    if waiting:
        default_store().append(())  # fails now, and not after a search, if nothing can be kept
    with meters.workers(tuning) as workers, default_store().claims() as claimed:
        weights = [task.seconds for task in waiting]
        budget = Budget(weights, tuning.seconds, tuning.clock, workers.count)
        begun = itertools.count()

        def search(number: int, worker: MeasuringWorker) -> None:
            task = waiting[number]
            tuning.progress(next(begun), len(waiting), budget.end - tuning.clock())
            with claimed.claim(task.key) as is_ours:
                if is_ours and task.key in meters.searched([task], tuning.rule) - known:
                    report.known += 1
                elif budget.is_spent() or not is_ours:
                    report.left += 1
                else:
                    measured = MeasuredTask(task, meters.of_task(task, worker, tuning.jobs))
                    with _reported_together(tuning, workers.count) as own:
                        found = _KernelSearch(measured, own, budget.part(number)).recorded()
                    _count(report, task, found)

        workers.for_each(len(waiting), search)


@dataclass(frozen=True)
class _Meters:
    """The meters of kernels: devices that are `here`, other devices' backends, or workers.

    `refusals` say why devices with separate memory run nothing here.
    """

    host: Machine
    backends: Mapping[Device, KernelMeter]
    here: Mapping[Device, DeviceRunner]
    refusals: Mapping[Device, str]

    @staticmethod
    @contextmanager
    def of(
        target: Target, attribute: TargetAttr, tasks: Sequence[KernelTask], tuning: Tuning
    ) -> "Generator[_Meters]":
        """Raise BraidError if kernels of the host are for a CPU other than this one."""
        devices = dict.fromkeys(task.device for task in tasks)
        with ExitStack() as ending:
            meters: dict[Device, KernelMeter] = {}
            here: dict[Device, DeviceRunner] = {}
            refusals: dict[Device, str] = {}
            for device in devices:
                own = meter_of(Job(target, device, tuning.jobs or available_cpus()))
                if own is not None:
                    meters[device] = ending.enter_context(own)
                    runner = DeviceRunner(attribute, device, ending)
                    on_device = (task for task in tasks if task.device == device)
                    if device.own_memory and runner.is_here(on_device):
                        here[device] = runner
                    elif device.own_memory:
                        refusals[device] = runner.refusal
            host = target.host_device
            is_timed = host not in meters and (host in devices or not devices)
            if is_timed and tuning.ray is None:
                _check_machine(host.machine)
            yield _Meters(host.machine, meters, here, refusals)

    def workers(self, tuning: Tuning) -> AbstractContextManager[MeasuringWorkers]:
        """Return the measuring workers. Raises BraidError where a cluster is asked for that is not
        there.
        """
        return local_worker() if tuning.ray is None else ray_workers(tuning.ray, self.host)

    def of_task(
        self, task: KernelTask, worker: MeasuringWorker, jobs: int | None
    ) -> KernelMeter | DeviceKernels:
        """Run on the device, else use the backend's prediction, else a worker's time."""
        if task.device in self.here and runs_alone(task):
            return DeviceKernels(task, self.here[task.device])
        return self.backends.get(task.device) or TimedKernels(worker, jobs)

    def searched(self, tasks: Sequence[KernelTask], rule: Rule) -> frozenset[str]:
        """Return what was searched through as many levels; by predictions does not count where it
        runs.

        Otherwise predictions are no reason to repeat measurements.
        """
        tuned, found = load_tuned(), set[str]()
        for task in tasks:
            kernel = tuned.get(task.key)
            if kernel is None:
                continue
            is_measured = kernel.measure == MEASURED_THERE
            runs = task.device in self.here and runs_alone(task)
            is_enough = kernel.levels >= rule.levels
            if (is_measured and is_enough) if runs else (is_measured or is_enough):
                found.add(task.key)
        return frozenset(found)


@contextmanager
def _reported_together(tuning: Tuning, count: int) -> Generator[Tuning]:
    """Keep what is reported of one kernel together, while several are searched at once."""
    if count == 1:
        yield tuning
        return
    lines: list[str] = []
    yield replace(tuning, say=lines.append)
    for line in lines:
        tuning.say(line)


def _check_machine(machine: Machine) -> None:
    """Raise BraidError for one that is not this."""
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
    report.own.add(task.key)
    report.searched += 1
    report.faster += kernel.chosen is not None
    report.library += kernel.keeps_library
    report.before += task.runs * kernel.baseline
    report.after += task.runs * kernel.seconds


@dataclass(frozen=True)
class _KernelSearch:
    """The search of one kernel, as `tuning` says."""

    measured: MeasuredTask
    tuning: Tuning
    is_spent: Callable[[], bool]

    def recorded(self) -> TunedKernel | None:
        """Return the schedules that were found, which are in the store once this returns; None
        without any."""
        measured, task, say = self.measured, self.measured.task, self.tuning.say
        say(str(task))
        if measured.meter.quantity != MEASURED:
            say(f"  {measured.meter.quantity} on {task.device.name}")
        default = measured.seconds(task.default[1])
        if default is None:
            say("  the default kernel could not be measured")
            return None
        library = measured.library_seconds()
        if library is not None:
            say(f"  library {library * 1e6:.4g} µs, default {default * 1e6:.4g} µs")
        rule = self.tuning.rule
        if library is None:  # nothing shows that little is left to gain
            rule = replace(rule, least_gain=0.0)
        found = self._found(default if library is None else library, rule)
        if not found.steps:
            say("  left as it is")
            return None
        for step in found.steps:
            say(f"  {step}")
        kernel = measured.confirmed(found, default, rule)
        for point, why in measured.refused.items():
            if why == WRONG:
                say(f"  {why}: {point}")
        append_tuned(task.key, kernel)
        measured.record_library(kernel)
        say(f"  {_verdict(kernel)}")
        return kernel

    def _found(self, baseline: float, rule: Rule) -> Found[KernelSchedule]:
        measured, task = self.measured, self.measured.task
        if not self.tuning.by_model:
            asked = self.tuning.steer
            steer = None if asked is None else partial(asked, task)
            return search(
                measured.space,
                measured.seconds,
                baseline,
                rule,
                is_spent=self.is_spent,
                steer=steer,
            )
        return search_by_model(
            lambda level: list(measured.space(level)),
            measured.seconds,
            baseline,
            rule,
            task.group,
            task.key,
            is_spent=self.is_spent,
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
