"""Searches schedules for the kernels of one model on this machine, and records what it finds."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from xdsl.dialects.builtin import ModuleOp, TensorType

from braid.analysis.execution.execution_counts import ExecutionCounts
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import boxes_of, overlap_of, stored_choice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.variants import program_functions
from braid.lowering.common.kernel_selection import KernelSelection
from braid.lowering.host.codegen.compiler import compile_kernels
from braid.support.errors import BraidError
from braid.targets.backends import kernel_families
from braid.targets.costs.schedule_records import (
    TunedKernel,
    append_tuned,
    dense_choice,
    load_tuned,
    schedule_key,
)
from braid.targets.kernels.family_calls import Match
from braid.targets.kernels.group_matches import GroupMatches
from braid.targets.kernels.kernel_family import GENERIC, LEVELS, Kernel, KernelFamily
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.targets.machines.resolve import device_of, target_of
from braid.tuning.kernel_runs import Reference, RunRequest
from braid.tuning.layout_candidates import in_layouts
from braid.tuning.search import Found, Rule, Step, search
from braid.tuning.timing import Clock, TimingRequest, stored_arguments
from braid.tuning.timing_worker import TimingWorker, timing_worker

_TOGETHER = 8
"""Kernels that are compiled at once."""
_TURNS = 7
"""Measurements of the best schedule and the default in turns, before one is called faster."""
_NOISE = 0.01
"""Gains below this part are not claimed however still the machine seems."""
_HOPELESS = 8
"""Times the best prediction at which the generic lowering is not tried any more."""


@dataclass(frozen=True, eq=False)
class KernelTask:
    """A kernel of a model: `group` has its tensors on their own, in the layouts of `choice`.

    `default` is how it is made without a record; `seconds` are what all its expected runs in one
    run of the model are predicted to take.
    """

    key: str
    group: FusedOp
    choice: LayoutChoice
    matches: Sequence[Match]
    default: tuple[Match, KernelSchedule]
    seconds: float

    def space(self, level: int) -> Iterator[KernelSchedule]:
        """The schedules of one level, those of the default's family first."""
        first, schedule = self.default
        if level == 0:
            yield schedule
        best = min(match.seconds(self.choice) for match in self.matches)
        for match in sorted(self.matches, key=lambda match: match is not first):
            hopeless = match.seconds(self.choice) > _HOPELESS * best
            if match.family.name == GENERIC and match is not first and hopeless:
                continue
            for each in match.space(level):
                yield KernelSchedule.of(match.family.name, each)

    def emit(self, point: KernelSchedule, symbol: str) -> Kernel:
        """The kernel by one point of the space. Raises BraidError where it cannot be emitted."""
        match = next(match for match in self.matches if match.family.name == point.family)
        return match.emit(symbol, point.schedule)

    def __str__(self) -> str:
        """For people: the ops, the result's type and the layouts."""
        ops = [op.name.removeprefix("braid.") for op in self.group.body.block.ops]
        shape = "x".join(map(str, shape_of(self.group.outputs[0])))
        layouts = [str(x) for x in (*self.choice.operands, *self.choice.results)]
        return f"{' '.join(ops[:-1])} -> {shape}: {' '.join(layouts)}"


@dataclass
class TuningReport:
    """How many kernels were searched, have a faster schedule, were known, or are left."""

    searched: int = 0
    faster: int = 0
    known: int = 0
    left: int = 0
    before: float = 0.0
    after: float = 0.0
    """Seconds of the searched kernels in one run of the model, by default and as found."""

    def __str__(self) -> str:
        gain = f", together {self.before / self.after:.3f} times as fast" if self.after else ""
        return (
            f"{self.searched} kernels searched, {self.faster} of them are faster{gain}; "
            f"{self.known} known before, {self.left} left"
        )


def tune_kernels(
    module: ModuleOp,
    rule: Rule,
    time_limit: float,
    *,
    jobs: int | None = None,
    again: bool = False,
    say: Callable[[str], None] = lambda _: None,
    goes_on: Callable[[Step], bool] = lambda _: True,
    clock: Clock = time.monotonic,
) -> TuningReport:
    """Searches the kernels of `module`, whose layouts and storage are decided, and records them.

    Kernels that are predicted to take the most of a run come first, and those that compute the same
    are searched once. What was searched before is left as it is, unless `again`. After `time_limit`
    seconds no further kernel is compiled. `say` gets a line for each step of a search. Raises
    BraidError where the store cannot be written.
    """
    began, report, tuned = clock(), TuningReport(), load_tuned()
    with timing_worker() as worker:
        for task in kernel_tasks(module):
            if task.key in tuned and not again:
                report.known += 1
            elif clock() - began > time_limit:
                report.left += 1
            else:
                say(str(task))
                measured = _Measured(task, worker, jobs, rule.trials)
                baseline = measured.seconds(task.default[1])
                if baseline is None:
                    say("  the default kernel could not be measured")
                    report.left += 1
                    continue
                found = search(
                    measured.space,
                    measured.seconds,
                    baseline,
                    rule,
                    is_spent=lambda: clock() - began > time_limit,
                    goes_on=goes_on,
                )
                for step in found.steps:
                    say(f"  {step}")
                kernel = measured.confirmed(found)
                say(f"  {_verdict(kernel)}")
                append_tuned(task.key, kernel)
                runs = task.seconds / max(task.default[0].seconds(task.choice), 1e-12)
                report.searched += 1
                report.faster += kernel.chosen is not None
                report.before += runs * kernel.baseline
                report.after += runs * kernel.seconds
    return report


def kernel_tasks(module: ModuleOp) -> list[KernelTask]:
    """The kernels of the host that families make, those that take the most first.

    Groups with open dims, and those whose operands lie in their results, are left out.
    """
    target, counts = target_of(module), ExecutionCounts.of(module)
    families: Sequence[KernelFamily] = kernel_families(target.host_device)
    machine, matches = target.host_device.machine, GroupMatches(families)
    selection = KernelSelection(families)
    tasks: dict[str, KernelTask] = {}
    for function in program_functions(module):
        for op in function.walk():
            on_host = isinstance(op, FusedOp) and device_of(op, target) == target.host_device
            if not isinstance(op, FusedOp) or not on_host or _is_left_out(op):
                continue
            choice = dense_choice(stored_choice(op))
            key = schedule_key(op, machine)
            block = op.parent
            runs = 1.0 if block is None else counts.of_block(block)
            if key in tasks:
                known = tasks[key]
                more = runs * known.default[0].seconds(choice)
                tasks[key] = _with_seconds(known, known.seconds + more)
                continue
            group = in_layouts(op, choice)
            taking = matches.in_choice(group, choice)
            first = selection.match(group)
            if first is None:
                continue
            default = KernelSchedule.of(first.family.name, first.default_schedule())
            seconds = runs * first.seconds(choice)
            own = next(match for match in taking if match.family.name == first.family.name)
            tasks[key] = KernelTask(key, group, choice, taking, (own, default), seconds)
    return sorted(tasks.values(), key=lambda task: -task.seconds)


def _with_seconds(task: KernelTask, seconds: float) -> KernelTask:
    return KernelTask(task.key, task.group, task.choice, task.matches, task.default, seconds)


def _is_left_out(group: FusedOp) -> bool:
    values = (*group.operands, *group.results)
    tensors = [value for value in values if isinstance(value.type, TensorType)]
    is_open = any(DYNAMIC in shape_of(value) for value in tensors)
    in_result = bool(boxes_of(group)) or overlap_of(group) is not None
    return len(tensors) < len(values) or is_open or in_result


@dataclass
class _Measured:
    """Kernels of one task: compiled a few at once, in the order of the space, and timed."""

    task: KernelTask
    worker: TimingWorker
    jobs: int | None
    trials: int | None
    requests: dict[KernelSchedule, TimingRequest | None] = field(
        default_factory=dict[KernelSchedule, "TimingRequest | None"]
    )
    waiting: list[KernelSchedule] = field(default_factory=list[KernelSchedule])

    def space(self, level: int) -> Iterator[KernelSchedule]:
        """The points of one level, as far as they may be tried at all."""
        if level >= LEVELS:
            return
        points = dict.fromkeys(self.task.space(level))
        self.waiting = [point for point in points if point not in self.requests]
        yield from points

    def seconds(self, point: KernelSchedule) -> float | None:
        """One run of the kernel by `point`; None where there is none, or it crashes or hangs."""
        if point not in self.requests:
            rest = (each for each in self.waiting if each not in self.requests and each != point)
            self._compile([point, *islice(rest, _TOGETHER - 1)])
        request = self.requests[point]
        return None if request is None else self.worker.seconds(request)

    def confirmed(self, found: Found[KernelSchedule]) -> TunedKernel:
        """The fastest schedule that is right, and is faster than the default beyond the noise."""
        first, default = self.task.default
        ranked = sorted(found.times, key=lambda point: found.times[point])
        faster = [] if found.point is None else [found.point, *ranked]
        for point in dict.fromkeys(faster):
            if point == default or found.times[point] >= found.baseline:
                break
            if self._is_right(point):
                return self._compared(point, default)
        version = first.family.version
        return TunedKernel(None, version, found.baseline, found.baseline, str(self.task))

    def _compared(self, point: KernelSchedule, default: KernelSchedule) -> TunedKernel:
        times: dict[KernelSchedule, list[float]] = {point: [], default: []}
        for _ in range(_TURNS):
            for each in times:
                if (seconds := self.seconds(each)) is not None:
                    times[each].append(seconds)
        what = str(self.task)
        match = next(m for m in self.task.matches if m.family.name == point.family)
        if len(times[point]) < _TURNS or len(times[default]) < _TURNS:
            seconds = statistics.median(times[default] or [0.0])
            return TunedKernel(None, match.family.version, seconds, seconds, what)
        new, old = (statistics.median(times[each]) for each in (point, default))
        low, _, high = statistics.quantiles(times[default], n=4)
        if new < old * (1 - max(_NOISE, (high - low) / old)):
            return TunedKernel(point, match.family.version, new, old, what)
        return TunedKernel(None, match.family.version, old, old, what)

    def _is_right(self, point: KernelSchedule) -> bool:
        """Whether it computes what the ops mean; where these do not say, no schedule counts."""
        request, reference = self.requests[point], Reference.of(self.task.group, self.task.choice)
        if request is None or reference is None:
            return False
        results = self.worker.results(
            RunRequest(
                request.object_code,
                request.symbol,
                request.grid,
                request.scratch_bytes,
                reference.operands,
                reference.unwritten(),
            )
        )
        return results is not None and reference.agrees(results)

    def _compile(self, points: Sequence[KernelSchedule]) -> None:
        """Fills `requests`, with None for what cannot be emitted or compiled."""
        kernels: dict[KernelSchedule, Kernel] = {}
        for number, point in enumerate(points):
            self.requests[point] = None
            try:
                kernels[point] = self.task.emit(point, f"candidate_{number}")
            except BraidError:
                continue
        for (point, kernel), code in zip(kernels.items(), self._objects(kernels), strict=True):
            if code is not None:
                self.requests[point] = TimingRequest(
                    code,
                    kernel.symbol,
                    kernel.grid,
                    kernel.scratch_bytes,
                    stored_arguments(self.task.group, self.task.choice),
                )

    def _objects(self, kernels: dict[KernelSchedule, Kernel]) -> Iterator[bytes | None]:
        try:
            yield from compile_kernels(list(kernels.values()), jobs=self.jobs)
        except BraidError:
            for kernel in kernels.values():
                try:
                    (code,) = compile_kernels([kernel], jobs=self.jobs)
                except BraidError:
                    yield None
                else:
                    yield code


def _verdict(kernel: TunedKernel) -> str:
    if kernel.chosen is None:
        return f"the default schedule stays, {kernel.baseline * 1e6:.4g} µs"
    return (
        f"{kernel.chosen}: {kernel.seconds * 1e6:.4g} µs, "
        f"the default takes {kernel.baseline * 1e6:.4g} µs"
    )
