"""Define what pages show beside kernels and the graph, as data; nothing here knows IR or HTML."""

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
    """Lanes over time (a Gantt chart); `unit` is that of all times."""

    title: str
    summary: str
    lanes: tuple[str, ...]
    bars: tuple[Bar, ...]
    unit: str
    table: Table | None = None


@dataclass(frozen=True)
class Block:
    """Memory [offset, offset + size) in bytes, taken from step `first` to step `last`.

    `readers` are the steps that read it; `why` says why it lives so long, and what it would save to
    compute it again.
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
