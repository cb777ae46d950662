"""The time that the launches of a block take on devices and links, as an ordering problem."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from braid.analysis.storage.memory_graph import value_bytes
from braid.dialects.braid.attribute_names import HOST_STAGE
from braid.dialects.braid.clusters import device_name
from braid.dialects.braid.launch import LaunchOp
from braid.dialects.braid.order import blocks_of
from braid.passes.order.block_graph import BlockGraph
from braid.solvers.ordering import LatencyProblem, UnitStage
from braid.targets.costs.launch_times import LaunchTimes, is_control, link_seconds
from braid.targets.machines.target import Device, Target


def launches(function: FuncOp) -> bool:
    """Return whether ops of `function` launch others."""
    return any(isinstance(op, LaunchOp) for op in function.walk())


def launch_problem(
    block: BlockGraph, times: LaunchTimes, inner: Mapping[Block, float]
) -> LatencyProblem:
    """Return the problem of ordering `block` for the least time until the host has finished it.

    Units are the host, which issues ops one by one, the devices, and a copy engine for each
    direction of a link. A device runs its launches in their order. Operands
    are copied to a device with separate memory when all of them exist, and results back to the
    host, while the device goes on with another launch. `inner` are the expected seconds of nested
    blocks in one run of the op that they are in. It occupies the host and the devices on which it
    launches, and begins when these have finished their earlier launches.

    Raises UnsupportedError for open dims.
    """
    units = _Units(times.target)
    stages = tuple(_stages(op, times, units, inner) for op in block.ops)
    return LatencyProblem(block.graph, stages)


@dataclass(frozen=True)
class _Units:
    """Numbers of the units of a target: the host's thread, devices, then two engines for each."""

    target: Target

    host = 0

    def device(self, device: Device) -> int:
        """Return the unit that runs functions on `device`."""
        return 1 + self.target.devices.index(device)

    def copy_in(self, device: Device) -> int:
        """Return the engine that copies operands to `device`."""
        return self.device(device) + len(self.target.devices)

    def copy_out(self, device: Device) -> int:
        """Return the engine that copies results from `device`."""
        return self.copy_in(device) + len(self.target.devices)


def _stages(
    op: Operation, times: LaunchTimes, units: _Units, inner: Mapping[Block, float]
) -> tuple[UnitStage, ...]:
    target = times.target
    if is_control(op):
        expected = sum(inner.get(block, 0.0) for block in blocks_of(op))
        return _kept(UnitStage(units.host, expected), op, times, units)
    if not isinstance(op, LaunchOp):
        # A wait occupies it as well: the host issues later ops when it is over.
        return (UnitStage(units.host, times.of_op(op, target.host_device)),)
    function = times.callee(op)
    seconds = times.of(function)
    name = device_name(function)
    if name is None or HOST_STAGE in function.attributes:
        return _kept(UnitStage(units.host, seconds), function, times, units)
    device = target.device(name)
    issued = UnitStage(units.host, 0.0, waits=False)
    into = _copies(target, target.host, name, op.inputs)
    out = _copies(target, name, target.host, op.outputs)
    return (
        issued,
        UnitStage(units.copy_in(device), into),
        UnitStage(units.device(device), seconds),
        UnitStage(units.copy_out(device), out),
    )


def _kept(
    stage: UnitStage, around: Operation, times: LaunchTimes, units: _Units
) -> tuple[UnitStage, ...]:
    """Return the host's `stage` for `around`, which waits for its launches and occupies their
    devices.
    """
    devices = times.devices_inside(around)
    kept = tuple(UnitStage(units.device(device), 0.0) for device in devices)
    return (*kept, stage, *kept)


def _copies(target: Target, source: str, destination: str, values: Sequence[SSAValue]) -> float:
    return sum(link_seconds(target, source, destination, value_bytes(value)) for value in values)
