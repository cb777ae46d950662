"""Tries the ops of a model on the devices of a target, and keeps the results.

Each distinct op is compiled for each device and run there on its own: whether that works is how the
device's support is known, and how long it takes how fast it is. If a device runs kernels, the model
as a whole also runs there, and each of its groups is timed in it: only then the caches are as they
are in models. All of it happens in a separate process that may crash, hang or take all memory; that
counts as a failure of the tried op only. Devices that are alike are tried once.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from xdsl.ir import Operation

from braid.driver.lower_source import known_target
from braid.driver.options import DEFAULTS, CompileOptions
from braid.driver.read_source import read_to_compile
from braid.passes.infrastructure.context import make_context
from braid.support.worker_process import WorkerEndedError, WorkerProcess, worker_process
from braid.targets.backends import backend_names
from braid.targets.costs.op_amounts import computed_type, kind_name, kinds_of
from braid.targets.costs.probe_records import (
    Probe,
    device_scope,
    keep_probes,
    probes_in,
    stored_probes,
)
from braid.targets.machines.resolve import target_name
from braid.targets.machines.target import Device, Target
from braid.tuning.probe_modules import distinct_ops, module_of, simplify
from braid.tuning.probe_runs import (
    GroupTimes,
    ModelTrial,
    OpTrial,
    Outcome,
    middle_and_spread,
)

WORKER = "braid.tuning.probe_worker"
_ENOUGH = 3
"""Ops whose code a device has to refuse, and take none, before it counts as missing."""

Notify = Callable[[str], None]


@dataclass(frozen=True)
class Limits:
    """The seconds that a trial of an op, or of a model, may take, and for which it is timed."""

    op: float = 60.0
    model: float = 600.0
    op_timed: float = 0.2
    model_timed: float = 4.0


@dataclass
class DeviceReport:
    """A report of the trials on a device: ops, and the groups of the model as a whole.

    `absent` is the reason why nothing was tried, `failures` has the reason of each failed trial;
    `known` ops were found to work before.
    """

    device: str
    ops: int = 0
    known: int = 0
    groups: int = 0
    absent: str = ""
    failures: dict[str, str] = field(default_factory=dict[str, str])

    def describe(self) -> str:
        """Describe the result: a line, and one for each failure."""
        if self.absent:
            return f"{self.device} is not here: {self.absent}"
        groups = f", {self.groups} groups of the model as a whole" if self.groups else ""
        lines = [
            f"{self.device}: {self.ops} ops tried, {self.known} known before, "
            f"{len(self.failures)} failed{groups}"
        ]
        return "\n".join([*lines, *(f"  {what}: {why}" for what, why in self.failures.items())])


class ProbeWorker:
    """Starts the process when something is tried first, and again after it ended."""

    def __init__(self, ending: ExitStack) -> None:
        self._process: WorkerProcess | None = None
        self._ending = ending

    def outcome(self, trial: OpTrial | ModelTrial, limit: float) -> Outcome:
        """Return the result of `trial`, which may take this many seconds."""
        if self._process is None:
            self._process = self._ending.enter_context(worker_process(WORKER))
        try:
            found = self._process.ask(trial, seconds=limit)
            assert isinstance(found, Outcome)
            return found
        except WorkerEndedError as error:
            self._process = None
            self._ending.close()
            return Outcome(message=str(error))


def probe_model(
    path: Path,
    *,
    target: str | None = None,
    options: CompileOptions = DEFAULTS,
    limits: Limits = Limits(),
    alone: bool = True,
    notify: Notify = lambda text: None,
) -> list[DeviceReport]:
    """Try the ops of the model at `path` on the devices of `target`; what was found is kept.

    `options` fix its open dims and inputs. Without `alone`, only the model as a whole.
    Raises BraidError for a model or target that cannot be read, and where nothing can be kept.
    """
    options = replace(options, target=target)
    source = read_to_compile(make_context(), path, options)
    found = known_target(source.module)
    name = target_name(source.module)
    simplify(make_context(), source.module)
    ops = distinct_ops(source.module) if alone else {}
    reports: list[DeviceReport] = []
    seen: set[str] = set()
    with ExitStack() as ending:
        worker = ProbeWorker(ending)
        for device in found.devices:
            scope = device_scope(found.backend_of(device), of_op=True)
            if scope not in seen:
                seen.add(scope)
                trials = _Trials(found, name, device, worker, limits, notify)
                reports.append(trials.run(ops, path, options))
    return reports


@dataclass(frozen=True)
class _Trials:
    """All trials on one device of `target`, which modules know by `name`."""

    target: Target
    name: str
    device: Device
    worker: ProbeWorker
    limits: Limits
    notify: Notify

    def run(
        self, ops: Mapping[str, Operation], path: Path, options: CompileOptions
    ) -> DeviceReport:
        """Try all of it, and keep the results."""
        report = DeviceReport(self.device.name)
        if self.device.backend not in backend_names():
            report.absent = f"no installed package has backend '{self.device.backend}'"
            return report
        self._try_ops(ops, report)
        if not report.absent and self.target.backend_of(self.device).issue is None:
            self._try_model(path, options, report)
        return report

    def _try_ops(self, ops: Mapping[str, Operation], report: DeviceReport) -> None:
        scope = device_scope(self.target.backend_of(self.device), of_op=True)
        known = {probe.text for probe in probes_in(scope, stored_probes()) if probe.works}
        found: list[Probe] = []
        kept = refused = 0
        for number, (text, op) in enumerate(ops.items(), 1):
            if text in known:
                report.known += 1
                continue
            self.notify(f"{self.device.name}: op {number} of {len(ops)}, {kind_name(op)}")
            module = str(module_of(op, self.device))
            trial = OpTrial(module, self.name, self.device.name, self.limits.op_timed)
            outcome = self.worker.outcome(trial, self.limits.op)
            refused += outcome.at_load
            found.append(_of_op(text, op, outcome))
            if refused < len(found) or known:
                keep_probes(scope, found[kept:])  # at once: whoever is interrupted keeps these
                kept = len(found)
            elif refused == min(_ENOUGH, len(ops)):
                report.absent = outcome.message
                return
        report.ops = len(found)
        report.failures |= {probe.what: probe.message for probe in found if not probe.works}

    def _try_model(self, path: Path, options: CompileOptions, report: DeviceReport) -> None:
        self.notify(f"{self.device.name}: the model as a whole")
        trial = ModelTrial(
            path,
            replace(options, target=self.name),
            self.device.name,
            self.limits.model_timed,
        )
        outcome = self.worker.outcome(trial, self.limits.model)
        if outcome.message:
            report.failures["the model as a whole"] = outcome.message
            return
        probes = _of_groups(outcome.groups)
        report.groups = len(probes)
        scope = device_scope(self.target.backend_of(self.device), of_op=False)
        keep_probes(scope, probes)


def _of_op(text: str, op: Operation, outcome: Outcome) -> Probe:
    """Return the record of an op on its own."""
    types = ", ".join(str(value.type) for value in op.operands)
    largest = max(outcome.groups, key=lambda group: group.predicted, default=None)
    failed = bool(outcome.message)
    middle, spread = (0.0, 0.0) if not outcome.seconds else middle_and_spread(outcome.seconds)
    return Probe(
        text,
        f"{kind_name(op)} {types}",
        kind_name(op),
        computed_type(op),
        of_op=True,
        runs=len(outcome.seconds) + failed,
        failures=int(failed),
        seconds=middle,
        spread=spread,
        predicted=sum(group.predicted for group in outcome.groups),
        kinds=kinds_of(op, "") if largest is None else largest.kinds,
        message=outcome.message,
    )


def _of_groups(groups: list[GroupTimes]) -> list[Probe]:
    """Return a record for each text: groups that compute the same count as runs of one."""
    same: dict[str, list[GroupTimes]] = {}
    for group in groups:
        same.setdefault(group.text, []).append(group)
    found: list[Probe] = []
    for text, own in same.items():
        seconds = [each for group in own for each in group.seconds]
        middle, spread = middle_and_spread(seconds)
        first = own[0]
        found.append(
            Probe(
                text,
                first.what,
                first.op,
                first.type,
                of_op=False,
                runs=len(seconds),
                seconds=middle,
                spread=spread,
                predicted=sum(group.predicted for group in own) / len(own),
                kinds=first.kinds,
            )
        )
    return found
