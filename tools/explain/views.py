"""Define the parts of pages other than kernels and the graph, as data, independent of IR and
HTML."""

from collections.abc import Mapping
from dataclasses import dataclass

Row = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Columns and rows of text; numbers are written with their units."""

    columns: Row
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Bar:
    """Something that occupies lane number `lane` from `start` to `end`."""

    lane: int
    start: float
    end: float
    label: str
    colour: int = 0


@dataclass(frozen=True)
class TimelineView:
    """Lanes over time (a Gantt chart); `unit` is that of all times.

    `legend` gives the meaning of colours, by their numbers.
    """

    title: str
    summary: str
    lanes: tuple[str, ...]
    bars: tuple[Bar, ...]
    unit: str
    table: Table | None = None
    legend: tuple[str, ...] = ()


@dataclass(frozen=True)
class SizePoint:
    """A size of one symbol while others have likely values, and the seconds of one run."""

    symbol: str
    size: int
    seconds: float


@dataclass(frozen=True)
class SizedKernel:
    """A kernel with its predicted seconds at each point."""

    name: str
    kind: str
    device: str
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class SizesView:
    """A model that is compiled once for all sizes, at several of them.

    `likely` are the sizes at which its decisions were made.
    """

    likely: Mapping[str, int]
    points: tuple[SizePoint, ...]
    kernels: tuple[SizedKernel, ...]


@dataclass(frozen=True)
class Block:
    """Memory [offset, offset + size) in bytes, taken from step `first` to step `last`.

    `readers` are the steps that read it; `why` gives the reason of its lifetime, and the saving by
    recomputing it.
    """

    label: str
    first: int
    last: int
    offset: int
    size: int
    type: str = ""
    readers: tuple[int, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class MemoryPlan:
    """The blocks of an arena over the steps of a program."""

    label: str
    steps: tuple[str, ...]
    blocks: tuple[Block, ...]
    arena: int


@dataclass(frozen=True)
class MemoryView:
    """Plans side by side, such as before and after rematerialization."""

    title: str
    summary: str
    plans: tuple[MemoryPlan, ...]
    table: Table | None = None
