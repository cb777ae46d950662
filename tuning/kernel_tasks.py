"""The kernels of a model that schedules are searched for, and their spaces."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp, TensorType

from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import boxes_of, overlap_of, stored_choice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.variants import program_functions
from braid.targets.backend import Job
from braid.targets.backends import kernel_families, meter_of
from braid.targets.costs.kernel_choice import KernelChoice
from braid.targets.costs.schedule_records import body_key, dense_choice, schedule_key
from braid.targets.kernels.family_calls import Match
from braid.targets.kernels.kernel_family import GENERIC, Kernel
from braid.targets.kernels.kernel_schedule import KernelSchedule
from braid.targets.machines.machine import Machine
from braid.targets.machines.resolve import device_of, target_of
from braid.targets.machines.target import Device, Target
from braid.tuning.layout_candidates import in_layouts
from braid.tuning.library_kernels import LibraryKernel, library_kernels
from braid.tuning.space_files import FamilySpace, schedules

_HOPELESS = 8
"""Times the best prediction at which the generic lowering is not tried any more."""


@dataclass(frozen=True, eq=False)
class KernelTask:
    """A kernel of a model: `group` has its tensors on their own, in the layouts of `choice`.

    `key` and `body` are its `schedule_key` and `body_key`; `default` is how it is made without a
    record; `seconds` are what all its expected runs in one run of the model are predicted to take.
    It runs on `device`.
    `library` are the kernels of a vendor's library that could stand in its place; `spaces` say what
    is searched beside, or not at all.
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
            for each in schedules(match, level, self.spaces):
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


def kernel_tasks(
    module: ModuleOp, name: str | None = None, spaces: Sequence[FamilySpace] = ()
) -> list[KernelTask]:
    """The kernels that families make and somebody measures, those that take the most first.

    These are the host's, and those of devices whose backend has a meter (`meter_of`). `name` is
    that of another target, `spaces` say what is searched. Groups with open dims, and those whose
    operands lie in their results, are left out.
    """
    target, counts = target_of(module, name), ExecutionCounts.of(module)
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
            if key in tasks:
                known = tasks[key]
                more = runs * known.default[0].seconds(choice)
                tasks[key] = replace(known, seconds=known.seconds + more)
                continue
            group = in_layouts(op, choice)
            taking = own.choice.matches.in_choice(group, choice)
            first = own.choice.match(group)
            if first is None:
                continue
            default = KernelSchedule.of(first.family.name, first.default_schedule())
            seconds = runs * first.seconds(choice)
            of_group = next(match for match in taking if match.family.name == first.family.name)
            library = library_kernels(op, choice, device)
            body = body_key(group, own.machine)
            tasks[key] = KernelTask(
                key,
                body,
                group,
                choice,
                taking,
                (of_group, default),
                seconds,
                device,
                library,
                spaces,
            )
    return sorted(tasks.values(), key=lambda task: -task.seconds)


@dataclass(frozen=True)
class _OnDevice:
    """What a device's kernels are for, and which ones there are."""

    machine: Machine
    choice: KernelChoice

    @staticmethod
    def of(target: Target, device: Device) -> "_OnDevice | None":
        """None for a device whose kernels nobody measures."""
        if device != target.host_device and meter_of(Job(target, device)) is None:
            return None
        return _OnDevice(device.machine, KernelChoice(kernel_families(device)))


def _is_left_out(group: FusedOp) -> bool:
    values = (*group.operands, *group.results)
    tensors = [value for value in values if isinstance(value.type, TensorType)]
    is_open = any(DYNAMIC in shape_of(value) for value in tensors)
    in_result = bool(boxes_of(group)) or overlap_of(group) is not None
    return len(tensors) < len(values) or is_open or in_result
