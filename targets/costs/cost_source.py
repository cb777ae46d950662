"""Find the cost of one run of an op on a device, from the first source that knows it.

The sources, in order, are the op's declared cost, measurements (a profile of the op, or a record of
its kernel), the prediction of the kernel family that would make it, and the roofline of the device:
the larger of the time to move and the time to compute. If a device has several cores, seconds are
those of one core, without the start of a kernel (`DeviceRates.launch_seconds`).

This file chooses among the devices of a target, `device_costs.py` asks the sources for one of them,
and `device_rates.py` converts amounts to seconds.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.ir import Operation

from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.targets.costs.cost import Cost, Source, tally
from braid.targets.costs.device_costs import DeviceCosts, measured_seconds
from braid.targets.machines.load import load_target
from braid.targets.machines.resolve import device_of
from braid.targets.machines.target import Device, Target

OpSeconds: TypeAlias = Callable[[Operation], float]
"""Answers how long one run of an op takes."""


class CostSource:
    """Costs on the devices of a target; make one for each pass, since families remember groups."""

    def __init__(self, target: Target, records: Mapping[str, float] | None = None) -> None:
        """Take `records`, by default those of this user."""
        self._target, self._records = target, records
        self._devices: dict[str, DeviceCosts] = {}
        self._only: DeviceCosts | None = None

    @staticmethod
    def single(costs: DeviceCosts, target: Target | None = None) -> "CostSource":
        """Return costs that are all of `costs`, wherever ops run."""
        source = CostSource(target or load_target())
        source._only = costs
        return source

    def cost(
        self,
        op: Operation,
        device: Device | None = None,
        layouts: LayoutChoice | None = None,
        threads: int = 1,
    ) -> Cost:
        """Return the cost of one run of `op` on `device`, by default its own device.

        `layouts` are by default those in which its tensors are stored. Raises UnsupportedError for
        open dims, and BraidError where the device has no rates.
        """
        costs = self.of(op) if device is None else self.on(device)
        return costs.cost(op, layouts, threads)

    def seconds(self, op: Operation) -> float:
        """Return the seconds of `cost`."""
        return self.cost(op).seconds

    def expected_seconds(self, counts: ExecutionCounts) -> OpSeconds:
        """Return the seconds in one run of the function that an op is in, by its expected
        executions.

        Control flow that was not measured itself takes as long as the ops in its regions together.
        """

        def seconds(op: Operation) -> float:
            is_control_flow = isinstance(op, scf.IfOp | scf.IndexSwitchOp | scf.ForOp | scf.WhileOp)
            if is_control_flow and measured_seconds(op) is None:
                blocks = (block for region in op.regions for block in region.blocks)
                return sum(seconds(inner) for block in blocks for inner in block.ops)
            runs = 1.0 if op.parent is None else counts.of_block(op.parent)
            return runs * self.seconds(op)

        return seconds

    def of(self, op: Operation) -> DeviceCosts:
        """Return the costs on the device on which `op` runs."""
        return self._only or self.on(device_of(op, self._target))

    @property
    def default(self) -> DeviceCosts:
        """The costs on the device where ops run that name none."""
        return self._only or self.on(self._target.default_device)

    def on_all(self, devices: Sequence[str]) -> list[DeviceCosts]:
        """Return the costs on devices by their names. Raises BraidError for an unknown one."""
        if self._only is not None:
            return [self._only for _ in devices]
        return [self.on(self._target.device(name)) for name in devices]

    def on(self, device: Device) -> DeviceCosts:
        """Return the costs on one device."""
        if device.name not in self._devices:
            backend = self._target.backend_of(device)
            self._devices[device.name] = DeviceCosts(backend, self._records)
        return self._devices[device.name]

    def sources(self) -> str:
        """Return how many figures each source gave so far, for remarks."""
        counts: Counter[Source] = Counter()
        for costs in (*self._devices.values(), *([] if self._only is None else [self._only])):
            counts.update(costs.asked)
        return tally(counts)
