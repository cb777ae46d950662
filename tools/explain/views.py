"""What a page can show, as data: each decision of the compiler fills one of these views.

Nothing here knows IR or HTML. Colours are keys; a view's legend gives each key its words.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

Row = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Columns and rows of text; numbers are written with their units."""

    columns: Row
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Node:
    """A box of a graph; `facts` and `choices` are shown when it is pointed at."""

    label: str
    note: str = ""
    colour: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    choices: Table | None = None
    regions: tuple["Region", ...] = ()


@dataclass(frozen=True)
class Edge:
    """From node number `source` to node number `target` of the same graph."""

    source: int
    target: int
    label: str = ""
    colour: str = ""


@dataclass(frozen=True)
class Graph:
    """Nodes, and edges between them; acyclic."""

    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()


@dataclass(frozen=True)
class Region:
    """A graph inside a node: a branch, or the body of a loop."""

    label: str
    graph: Graph


@dataclass(frozen=True)
class GraphView:
    """A graph to pan, zoom and search."""

    title: str
    summary: str
    graph: Graph
    legend: Mapping[str, str] = field(default_factory=dict[str, str])


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
    """Memory [offset, offset + size) in bytes, taken from step `first` to step `last`."""

    label: str
    first: int
    last: int
    offset: int
    size: int


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


View = GraphView | TimelineView | MemoryView


@dataclass(frozen=True)
class Page:
    """One view per tab."""

    title: str
    views: tuple[View, ...]
