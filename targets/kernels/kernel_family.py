"""The protocol between decisions and code generators: what a kernel family offers.

Layout selection, fusion, tuning and lowering all ask families; none of them knows a family by
name. A family takes groups (`braid.fused` regions, one kernel each).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from xdsl.dialects.builtin import ModuleOp

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.regions import FusedOp

Schedule = Mapping[str, int]
"""Tile sizes and unroll factors by name; what the names mean is the family's affair."""


InPlace = tuple[int, int]
"""Numbers of an operand and of a result that may be one buffer."""


@dataclass(frozen=True)
class Kernel:
    """One kernel in upstream dialects, ready for code generation.

    `module` holds one public function `symbol` on memrefs of the physical shapes, in
    destination-passing style: the group's operands, its results, a scratch buffer
    `memref<{scratch_bytes}xi8>` if `scratch_bytes` is not 0, and two `index` arguments
    `begin, end`: the call computes iterations [begin, end) of the `grid` independent iterations
    of the kernel. Calls that run at the same time have scratch buffers of their own, whose bytes
    are arbitrary at first; `scratch_bytes` of a kernel with a grid is a multiple of 64.

    `in_place` lists which result may be written into the buffer of which operand: every element
    of the operand is read, for the last time, before the element of the result in its place is
    written, whatever the grid's iterations run on. Those arguments are not `noalias`.

    `overlap` is the number of an operand that may begin where the only result does, and be
    smaller; those two are not `noalias` either. Before each of the iterations `barriers`, in
    ascending order, all earlier ones have to be finished; all calls of such a kernel share one
    scratch buffer.
    """

    symbol: str
    module: ModuleOp
    grid: int = 1
    scratch_bytes: int = 0
    in_place: tuple[InPlace, ...] = ()
    overlap: int | None = None
    barriers: tuple[int, ...] = ()


@dataclass(frozen=True)
class KernelRequest:
    """A group with its layouts in the types, and the schedule to emit it with."""

    group: FusedOp
    symbol: str
    schedule: Schedule = field(default_factory=dict[str, int])


@runtime_checkable
class StridedFamily(Protocol):
    """What a family offers in addition if it takes tensors inside the memory of larger ones."""

    def takes_strides(self, group: FusedOp, choice: LayoutChoice) -> bool:
        """Whether `emit` can address the tensors of `group` with the strides in `choice`."""
        ...


def takes_strides(family: object, group: FusedOp, choice: LayoutChoice) -> bool:
    """Whether `family` can address the tensors of `group` as `choice` says they are stored."""
    if all(layout.strides is None for layout in (*choice.operands, *choice.results)):
        return True
    return isinstance(family, StridedFamily) and family.takes_strides(group, choice)


@dataclass(frozen=True)
class Overlap:
    """An operand that may begin where the result does, and what kernel scratch that takes."""

    operand: int
    scratch_bytes: int


@runtime_checkable
class OverlappingFamily(Protocol):
    """What a family offers in addition if it can write over operands smaller than the result."""

    def overlap(self, group: FusedOp) -> Overlap | None:
        """The operand over which `emit` can write the result, for the types and strides of `group`.

        `emit` does so where the group says `braid.overlap`, and declares it on the kernel.
        """
        ...


class KernelFamily(Protocol):
    """A parameterized emitter of kernels for one kind of group on one backend."""

    @property
    def name(self) -> str:
        """Stable name, as in tuning records."""
        ...

    def accepts(self, group: FusedOp) -> bool:
        """Whether the family can compute `group` in at least one choice of layouts."""
        ...

    def layouts(self, group: FusedOp) -> Sequence[LayoutChoice]:
        """The layouts in which the family takes `group`, the preferred choice first.

        The types of `group` may carry any layouts; they are not looked at.
        """
        ...

    def schedules(self, group: FusedOp) -> Iterator[Schedule]:
        """The schedule space for the layouts in the types of `group`, from coarse to fine."""
        ...

    def default_schedule(self, group: FusedOp) -> Schedule:
        """A good schedule without measuring, for the layouts in the types of `group`."""
        ...

    def seconds(self, group: FusedOp, choice: LayoutChoice) -> float:
        """Predicted time of one run on one core in these layouts."""
        ...

    def emit(self, request: KernelRequest) -> Kernel:
        """The kernel for the layouts in the types of the group."""
        ...
