"""Devices that take turns: which ones are of one kind, and the attributes of ops about them."""

from collections.abc import Mapping, Sequence, Set

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.attribute_names import COLOCATE, DEVICE, REPLICAS
from braid.dialects.braid.clusters import device_name, replicas_of, set_device
from braid.passes.partition.partition_graph import Replicas
from braid.support.errors import BraidError
from braid.targets.machines.resolve import device_of
from braid.targets.machines.target import Device, Target


def are_alike(target: Target, one: Device, other: Device) -> bool:
    """Return whether they run the same code at the same rates.

    Backend, machine, plugin, memories and starts are the same; links may differ.
    """
    return _kind(target, one) == _kind(target, other)


def like_devices(target: Target, devices: Sequence[Device]) -> list[list[int]]:
    """Return the numbers of devices of one kind, if there are several."""
    kinds: dict[object, list[int]] = {}
    for number, device in enumerate(devices):
        kinds.setdefault(_kind(target, device), []).append(number)
    return [numbers for numbers in kinds.values() if len(numbers) > 1]


def _kind(target: Target, device: Device) -> object:
    memories = target.backend_of(device).memories
    machine = device.machine_name, device.described
    return (device.backend, machine, device.plugin, memories, device.start_seconds)


def replica_sets(
    target: Target,
    devices: Sequence[Device],
    ops: Sequence[Operation | None],
    allowed: Sequence[Set[str]],
    *,
    of_kinds: bool,
) -> list[Replicas]:
    """Return the sets of devices that may take turns, and the ops that may be on each.

    These are the sets on ops, with these ops alone, and, with `of_kinds`, all devices of each kind,
    with the ops that may run on every one of them (`allowed`, by op).
    """
    numbers = {device.name: number for number, device in enumerate(devices)}
    said = [() if op is None or not replicas_of(op) else _said(op, numbers) for op in ops]
    sets = [
        Replicas(list(own), [each == own for each in said], must=True)
        for own in dict.fromkeys(said)
        if own
    ]
    for members in like_devices(target, devices) if of_kinds else ():
        names = {devices[k].name for k in members}
        pairs = zip(said, allowed, strict=True)
        may = [not own and names <= able for own, able in pairs]
        if any(may):
            sets.append(Replicas(members, may))
    return sets


def _said(op: Operation, numbers: Mapping[str, int]) -> tuple[int, ...]:
    """Return the devices that it names, in whichever order."""
    own = device_name(op)
    assert own is not None
    return tuple(sorted(numbers[name] for name in (own, *replicas_of(op))))


def turns_of(op: Operation) -> tuple[str, ...]:
    """Return the devices of `op` that take turns, the device of calls first; empty for a single
    one.
    """
    device, replicas = device_name(op), replicas_of(op)
    return (device, *replicas) if device is not None and replicas else ()


def unify_colocated(ops: Sequence[Operation]) -> None:
    """Let ops of a colocation that name the same devices in turn do so in one order."""
    said: dict[tuple[Attribute, frozenset[str]], tuple[str, ...]] = {}
    for op in ops:
        if (turns := turns_of(op)) and (name := op.attributes.get(COLOCATE)) is not None:
            device, *others = said.setdefault((name, frozenset(turns)), turns)
            set_device(op, device, others)


def _device(name: str, target: Target, op: Operation) -> Device:
    try:
        return target.device(name)
    except BraidError as error:
        raise BraidError(error.message, location=source_location(op), hint=error.hint) from error


def check_replicas(ops: Sequence[Operation], target: Target) -> None:
    """Raise BraidError where `braid.replicas` names devices that cannot take turns."""
    for op in ops:
        if REPLICAS not in op.attributes:
            continue
        location, replicas = source_location(op), replicas_of(op)
        hint = f'{REPLICAS} = ["cpu:1"] stands beside {DEVICE} = "cpu:0", a device like that one'
        if device_name(op) is None or not replicas:
            raise BraidError(
                f"'{op.name}' op has {REPLICAS} of no device", location=location, hint=hint
            )
        device = device_of(op, target)
        for name in replicas:
            other = _device(name, target, op)
            if name == device.name or replicas.count(name) > 1:
                raise BraidError(
                    f"'{op.name}' op runs on '{name}' twice in turn", location=location, hint=hint
                )
            if not are_alike(target, device, other):
                raise BraidError(
                    f"'{op.name}' op runs on '{device.name}' in turn with '{name}', which is not"
                    " like it",
                    location=location,
                    hint="their backend, machine, plugin, memories and starts are the same",
                )
        if not isinstance(op.parent_op(), FuncOp):
            raise BraidError(
                f"'{op.name}' op runs on several devices in turn, in a branch or loop",
                location=location,
                hint="the host launches what is in there one by one; leave out " + REPLICAS,
            )
