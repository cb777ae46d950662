"""The protocol between decisions and code generators: what a kernel family offers.

Layout selection, fusion, tuning and lowering all ask families; none of them knows a family by
name. A family matches groups (`braid.fused` regions, one kernel each), and what it found answers
all further questions about the group.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

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

    Where dims are open, `grid` may be a size, and `index` arguments follow `end`: the values of
    `sizes`.

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
    scratch_bytes: int = 0
    in_place: tuple[InPlace, ...] = ()
    overlap: int | None = None
    barriers: tuple[int, ...] = ()
    libraries: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    sizes: tuple[Size, ...] = ()

    @property
    def iterations(self) -> int:
        """Return the grid of a kernel without open dims."""
        assert isinstance(self.grid, int), "the grid is known when sizes are"
        return self.grid


@dataclass(frozen=True)
class Overlap:
    """An operand that may begin where the result does, and what kernel scratch that takes."""

    operand: int
    scratch_bytes: int


class Candidate(Protocol[S]):
    """A way to make the kernel of one group, which its family has matched.

    It holds as long as the group stays as it is, and is asked for nothing else.
    """

    @property
    def layouts(self) -> Sequence[LayoutChoice]:
        """The layouts in which the family takes the group, the preferred choice first.

        Those in the types of the group need not be decided yet.
        """
        ...

    def takes_strides(self, choice: LayoutChoice) -> bool:
        """Whether `emit` can address the tensors of the group with the strides in `choice`."""
        ...

    def seconds(self, choice: LayoutChoice) -> float:
        """Predicted time of one run on one core in these layouts."""
        ...

    def space(self, level: int) -> Iterator[S]:
        """The schedules of one level, those of coarser levels left out; for the group's types.

        Level 0 has few, of which the first is the default: a good one without measuring. Levels
        from `LEVELS` on have none, nor do others that would add nothing. All are of one class.
        """
        ...

    def emit(self, symbol: str, schedule: S) -> Kernel:
        """The kernel under this symbol, for the layouts and strides in the types of the group."""
        ...

    def overlap(self) -> Overlap | None:
        """The operand over which `emit` can write the result, for the types and strides.

        `emit` does so where the group says `braid.overlap`, and declares it on the kernel.
        """
        ...


@runtime_checkable
class Extensible(Protocol):
    """A `Candidate` may also be this: it makes kernels by schedules beside those of its space."""

    def takes(self, schedule: Any) -> bool:
        """Whether `emit` makes the kernel by this schedule, for the types of the group."""
        ...


@runtime_checkable
class Selective(Protocol):
    """A `Candidate` may also be this: it knows about one choice without listing its `layouts`.

    Layouts are listed once, where they are chosen; later passes ask about those that were.
    """

    def offers(self, choice: LayoutChoice) -> bool:
        """Whether `layouts` has `choice`."""
        ...


class KernelFamily(Protocol):
    """A parameterized emitter of kernels for one kind of group; made with the machine it is for.

    One whose algorithms differ from the exact results by more than another order of sums has an
    attribute `is_approximate`: `numerics=strict` leaves it out.
    """

    @property
    def name(self) -> str:
        """Stable name, as in tuning records."""
        ...

    @property
    def version(self) -> int:
        """Of the emitter: raised when it emits other code for some group and schedule."""
        ...

    def match(self, group: FusedOp) -> Candidate[Any] | None:
        """How the family makes `group`; None where it cannot. Asked for every group: be quick."""
        ...


@runtime_checkable
class Reordering(Protocol):
    """A `KernelFamily` may also be this: it makes reorders, and predicts them without a group.

    Every reader of a tensor asks about the reorders between all its layouts, most of which no
    group ever has.
    """

    def reorder_seconds(self, tensor: AnyTensor, source: Layout, target: Layout) -> float | None:
        """What `seconds` of its candidate for a group with this reorder alone says; None: none."""
        ...


def is_approximate(family: KernelFamily) -> bool:
    """Whether the algorithms of `family` are left out where `numerics` are strict."""
    return bool(getattr(family, "is_approximate", False))


@runtime_checkable
class Anchored(Protocol):
    """A `KernelFamily` may also be this: it matches groups alone that have an op of some kinds."""

    @property
    def anchors(self) -> tuple[type[Operation], ...]:
        """Classes of these ops, or bases of theirs; other groups are not matched."""
        ...


@runtime_checkable
class Choosy(Protocol):
    """A `KernelFamily` may also be this: some groups it makes take longer than their parts."""

    def prefers_parts(self, group: FusedOp) -> bool:
        """Whether kernels for the parts of `group` take less time: it does not become one."""
        ...
