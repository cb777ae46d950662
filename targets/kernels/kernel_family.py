"""What decisions and code generators ask of a kernel family, with defaults for what is optional.

Layout selection, fusion, tuning and lowering all ask families; none of them knows a family by
name. A family matches groups (`braid.fused` regions, one kernel each), and what it found answers
all further questions about the group. Those of other packages need not inherit from these classes:
see `family_answers.py`.
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
"""The name of the family that takes nearly every group: the generic lowering."""

LIBRARIES = ("onednn", "openblas")
"""The names of the families whose kernels call libraries of vendors, the preferred one first."""

S = TypeVar("S", bound=Schedule)
"""The class of a candidate's schedules."""

LEVELS = 3
"""How fine schedule spaces get: levels 0 to 2."""

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

    Where dims are open, `grid` and `scratch_bytes` may be sizes, and `index` arguments follow
    `end`: the values of `sizes`.

    `in_place` lists which result may be written into the buffer of which operand: every element
    of the operand is read, for the last time, before the element of the result in its place is
    written, whatever the grid's iterations run on. Those arguments are not `noalias`.

    `overlap` is the number of an operand that may begin where the only result does, and be
    smaller; those two are not `noalias` either. Before each of the iterations `barriers`, in
    ascending order, all earlier ones have to be finished; all calls of such a kernel share one
    scratch buffer.

    `libraries` are the names of shared libraries that it calls, which are loaded before it runs.
    `features` are those of a CPU whose instructions it asks for, beside those that LLVM selects.
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
    """An operand that may begin where the result does, and what kernel scratch that takes."""

    operand: int
    scratch_bytes: int


class Candidate(ABC, Generic[S]):
    """A way to make the kernel of one group, which its family has matched.

    It holds as long as the group stays as it is, and is asked for nothing else. What is not
    overridden takes no strides, has nothing to choose and writes over no operand.
    """

    @property
    @abstractmethod
    def layouts(self) -> Sequence[LayoutChoice]:
        """The layouts in which the family takes the group, the preferred choice first.

        Those in the types of the group need not be decided yet.
        """

    def offers(self, choice: LayoutChoice) -> bool:
        """Return whether `layouts` has `choice`.

        Layouts are listed once, where they are chosen; later passes ask about those that were.
        """
        return choice in self.layouts

    def takes_strides(self, choice: LayoutChoice) -> bool:
        """Return whether `emit` can address the tensors with the strides in `choice`."""
        return False

    @abstractmethod
    def seconds(self, choice: LayoutChoice) -> float:
        """Return the predicted time of one run on one core in these layouts."""

    def space(self, level: int) -> Iterator[S]:
        """Yield the schedules of one level, those of coarser levels left out; for the group's
        types.

        Level 0 has few, of which the first is the default: a good one without measuring. Levels
        from `LEVELS` on have none, nor do others that would add nothing. All are of one class.
        """
        if level == 0:
            yield cast(S, Schedule())

    def takes(self, schedule: S) -> bool:
        """Return whether `emit` makes the kernel by this schedule though the space has it not."""
        return False

    @abstractmethod
    def emit(self, symbol: str, schedule: S) -> Kernel:
        """Return the kernel under this symbol, for the layouts and strides in the types of the
        group.
        """

    def makes(self, choice: LayoutChoice) -> bool:
        """Return whether `emit` makes a kernel in these layouts, for a group with open dims.

        They are those of a candidate for the same group at likely sizes, where what has an extent
        of 1 may be stored in others than `layouts` has.
        """
        return self.offers(choice)

    def overlap(self) -> Overlap | None:
        """Return the operand over which `emit` can write the result, for the types and strides.

        `emit` does so where the group says `braid.overlap`, and declares it on the kernel.
        """
        return None


class OpenCandidate(Protocol):
    """A way to make the kernel of one group with open dims, at all sizes.

    What is decided, decides the candidate of the same family for the group at likely sizes.
    """

    def makes(self, choice: LayoutChoice) -> bool:
        """See `Candidate`."""
        ...

    def emit(self, symbol: str, schedule: Any) -> Kernel:
        """See `Candidate.emit`; the schedule was chosen for likely sizes."""
        ...


class KernelFamily(ABC):
    """A parameterized emitter of kernels for one kind of group; made with the machine it is for.

    `name` is stable, as in tuning records; `version` is raised when the family emits other code
    for some group and schedule.
    """

    name: str
    version: int

    is_approximate: ClassVar[bool] = False
    """Whether algorithms differ from the exact results by more than another order of sums: they
    are left out where `numerics` are strict."""

    anchors: ClassVar[tuple[type[Operation], ...] | None] = None
    """Classes of ops, or their bases, of which a group has one if the family is to match it."""

    @abstractmethod
    def match(self, group: FusedOp) -> Candidate[Any] | None:
        """Return how the family makes `group`; None where it cannot. Asked for every group: be
        quick.
        """

    def match_open(self, group: FusedOp) -> OpenCandidate | None:
        """Return how the family makes `group`, with open dims whose sizes its types say; None: it
        cannot.

        Asked for groups that it takes at likely sizes.
        """
        return None

    def prefers_parts(self, group: FusedOp) -> bool:
        """Return whether kernels for the parts of `group` take less time, so that it is none."""
        return False

    def reorder_seconds(self, tensor: AnyTensor, source: Layout, target: Layout) -> float | None:
        """Return what the candidate for a group with this reorder alone predicts; None: none.

        Every reader of a tensor asks about the reorders between all its layouts, most of which no
        group ever has.
        """
        return None


Extensible = Candidate
"""The name by which packages know a candidate that `takes` schedules beside its space."""
