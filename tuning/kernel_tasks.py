"""The kernels of a model that schedules are searched for, and their spaces."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp, TensorType

from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import boxes_of, overlap_of, stored_choice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.names import names_of
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.variants import program_functions
from braid.targets.backend import BackendGroup, Job
from braid.targets.backends import grouping_of, meter_of
from braid.targets.costs.kernel_choice import KernelChoice
from braid.targets.kernels.family_answers import check_families
from braid.targets.kernels.group_matches import Match, match_group
from braid.targets.kernels.kernel_family import GENERIC, Kernel, KernelFamily
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.targets.kernels.keys import dense_choice, schedule_key
from braid.targets.kernels.searched_groups import body_key
from braid.targets.machines.machine import Machine
from braid.targets.machines.resolve import device_of, target_of
from braid.targets.machines.target import Device, Target
from braid.tuning.layout_candidates import in_layouts
from braid.tuning.library_kernels import LibraryKernel, library_kernels
from braid.tuning.space_files import FamilySpace, schedules

_HOPELESS = 8
"""Times the best prediction at which the generic lowering is not tried any more."""
_LISTED_OPS = 32
"""Groups of more ops are streams, not kernels with a few names."""


@dataclass(frozen=True, eq=False)
class KernelTask:
    """A kernel of a model: `group` has its tensors on their own, in the layouts of `choice`.

    `key` and `body` are its `schedule_key` and `body_key`; `default` is how it is made without a
    record; `seconds` is the predicted time of all its expected runs in one run of the model.
    It runs on `device`; `counters` are what a profile counts each of its groups under. `library`
    are the kernels of a vendor's library that could stand in its place; `spaces` has the spaces to
    search in addition, or None to skip the search.
    """

    key: str
    body: str
    group: FusedOp
    choice: LayoutChoice
    matches: Sequence[Match]
    default: tuple[Match, KernelSchedule]
    seconds: float
    device: Device
    library: Sequence[LibraryKernel] = ()
    spaces: Sequence[FamilySpace] = ()
    counters: tuple[str, ...] = ()

    @property
    def runs(self) -> float:
        """Return how often a run of the model is expected to run the kernel."""
        return self.seconds / max(self.default[0].candidate.seconds(self.choice), 1e-12)

    def with_runs(self, runs: float, *counters: str) -> "KernelTask":
        """Return the task of a model that runs the kernel `runs` times more often."""
        seconds = self.seconds + runs * self.default[0].candidate.seconds(self.choice)
        return replace(self, seconds=seconds, counters=(*self.counters, *counters))

    def space(self, level: int) -> Iterator[KernelSchedule]:
        """Yield the schedules of one level, those of the default's family first."""
        first, schedule = self.default
        if level == 0:
            yield schedule
        best = min(match.candidate.seconds(self.choice) for match in self.matches)
        for match in sorted(self.matches, key=lambda match: match is not first):
            hopeless = match.candidate.seconds(self.choice) > _HOPELESS * best
            if match.family.name == GENERIC and match is not first and hopeless:
                continue
            for each in schedules(match, level, self.spaces):
                yield KernelSchedule.of(match.family.name, each)

    def emit(self, point: KernelSchedule, symbol: str) -> Kernel:
        """Return the kernel by one point of the space. Raises BraidError where it cannot be
        emitted.
        """
        found = next(match for match in self.matches if match.family.name == point.family)
        return found.emit(symbol, point.schedule)

    def __str__(self) -> str:
        """Describe the task: the ops, the result's type and the layouts; of many ops how many of
        each.
        """
        ops = [op.name.removeprefix("braid.") for op in self.group.body.block.ops][:-1]
        shape = "x".join(map(str, shape_of(self.group.outputs[0])))
        if len(ops) > _LISTED_OPS:
            counts = Counter(ops).most_common()
            return f"{', '.join(f'{count} {name}' for name, count in counts)} -> {shape}"
        layouts = [str(x) for x in (*self.choice.operands, *self.choice.results)]
        return f"{' '.join(ops)} -> {shape}: {' '.join(layouts)}"


def kernel_tasks(
    module: ModuleOp, target: Target | None = None, spaces: Sequence[FamilySpace] = ()
) -> list[KernelTask]:
    """Return the kernels that families make and somebody measures, those that take the most first.

    These are the host, and devices whose backend has a meter (`meter_of`). `target` is
    by default the module's; `spaces` has the spaces to search. Groups with open dims, and those
    whose operands lie in their results, are left out.
    """
    target, counts = target or target_of(module), ExecutionCounts.of(module)
    known_devices: dict[Device, _OnDevice | None] = {}
    tasks: dict[str, KernelTask] = {}
    for function in program_functions(module):
        for op in function.walk():
            if not isinstance(op, FusedOp) or _is_left_out(op):
                continue
            device = device_of(op, target)
            if device not in known_devices:
                known_devices[device] = _OnDevice.of(target, device)
            own = known_devices[device]
            if own is None:
                continue
            choice = dense_choice(stored_choice(op))
            key = schedule_key(op, own.machine)
            block = op.parent
            runs = 1.0 if block is None else counts.of_block(block)
            counter = "+".join(names_of(op))
            if key in tasks:
                tasks[key] = tasks[key].with_runs(runs, counter)
                continue
            group = in_layouts(op, choice)
            taking = own.choice.matches.in_choice(group, choice)
            first = own.choice.match(group)
            if first is None:
                continue
            default = KernelSchedule.of(first.family.name, first.default_schedule())
            of_group = next(match for match in taking if match.family.name == first.family.name)
            tasks[key] = KernelTask(
                key,
                body_key(group, own.machine),
                group,
                choice,
                taking,
                (of_group, default),
                runs * first.candidate.seconds(choice),
                device,
                library_kernels(op, choice, device),
                spaces,
                (counter,),
            )
    return sorted(tasks.values(), key=lambda task: -task.seconds)


def backend_tasks(
    module: ModuleOp,
    selecting: str,
    target: Target | None = None,
    spaces: Sequence[FamilySpace] = (),
) -> list[KernelTask]:
    """Return `kernel_tasks` of the groups that backends make themselves (`Backend.groups`).

    `module` is as their pass `selecting` sees it.
    """
    target, counts = target or target_of(module), ExecutionCounts.of(module)
    tasks: dict[str, KernelTask] = {}
    for device in target.devices:
        grouping = grouping_of(device)
        if grouping is None or grouping.schedule_pass != selecting:
            continue
        job = Job(target, device)
        family = grouping.group_family(job)
        check_families([family])
        for function in program_functions(module):
            for each in grouping.groups(function, job):
                task = _backend_task(each, family, counts.of_block(each.block), device, spaces)
                if task is not None:
                    known = tasks.get(task.key)
                    tasks[task.key] = task if known is None else known.with_runs(task.runs)
    return sorted(tasks.values(), key=lambda task: -task.seconds)


def _backend_task(
    found: BackendGroup,
    family: KernelFamily,
    runs: float,
    device: Device,
    spaces: Sequence[FamilySpace],
) -> KernelTask | None:
    """Return the task of a group; None where the family does not take it."""
    group, machine = found.group, found.machine
    match = match_group(family, group)
    if match is None:
        return None
    choice = stored_choice(group)
    return KernelTask(
        schedule_key(group, machine),
        body_key(group, machine),
        group,
        choice,
        [match],
        (match, KernelSchedule.of(family.name, match.default_schedule())),
        runs * match.candidate.seconds(choice),
        device,
        spaces=spaces,
    )


@dataclass(frozen=True)
class _OnDevice:
    """The machine that a device's kernels are for, and the choice among them."""

    machine: Machine
    choice: KernelChoice

    @staticmethod
    def of(target: Target, device: Device) -> "_OnDevice | None":
        """Return the source of tasks; None for a device whose kernels nobody measures."""
        if device != target.host_device and meter_of(Job(target, device)) is None:
            return None
        if grouping_of(device) is not None:
            return None
        return _OnDevice(device.machine, KernelChoice.on(device))


def _is_left_out(group: FusedOp) -> bool:
    values = (*group.operands, *group.results)
    tensors = [value for value in values if isinstance(value.type, TensorType)]
    is_open = any(DYNAMIC in shape_of(value) for value in tensors)
    in_result = bool(boxes_of(group)) or overlap_of(group) is not None
    return len(tensors) < len(values) or is_open or in_result
