"""The protocol of a kernel family, with defaults for its optional methods.

Layout selection, fusion, tuning and lowering all ask families; none of them knows a family by
name. A family matches groups (`braid.fused` regions, each of which becomes one kernel) and returns
a candidate, which answers all further questions about the group. Families of other packages need
not inherit from these classes: see `family_answers.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.support.sizes.expression import Extent, Size
from braid.targets.kernels.schedules import Schedule

GENERIC = "generic"
"""The name of the family that matches nearly every group: the generic lowering."""

LIBRARIES = ("onednn", "openblas")
"""The names of the families whose kernels call libraries of vendors, the preferred one first."""

S = TypeVar("S", bound=Schedule)
"""The class of a candidate's schedules."""

LEVELS = 3
"""The number of levels of schedule spaces, from coarse (0) to fine (2)."""

InPlace = tuple[int, int]
"""The numbers of an operand and of a result that may share one buffer."""


@dataclass(frozen=True)
class Kernel:
    """One kernel in upstream dialects, ready for code generation.

    `module` holds one public function `symbol` on memrefs of the physical shapes, in
    destination-passing style: the group's operands, its results, a scratch buffer
    `memref<{scratch_bytes}xi8>` if `scratch_bytes` is not 0, and two `index` arguments
    `begin, end`: the call computes iterations [begin, end) of the `grid` independent iterations
    of the kernel. Calls that run at the same time have scratch buffers of their own, whose bytes
    are arbitrary at first; `scratch_bytes` of a kernel with a grid is a multiple of 64.

    Where dims are open, `grid` and `scratch_bytes` may be sizes, and `index` arguments follow
    `end`: the values of `sizes`.

    `in_place` lists which result may be written into the buffer of which operand: every element
    of the operand is read, for the last time, before the element of the result in its place is
    written, whatever the grid's iterations run on. Those arguments are not `noalias`.

    `overlap` is the number of an operand that may begin where the only result does, and be
    smaller; those two are not `noalias` either. Before each of the iterations `barriers`, in
    ascending order, all earlier ones have to be finished; all calls of such a kernel share one
    scratch buffer.

    `libraries` names the shared libraries that it calls, which are loaded before it runs.
    `features` are the CPU features whose instructions it uses explicitly, in addition to those that
    LLVM selects.
    """

    symbol: str
    module: ModuleOp
    grid: Extent = 1
    scratch_bytes: Extent = 0
    in_place: tuple[InPlace, ...] = ()
    overlap: int | None = None
    barriers: tuple[int, ...] = ()
    libraries: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    sizes: tuple[Size, ...] = ()


@dataclass(frozen=True)
class Overlap:
    """An operand that may begin where the result does, and the scratch memory that this needs."""

    operand: int
    scratch_bytes: int


class Candidate(ABC, Generic[S]):
    """A way to compile one group, which its family has matched, to a kernel.

    It is valid as long as the group is unchanged. The defaults support no strides, have a single
    schedule, and write over no operand.
    """

    @property
    @abstractmethod
    def layouts(self) -> Sequence[LayoutChoice]:
        """The layouts in which the family supports the group, the preferred choice first.

        The layouts in the types of the group need not be decided yet.
        """

    def supports_layout(self, choice: LayoutChoice) -> bool:
        """Return whether `choice` is one of `layouts`.

        Layout selection lists all layouts; later passes only ask about the chosen ones.
        """
        return choice in self.layouts

    def supports_strides(self, choice: LayoutChoice) -> bool:
        """Return whether `emit` can address the tensors with the strides in `choice`."""
        return False

    @abstractmethod
    def seconds(self, choice: LayoutChoice) -> float:
        """Return the predicted time of one run on one core in these layouts."""

    def space(self, level: int) -> Iterator[S]:
        """Yield the schedules of one level, without those of coarser levels, for the group's types.

        Level 0 has few; its first one is the default schedule, which is good without measuring.
        Levels from `LEVELS` on are empty, as are others that would add nothing. All schedules are
        of one class.
        """
        if level == 0:
            yield cast(S, Schedule())

    def supports_schedule(self, schedule: S) -> bool:
        """Return whether `emit` accepts this schedule, which the space need not contain."""
        return False

    @abstractmethod
    def emit(self, symbol: str, schedule: S) -> Kernel:
        """Emit the kernel under this symbol, for the layouts and strides in the group's types."""

    def supports_open_layout(self, choice: LayoutChoice) -> bool:
        """Return whether `emit` supports these layouts for a group with open dims.

        They are those of a candidate for the same group at likely sizes. A tensor whose extents are
        1 at those sizes may have a layout that is not among `layouts`.
        """
        return self.supports_layout(choice)

    def overlap(self) -> Overlap | None:
        """Return the operand over which `emit` can write the result, for the types and strides.

        `emit` does so if the group has the attribute `braid.overlap`, and declares it on the
        kernel.
        """
        return None


class OpenCandidate(Protocol):
    """A way to compile one group with open dims to a kernel, for all sizes.

    Decisions are made by the candidate of the same family for the group at likely sizes.
    """

    def supports_open_layout(self, choice: LayoutChoice) -> bool:
        """See `Candidate`."""
        ...

    def emit(self, symbol: str, schedule: Any) -> Kernel:
        """See `Candidate.emit`; the schedule was chosen for likely sizes."""
        ...


class KernelFamily(ABC):
    """A parameterized emitter of kernels for one kind of group and one machine.

    `name` stands in tuning records and must not change; increase `version` when the family emits
    other code for some group and schedule.
    """

    name: str
    version: int

    is_approximate: ClassVar[bool] = False
    """True where results differ from exact ones by more than the order of sums; such families are
    left out where `numerics` are strict."""

    anchors: ClassVar[tuple[type[Operation], ...] | None] = None
    """Classes of ops, or their bases; the family is only asked about groups with one of them."""

    @abstractmethod
    def match(self, group: FusedOp) -> Candidate[Any] | None:
        """Return the candidate for `group`, or None. It is called for every group: be quick."""

    def match_open(self, group: FusedOp) -> OpenCandidate | None:
        """Return the candidate for `group`, whose types have the sizes of open dims, or None.

        It is called for groups that the family matches at likely sizes.
        """
        return None

    def rejects_fusion(self, group: FusedOp) -> bool:
        """Return whether separate kernels for the ops of `group` are faster than one for it."""
        return False

    def reorder_seconds(self, tensor: AnyTensor, source: Layout, target: Layout) -> float | None:
        """Return the predicted seconds of a group with this reorder alone; None without a
        candidate.

        Every reader of a tensor asks about the reorders between all its layouts, most of which
        never occur in a group.
        """
        return None


Extensible = Candidate
"""The earlier name of a candidate that supports schedules outside of its space."""
