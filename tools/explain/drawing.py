"""From graphs to rectangles and lines with positions, control flow drawn as boxes in boxes."""

from dataclasses import dataclass, field
from itertools import accumulate

from braid.tools.explain.layered_layout import Point, Size, place
from braid.tools.explain.views import Graph, Node

CHARACTER = 7.3
"""Pixels of a character in the page's font at its size."""
BOX_HEIGHT = 40.0
MARGIN = 14.0
TITLE = 22.0
LONGEST = 34
"""Characters of a label that are shown."""


@dataclass(frozen=True)
class Box:
    """A node at its place; boxes with regions come before those that are inside of them."""

    x: float
    y: float
    width: float
    height: float
    node: Node


@dataclass(frozen=True)
class Frame:
    """The outline of a region."""

    x: float
    y: float
    width: float
    height: float
    label: str


@dataclass(frozen=True)
class Line:
    """An edge through its corners."""

    points: list[Point]
    label: str
    colour: str


@dataclass
class Drawing:
    """A whole graph, in pixels."""

    width: float = 0.0
    height: float = 0.0
    boxes: list[Box] = field(default_factory=list[Box])
    frames: list[Frame] = field(default_factory=list[Frame])
    lines: list[Line] = field(default_factory=list[Line])

    def add(self, other: "Drawing", x: float, y: float) -> None:
        """Put everything of `other` here, moved by (x, y)."""
        for box in other.boxes:
            self.boxes.append(Box(box.x + x, box.y + y, box.width, box.height, box.node))
        for f in other.frames:
            self.frames.append(Frame(f.x + x, f.y + y, f.width, f.height, f.label))
        for line in other.lines:
            points = [(px + x, py + y) for px, py in line.points]
            self.lines.append(Line(points, line.label, line.colour))


def draw(graph: Graph) -> Drawing:
    """Place a graph and everything inside its nodes; raises ValueError if it has a cycle."""
    inner = [[draw(region.graph) for region in node.regions] for node in graph.nodes]
    sizes = [_size(node, parts) for node, parts in zip(graph.nodes, inner, strict=True)]
    placed = place(sizes, [(edge.source, edge.target) for edge in graph.edges])
    drawing = Drawing(*placed.size)
    for edge, points in zip(graph.edges, placed.edges, strict=True):
        drawing.lines.append(Line(points, edge.label, edge.colour))
    for node, parts, size, (x, y) in zip(graph.nodes, inner, sizes, placed.nodes, strict=True):
        left, top = x - size[0] / 2, y - size[1] / 2
        drawing.boxes.append(Box(left, top, *size, node))
        starts = accumulate((_frame(p)[0] + MARGIN for p in parts), initial=left + MARGIN)
        for region, part, start in zip(node.regions, parts, starts, strict=False):
            width, height = _frame(part)
            drawing.frames.append(Frame(start, top + BOX_HEIGHT, width, height, region.label))
            drawing.add(part, start + MARGIN, top + BOX_HEIGHT + TITLE)
    return drawing


def _frame(part: Drawing) -> Size:
    return max(part.width, 8 * CHARACTER) + 2 * MARGIN, part.height + TITLE + MARGIN


def _size(node: Node, parts: list[Drawing]) -> Size:
    letters = max(min(len(node.label), LONGEST), min(len(node.note), LONGEST))
    width, height = letters * CHARACTER + 2 * MARGIN, BOX_HEIGHT
    if parts:
        frames = [_frame(part) for part in parts]
        width = max(width, sum(w for w, _ in frames) + (len(parts) + 1) * MARGIN)
        height += max(h for _, h in frames) + MARGIN
    return width, height
