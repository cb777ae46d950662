"""Streams as a kernel family: the schedules of what a chip runs at once, for `braid tune`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.memory_graph import value_bytes
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.regions import FusedOp
from braid.lowering.npu import stream_schedule
from braid.lowering.npu.stream_group import group_module
from braid.lowering.npu.stream_schedule import STREAM_FAMILY, StreamSchedule
from braid.targets.costs.device_rates import DeviceRates
from braid.targets.kernels.kernel_family import Candidate, Kernel, KernelFamily
from braid.targets.machines.target import BackendDescription
from braid.targets.simulator.steps import UnitWork, step_seconds, steps_of, transfers_of

STREAM_VERSION = 1
"""Raised when the same schedule makes another stream."""


@dataclass(frozen=True)
class StreamKernel(Kernel):
    """A stream to be made from `@main` of `module`, which is on tensors, by `schedule`."""

    schedule: StreamSchedule = stream_schedule.DEFAULT


@dataclass(frozen=True)
class StreamCandidate(Candidate[StreamSchedule]):
    """The streams that `chip` could run of a group of `stream_group`."""

    group: FusedOp
    chip: BackendDescription

    @property
    def layouts(self) -> Sequence[LayoutChoice]:
        """Row-major: a chip addresses tiles directly in tensors."""
        return (stored_choice(self.group),)

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the time of the busiest unit if nothing is loaded twice and no unit waits."""
        rates, busy = DeviceRates(self.chip), dict[int, float]()
        transfers = transfers_of(self.chip)
        steps = [step for op in self.group.body.block.ops for step in steps_of(op, self.chip)]
        if transfers is not None:
            read, made = (sum(map(value_bytes, v)) for v in (self.group.inputs, self.group.outputs))
            steps += [UnitWork(transfers.load, read), UnitWork(transfers.store, made)]
        for step in steps:
            busy[step.unit] = busy.get(step.unit, 0.0) + step_seconds(step, rates)
        return max(busy.values(), default=0.0)

    def space(self, level: int) -> Iterator[StreamSchedule]:
        """See `stream_schedule.LEVELS`."""
        return stream_schedule.space(level)

    def supports_schedule(self, schedule: StreamSchedule) -> bool:
        """Take any schedule with sensible values."""
        return schedule.is_sensible

    def emit(self, symbol: str, schedule: StreamSchedule) -> StreamKernel:
        """Return the parts of the stream."""
        return StreamKernel(symbol, group_module(self.group), schedule=schedule)


@dataclass(frozen=True)
class StreamFamily(KernelFamily):
    """The family of the streams of `chip`."""

    chip: BackendDescription
    name: str = STREAM_FAMILY
    version: int = STREAM_VERSION

    def match(self, group: FusedOp) -> StreamCandidate:
        """Match every group of `stream_group`."""
        return StreamCandidate(group, self.chip)
