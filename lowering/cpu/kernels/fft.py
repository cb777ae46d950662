"""Fourier transforms, by the steps that are predicted to be the fastest for their length.

A long signal is processed in vectors of its own positions. For short signals, and along dims other
than the last one, each lane has a signal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from braid.analysis.nests.fourier import FourierNest, fourier_nest
from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.fourier import FftOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.fourier.kernel import FourierKernel
from braid.lowering.cpu.kernels.fourier.plan import (
    MOST_RADIX,
    Vectors,
    least_row,
    radices_for,
    turning_cycles,
)
from braid.lowering.cpu.kernels.groups.vector_family import ScheduledCandidate, SizedFamily
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.targets.kernels.flexible_layouts import flexible_choices
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule

_RADICES = (MOST_RADIX, 8, 4)
"""Bounds on radices that are worth measuring: what spills depends on the machine."""


@dataclass(frozen=True)
class FourierSchedule(Schedule):
    """Whether a vector has places of one signal or one of several, and a bound on the radices."""

    is_row: bool
    most_radix: int


@dataclass(frozen=True)
class FftFamily(SizedFamily):
    """Transforms along one dim alone in their group, row-major, of any number of signals."""

    name: str = "fft"
    version: int = 1
    anchors: ClassVar = (FftOp,)

    def match(self, group: FusedOp, extents_of: ExtentsOf = shape_of) -> "Fft | None":
        """Match transforms of any length."""
        nest = fourier_nest(group, extents_of)
        return None if nest is None else Fft(group, self.unit_of(group.inputs[0]), nest)


@dataclass(frozen=True, eq=False)
class Fft(ScheduledCandidate[FourierSchedule]):
    """The transforms of a group."""

    nest: FourierNest

    def choices(self) -> Sequence[LayoutChoice]:
        """Return row-major layouts."""
        return flexible_choices(self.group)[:1]

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the larger of memory traffic and the cycles of all steps."""
        cycles = min(self._cycles(is_row) for is_row in self._orders)
        return max(cycles / self.unit.fma_rate, self.moving_seconds(choice))

    def space(self, level: int) -> Iterator[FourierSchedule]:
        """Yield the fastest steps, then variants with the other order of vectors and with lower
        radices.

        Of schedules with the same steps only one is listed.
        """
        found: dict[tuple[bool, tuple[int, ...]], FourierSchedule] = {}
        for is_row in sorted(self._orders, key=self._cycles):
            for most in _RADICES:
                schedule = FourierSchedule(is_row, most)
                found.setdefault((is_row, self._radices(schedule)), schedule)
        best, *others = found.values()
        yield from ([best], others)[level] if level < 2 else ()

    def supports_schedule(self, schedule: FourierSchedule) -> bool:
        """Support all bounds on radices, in orders that there is code for."""
        return schedule.is_row in self._orders and 2 <= schedule.most_radix <= MOST_RADIX

    def emit(self, symbol: str, schedule: FourierSchedule) -> Kernel:
        """Emit one signal, or a vector of them, in each iteration."""
        kernel = FourierKernel(
            self.nest,
            element_type_of(self.group.inputs[0]),
            self.unit.lanes,
            self._radices(schedule),
            is_row=schedule.is_row,
        )
        line = 64 // self.unit.element_bytes
        scratch = -(-kernel.scratch_numbers // line) * 64
        made = grid_kernel(
            self.group, symbol, self.unit, kernel.grid, kernel.iteration, scratch_bytes=scratch
        )
        made.module.body.block.add_op(kernel.tables.declared(self.unit.lanes))
        return made

    @property
    def _orders(self) -> tuple[bool, ...]:
        """Return the orders of vectors, which a schedule names by `is_row`."""
        is_long = self.nest.signal.core_length >= least_row(self.unit.lanes)
        return (True, False) if self.nest.lines.inner == 1 and is_long else (False,)

    def _radices(self, schedule: FourierSchedule) -> tuple[int, ...]:
        vectors = self._vectors(schedule.is_row)
        return radices_for(self.nest.signal.core_length, vectors, schedule.most_radix)[1]

    def _vectors(self, is_row: bool) -> Vectors:
        return Vectors(self.unit, is_row)

    def _cycles(self, is_row: bool) -> float:
        """Return the cycles of all signals, at likely sizes."""
        (outer, _, inner), lanes = self.nest.lines.known, self.unit.lanes
        signal = self.nest.signal
        cycles, _ = radices_for(signal.core_length, self._vectors(is_row))
        if is_row:
            return outer * cycles
        if inner > 1:
            return outer * -(-inner // lanes) * cycles
        blocks = -(-signal.read_numbers // lanes) - (-signal.written_numbers // lanes)
        return -(-outer // lanes) * (cycles + blocks * turning_cycles(self.unit))
