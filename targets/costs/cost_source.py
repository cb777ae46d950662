"""What one run of an op costs on a device, from the first source that knows: the one place.

In order: what is declared on the op, what was measured (a profile of the op, or a record of its
kernel), what the kernel family predicts that would make it, and the roofline of the device (S.
Williams, A. Waterman, D. Patterson, "Roofline: An Insightful Visual Performance Model", 2009): the
larger of the time to move and the time to compute. Seconds are those of one core where a device
has several, without what starting a kernel costs.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation

from braid.analysis.execution.execution_counts import ExecutionCounts
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.memory_graph import value_bytes
from braid.analysis.storage.strided_storage import stored_choice
from braid.analysis.storage.tensor_storage import is_view
from braid.analysis.structure.parameter_expressions import is_leaf
from braid.dialects.braid.attribute_names import SECONDS
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.regions import FusedOp
from braid.targets.backends import kernel_families
from braid.targets.costs.cost_records import CostRecords
from braid.targets.costs.kernel_costs import KernelCosts
from braid.targets.costs.op_amounts import computed_type, flops, moved_bytes
from braid.targets.kernels.kernel_family import KernelFamily
from braid.targets.machines.calibration import flops_fact
from braid.targets.machines.machine import Machine
from braid.targets.machines.resolve import device_of
from braid.targets.machines.target import BackendDescription, Device, Pool, Target

OpSeconds: TypeAlias = Callable[[Operation], float]
"""Answers how long one run of an op takes."""


class Source(StrEnum):
    """Who knew a figure."""

    DECLARED = "declared"
    MEASURED = "measured"
    PREDICTED = "predicted"
    ROOFLINE = "roofline"


@dataclass(frozen=True)
class Cost:
    """One run: seconds, bytes moved, scalar operations, and what is declared of other resources.

    `source` knew the seconds; `family` makes the kernel, empty where none does.
    """

    seconds: float
    bytes: int
    flops: int
    source: Source
    declared: Mapping[str, float] = field(default_factory=dict[str, float])
    family: str = ""


class CostSource:
    """Costs on the devices of a target; make one for each pass, since families remember groups."""

    def __init__(self, target: Target, records: CostRecords | None = None) -> None:
        """`records` are by default those of this user."""
        self._target, self._records = target, records
        self._devices: dict[str, DeviceCosts] = {}

    def cost(
        self,
        op: Operation,
        device: Device | None = None,
        layouts: LayoutChoice | None = None,
        threads: int = 1,
    ) -> Cost:
        """What one run of `op` costs on `device`, by default where it runs.

        `layouts` are by default those in which its tensors are stored. Raises UnsupportedError for
        open dims, and BraidError where the device has no rates.
        """
        return self.on(device or device_of(op, self._target)).cost(op, layouts, threads)

    def seconds(self, op: Operation) -> float:
        """The seconds of `cost`."""
        return self.cost(op).seconds

    def expected_seconds(self, counts: ExecutionCounts) -> OpSeconds:
        """Seconds in one run of the function that an op is in, by its expected executions.

        Control flow that was not measured itself takes as long as the ops in its regions together.
        """

        def seconds(op: Operation) -> float:
            is_control_flow = isinstance(op, scf.IfOp | scf.ForOp | scf.WhileOp)
            if is_control_flow and measured_seconds(op) is None:
                blocks = (block for region in op.regions for block in region.blocks)
                return sum(seconds(inner) for block in blocks for inner in block.ops)
            runs = 1.0 if op.parent is None else counts.of_block(op.parent)
            return runs * self.seconds(op)

        return seconds

    def on(self, device: Device) -> "DeviceCosts":
        """The costs on one device."""
        if device.name not in self._devices:
            backend = self._target.backend_of(device)
            self._devices[device.name] = DeviceCosts(backend, self._records)
        return self._devices[device.name]

    def sources(self) -> str:
        """How many figures each source gave so far, for remarks."""
        counts: Counter[Source] = Counter()
        for device in self._devices.values():
            counts.update(device.asked)
        return tally(counts)


class DeviceCosts:
    """Costs on the device that `backend` is of."""

    def __init__(
        self,
        backend: BackendDescription,
        records: CostRecords | None = None,
        *,
        families: Iterable[KernelFamily] | None = None,
    ) -> None:
        """`families` are by default those of the backend, `records` those of this user."""
        self.backend = backend
        self.asked: Counter[Source] = Counter()
        self._families, self._records = families, records
        self._rates: dict[tuple[str, str], float] = {}

    @cached_property
    def kernels(self) -> KernelCosts:
        """What families make of groups."""
        families = self._families
        if families is None:
            device = self.backend.device
            families = () if device is None else kernel_families(device)
        return KernelCosts(families, self._records)

    def cost(self, op: Operation, layouts: LayoutChoice | None = None, threads: int = 1) -> Cost:
        """As in `CostSource`."""
        cost = self._on_one_core(op, layouts)
        self.asked[cost.source] += not (is_leaf(op) or is_view(op))
        pool = self.pool
        if threads == 1 or pool is None or not cost.seconds:
            return cost
        seconds = pool.seconds_on_all(cost.seconds, threads)
        return Cost(seconds, cost.bytes, cost.flops, cost.source, cost.declared, cost.family)

    def roofline_seconds(self, bytes: float, flops: float, element_type: str = "f32") -> float:
        """What moves and computes this much takes at least, at the rates of the device."""
        moving = bytes / self.rate("bytes") if bytes else 0.0
        return max(moving, flops / self.rate("flops", element_type) if flops else 0.0)

    @cached_property
    def machine(self) -> Machine:
        """The device's machine, with what was measured of it."""
        return self.backend.machine

    @property
    def launch_seconds(self) -> float:
        """What starting a kernel takes: as measured, otherwise as the target says."""
        return self.machine.fact("launch_seconds", self.backend.launch_seconds)

    @cached_property
    def pool(self) -> Pool | None:
        """The processors that run ops side by side, joined as fast as measured."""
        pool, fact = self.backend.pool, self.machine.fact
        if pool is None:
            return None
        return replace(
            pool,
            join_seconds=fact("join_seconds", pool.join_seconds),
            efficiency=fact("thread_efficiency", pool.efficiency),
        )

    def rate(self, resource: str, element_type: str = "f32") -> float:
        """How much of `flops` or `bytes` the device does in a second.

        `element_type` is what is computed with. A machine that says so is believed, first what was
        measured of it, otherwise the units of the backend. Raises BraidError where neither does.
        """
        key = (resource, element_type)
        if key not in self._rates:
            fact = self.machine.fact(_FACTS[resource], 0.0)
            if resource == "flops":
                fact = self.machine.fact(flops_fact(element_type), fact)
            self._rates[key] = fact or self.backend.rate(_resource(self.backend, resource))
        return self._rates[key]

    def _on_one_core(self, op: Operation, layouts: LayoutChoice | None) -> Cost:
        if is_leaf(op) or is_view(op):
            return Cost(0.0, 0, 0, Source.ROOFLINE)
        if isinstance(op, OpaqueOp) and (declared := op.declared_cost) is not None:
            return self._declared(op, declared)
        if (measured := measured_seconds(op)) is not None:
            return Cost(measured, moved_bytes(op), flops(op), Source.MEASURED)
        if isinstance(op, FusedOp):
            choice = stored_choice(op) if layouts is None else layouts
            if (match := self.kernels.match_for(op, choice)) is not None:
                option = self.kernels.option(match, choice)
                source = Source.MEASURED if option.measured else Source.PREDICTED
                family = option.family.name
                return Cost(option.seconds, moved_bytes(op), flops(op), source, family=family)
        if op.regions:
            blocks = (block for region in op.regions for block in region.blocks)
            parts = [self._on_one_core(each, None) for block in blocks for each in block.ops]
            seconds = sum(part.seconds for part in parts)
            return Cost(seconds, moved_bytes(op), flops(op), Source.ROOFLINE)
        moved = sum(value_bytes(value) for value in (*op.operands, *op.results))
        return self._by_roofline(op, moved, flops(op))

    def _declared(self, op: OpaqueOp, declared: float | Mapping[str, float]) -> Cost:
        """Other resources than seconds stay apart: they are never added up to a time."""
        if not isinstance(declared, Mapping):
            return Cost(declared, moved_bytes(op), flops(op), Source.DECLARED)
        bytes, computed = int(declared.get("bytes", moved_bytes(op))), int(declared.get("flops", 0))
        seconds = declared.get("seconds")
        if seconds is None:
            return self._by_roofline(op, bytes, computed, declared)
        return Cost(seconds, bytes, computed, Source.DECLARED, declared)

    def _by_roofline(
        self, op: Operation, bytes: int, flops: int, declared: Mapping[str, float] | None = None
    ) -> Cost:
        seconds = self.roofline_seconds(bytes, flops, computed_type(op))
        return Cost(seconds, bytes, flops, Source.ROOFLINE, declared or {})


_FACTS = {"flops": "flops", "bytes": "memory_bandwidth"}
"""Facts of machines by resource."""

_CHIP_RESOURCES = {"flops": "vector", "bytes": "load"}
"""What stands for a resource on backends that are programmed by instructions."""


def _resource(backend: BackendDescription, resource: str) -> str:
    known = {unit.resource for unit in backend.units}
    return resource if resource in known else _CHIP_RESOURCES[resource]


def measured_seconds(op: Operation) -> float | None:
    """Seconds of one run as `annotate-profile` noted them, None where it did not."""
    attribute = op.attributes.get(SECONDS)
    return attribute.value.data if isinstance(attribute, FloatAttr) else None


def tally(counts: Mapping[Source, int]) -> str:
    """Such as `12 declared, 3 measured, 40 predicted, 2 roofline`, without what is 0."""
    return ", ".join(f"{counts[s]} {s}" for s in Source if counts.get(s)) or "none"
