"""Compute what launching a function takes: on its device, and on the links to it and back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.structure.nesting import blocks_outside_groups
from braid.analysis.structure.parameter_expressions import is_leaf
from braid.dialects.braid.attribute_names import HOST_STAGE, STREAMS
from braid.dialects.braid.clusters import device_name
from braid.dialects.braid.launch import AwaitOp, LaunchOp
from braid.dialects.braid.regions import FusedOp
from braid.targets.costs.cost_source import CostSource
from braid.targets.machines.target import Device, Target


def link_seconds(target: Target, source: str, destination: str, size: float) -> float:
    """Return the seconds of one transfer of `size` bytes; 0 between devices without a link: they
    share memory.

    A link without a bandwidth takes its latency alone.
    """
    for link in target.links:
        if (link.source, link.destination) == (source, destination):
            return link.latency + (size / link.bandwidth if link.bandwidth else 0.0)
    return 0.0


@dataclass(frozen=True)
class LaunchTimes:
    """The times that functions of a module take on the devices of `target`.

    `functions` are those of the module by name.
    """

    functions: Mapping[str, FuncOp]
    target: Target
    costs: CostSource
    counts: ExecutionCounts

    @staticmethod
    def on(
        target: Target, functions: Mapping[str, FuncOp], counts: ExecutionCounts
    ) -> "LaunchTimes":
        """Return launch times with what braid knows of the devices."""
        return LaunchTimes(functions, target, CostSource(target), counts)

    def callee(self, launch: LaunchOp) -> FuncOp:
        """Return the function that `launch` starts."""
        return self.functions[launch.callee.string_value()]

    def devices_inside(self, op: Operation) -> list[Device]:
        """Return the devices that ops in `op` launch on, also by functions of the host."""
        found: dict[Device, None] = {}
        for launch in (inner for inner in op.walk() if isinstance(inner, LaunchOp)):
            function = self.callee(launch)
            name = device_name(function)
            if name is None or HOST_STAGE in function.attributes:
                found.update(dict.fromkeys(self.devices_inside(function)))
            else:
                found[self.target.device(name)] = None
        return list(found)

    def of(self, function: FuncOp) -> float:
        """Return the seconds of one launch: simulated, or the cost of its ops and launches.

        The time includes the start of its device, but not transfers to the device and back.
        """
        device = None if HOST_STAGE in function.attributes else device_name(function)
        start = 0.0 if device is None else self.target.device(device).start_seconds
        return start + self._of_what_runs(function)

    def _of_what_runs(self, function: FuncOp) -> float:
        entries = function.attributes.get(STREAMS)
        if isinstance(entries, ArrayAttr):
            streams = cast(ArrayAttr[DictionaryAttr], entries).data
            return sum(_number(each, "seconds") * _number(each, "executions") for each in streams)
        blocks = blocks_outside_groups(function)
        return sum(self.counts.of_block(b) * sum(map(self.of_op, b.ops)) for b in blocks)

    def of_op(self, op: Operation, device: Device | None = None) -> float:
        """Return the seconds of one run of `op`, without its blocks, on `device` or its own device.

        A launch takes as long as its function. Raises UnsupportedError for open dims.
        """
        if isinstance(op, LaunchOp):
            return self.of(self.callee(op))
        is_group = isinstance(op, FusedOp)
        if isinstance(op, AwaitOp) or is_leaf(op) or not (is_group or op.results) or is_control(op):
            return 0.0
        own = self.costs.of(op) if device is None else self.costs.on(device)
        cost = own.cost(op)
        return cost.seconds + (own.start_of(cost) if is_group else 0.0)


def is_control(op: Operation) -> bool:
    """Return whether `op` only holds other ops that are on their own."""
    return bool(op.regions) and not isinstance(op, FusedOp)


def _number(entry: DictionaryAttr, name: str) -> float:
    value = entry.data[name]
    assert isinstance(value, FloatAttr)
    return value.value.data
