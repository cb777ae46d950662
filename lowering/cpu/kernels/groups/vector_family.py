"""Define what the kernel families for the vector unit of a CPU have in common."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from xdsl.ir import SSAValue

from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import element_type_of, extents_of, shape_of
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.groups.traffic import moving_seconds, read_shares, stored_bytes
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.targets.kernels.kernel_family import Candidate, KernelFamily, S
from braid.targets.kernels.schedules import Schedule
from braid.targets.machines.machine import Machine


@dataclass(frozen=True)
class VectorFamily(KernelFamily):
    """A family for `machine`. Subclasses add the fields `name` and `version`."""

    machine: Machine

    @cached_property
    def unit(self) -> VectorUnit:
        """The vector unit that kernels are emitted for."""
        return VectorUnit.of(self.machine)

    @cached_property
    def _units(self) -> Mapping[int, VectorUnit]:
        return {bytes: self.unit.for_elements(bytes) for bytes in (4, 8)}

    def unit_of(self, value: SSAValue) -> VectorUnit:
        """Return the unit for vectors of a tensor's elements: of 64 bits, or of at most 32."""
        return self._units[max(4, bytes_of(element_type_of(value)))]


@dataclass(frozen=True)
class SizedFamily(VectorFamily):
    """A family whose candidates take extents as they are given, numbers or sizes."""

    @abstractmethod
    def match(self, group: FusedOp, extents_of: ExtentsOf = shape_of) -> Candidate[Any] | None:
        """See the base class; extents are those of `extents_of`."""

    def match_open(self, group: FusedOp) -> Candidate[Any] | None:
        """See the base class."""
        return self.match(group, extents_of)


@dataclass(frozen=True, eq=False)
class ScheduledCandidate(Candidate[S]):
    """A candidate on a vector unit, with schedules of class `S`.

    Subclasses add what their families matched.
    """

    group: FusedOp
    unit: VectorUnit

    @property
    def layouts(self) -> Sequence[LayoutChoice]:
        """See `Candidate`."""
        return self._offered

    @cached_property
    def _offered(self) -> Sequence[LayoutChoice]:
        return self.choices()

    @abstractmethod
    def choices(self) -> Sequence[LayoutChoice]:
        """Return the `layouts`, asked for once."""

    def moved_bytes(self, choice: LayoutChoice) -> int:
        """Return the bytes of operands and results that a run moves, as `stored_bytes`
        counts them.
        """
        return stored_bytes(self.group, choice, self._read_shares)

    def moving_seconds(self, choice: LayoutChoice) -> float:
        """Return the seconds that these bytes take alone."""
        return moving_seconds(self.moved_bytes(choice), self.unit)

    @cached_property
    def _read_shares(self) -> Sequence[float]:
        return read_shares(self.group)


@dataclass(frozen=True, eq=False)
class VectorCandidate(ScheduledCandidate[Schedule]):
    """A candidate on a vector unit that has nothing to choose."""
