"""Convolutions over windows of images: the sum of products with a weight, by tiles of channels."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from braid.analysis.nests.convolution import Convolution, convolution
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction.arithmetic import adds_bytes
from braid.lowering.cpu.kernels.windows.family import WindowCandidate
from braid.lowering.cpu.kernels.windows.lines import WindowSchedule, line_schedules
from braid.lowering.emit.math.points import has_code


def grouped_convolution(group: FusedOp, *, is_open: bool = False) -> Convolution | None:
    """Return a convolution of f32, f64 or bytes of several groups; not of bf16 into f32."""
    found = convolution(group, is_open=is_open)
    found = found or convolution(group, accumulates=True, is_open=is_open)
    if found is None or found.groups == 1 or not has_code(found.points):
        return None
    return found if found.op.accumulator is None or adds_bytes(found.op) else None


@dataclass(frozen=True, eq=False)
class ProductCandidate(WindowCandidate):
    """Such a convolution."""

    def space(self, level: int) -> Iterator[WindowSchedule]:
        """Return the neighbouring outputs and channel vectors of a tile."""
        if self.has_lines:
            yield from line_schedules(self.op.width, self.unit.lanes, level)
            return
        default = self.default_tile()
        if level == 0:
            yield default
        columns = {1: (8, 4, 2), 2: (14, 10, 6, 3, 1)}.get(level, ())
        for count in (1, 2, 4):
            for neighbours in columns:
                fits = neighbours * count <= self.unit.registers // 2
                schedule = WindowSchedule(neighbours, count)
                if fits and schedule != default:
                    yield schedule

    def supports_schedule(self, schedule: WindowSchedule) -> bool:
        """Take any tile with accumulators for half of the registers; lines have their own."""
        fits = 1 <= schedule.columns * schedule.vectors <= self.unit.registers // 2
        return fits and schedule.vectors in (1, 2, 4) and not self.has_lines

    @abstractmethod
    def default_tile(self) -> WindowSchedule:
        """Return the first one of `space`, where vectors run over channels."""

    @property
    def is_strided(self) -> bool:
        """Return whether windows of neighbouring outputs are more than a pixel apart."""
        return self.op.windows.strides[-1] > 1
