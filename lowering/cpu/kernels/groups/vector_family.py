"""What the kernel families for the vector unit of a CPU have in common."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.emit.machine import VectorUnit, host_vector_unit
from braid.targets.kernels.kernel_family import Kernel, KernelRequest, Schedule


@dataclass(frozen=True)
class VectorFamily(ABC):
    """A `KernelFamily` that takes every group it has layouts for and has nothing to choose.

    Subclasses add the field `name`, and schedules where there are some.
    """

    unit: VectorUnit = field(default_factory=host_vector_unit)

    @abstractmethod
    def layouts(self, group: FusedOp) -> Sequence[LayoutChoice]:
        """As in `KernelFamily`; none for a group that the family does not take."""

    @abstractmethod
    def seconds(self, group: FusedOp, choice: LayoutChoice) -> float:
        """As in `KernelFamily`."""

    @abstractmethod
    def emit(self, request: KernelRequest) -> Kernel:
        """As in `KernelFamily`."""

    def accepts(self, group: FusedOp) -> bool:
        """Whether there are layouts for the group."""
        return bool(self.layouts(group))

    def schedules(self, group: FusedOp) -> Iterator[Schedule]:
        """The default one alone."""
        yield self.default_schedule(group)

    def default_schedule(self, group: FusedOp) -> Schedule:
        """Nothing to choose."""
        return {}

    def schedule_of(self, request: KernelRequest) -> Schedule:
        """The schedule of the request, with defaults for what it does not name."""
        return {**self.default_schedule(request.group), **request.schedule}
