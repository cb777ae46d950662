"""The model's own ops as a tree of groups to open: modules by their names, repeated blocks.

Nothing here knows IR. A group never has more than `MOST` parts, so that each can be laid out at
once while somebody waits: what has more is cut into pieces, in the order of the model.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from math import ceil, sqrt

from braid.tools.explain.repeated_blocks import LEAST_TIMES, longest_stretch

MOST = 100
"""Parts of a group."""


@dataclass(frozen=True)
class GraphNode:
    """An op, input or output of the model: its stable name, kind and the types of its results.

    `path` is the control flow around it, followed by the modules in its name. `kernels` are the
    numbers of the kernels that compute it, `why` gives reasons, for example why there is none.
    """

    name: str
    kind: str
    type: str
    path: tuple[str, ...]
    kernels: tuple[int, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class GraphGroup:
    """A group of the tree; `times` is how often a block repeats. The root's parent is -1."""

    parent: int
    label: str
    kind: str
    times: int = 1


@dataclass(frozen=True)
class ModelGraph:
    """Nodes, edges by their numbers, groups, and for each node the number of its group."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[tuple[int, int], ...]
    groups: tuple[GraphGroup, ...]
    group_of: tuple[int, ...]


@dataclass
class _Tree:
    """A group while it is made: its parts are groups and numbers of nodes, in order."""

    label: str
    kind: str = "module"
    parts: "list[_Tree | int]" = field(default_factory=list["_Tree | int"])
    times: int = 1


def model_graph(nodes: Sequence[GraphNode], edges: Iterable[tuple[int, int]]) -> ModelGraph:
    """Return the graph with its groups."""
    root, edges = _Tree(""), tuple(edges)
    known: dict[tuple[str, ...], _Tree] = {(): root}
    for number, node in enumerate(nodes):
        for depth in range(len(node.path)):
            path = node.path[: depth + 1]
            if path not in known:
                known[path] = _Tree(node.path[depth])
                known[path[:-1]].parts.append(known[path])
        known[node.path].parts.append(number)
    _simplify(root)
    _join_repeated(root, nodes)
    _fold(root, nodes, edges)
    _cut(root, nodes)
    groups: list[GraphGroup] = []
    group_of = [0] * len(nodes)
    _number(root, -1, groups, group_of)
    return ModelGraph(tuple(nodes), edges, tuple(groups), tuple(group_of))


def _number(tree: _Tree, parent: int, groups: list[GraphGroup], group_of: list[int]) -> None:
    own = len(groups)
    groups.append(GraphGroup(parent, tree.label, tree.kind, tree.times))
    for part in tree.parts:
        if isinstance(part, _Tree):
            _number(part, own, groups, group_of)
        else:
            group_of[part] = own


def _simplify(tree: _Tree) -> None:
    """Start the groups of one part, which get its label."""
    for index, part in enumerate(tree.parts):
        if isinstance(part, _Tree):
            _simplify(part)
            if len(part.parts) == 1:
                (only,) = part.parts
                if isinstance(only, _Tree):
                    only.label = f"{part.label}/{only.label}"
                tree.parts[index] = only


def _join_repeated(tree: _Tree, nodes: Sequence[GraphNode]) -> None:
    """Put equal neighbours into one group, such as the twelve layers of a transformer."""
    for part in tree.parts:
        if isinstance(part, _Tree):
            _join_repeated(part, nodes)
    joined: list[_Tree | int] = []
    for _, run in groupby(tree.parts, lambda part: _signature(part, nodes)):
        parts = list(run)
        groups = [part for part in parts if isinstance(part, _Tree)]
        if len(groups) < LEAST_TIMES or len(groups) < len(parts):
            joined += parts
        elif len(groups) == len(tree.parts):
            tree.kind, tree.times = "repeated", len(groups)
            return
        else:
            label = f"{groups[0].label} … {groups[-1].label}"
            joined.append(_Tree(label, "repeated", list(groups), len(groups)))
    tree.parts = joined


def _signature(part: "_Tree | int", nodes: Sequence[GraphNode]) -> tuple[object, ...]:
    """Return the common part of equal blocks; for a single op it is its own."""
    if isinstance(part, int):
        return ("op", part)
    return ("group", *_kinds(part, nodes))


def _kinds(part: "_Tree | int", nodes: Sequence[GraphNode]) -> Iterator[object]:
    if isinstance(part, int):
        yield (nodes[part].kind, nodes[part].type)
        return
    for inner in part.parts:
        yield from _kinds(inner, nodes)


def _fold(tree: _Tree, nodes: Sequence[GraphNode], edges: Sequence[tuple[int, int]]) -> None:
    """Put blocks that repeat into groups where names say nothing, and there is too much to show."""
    for part in tree.parts:
        if isinstance(part, _Tree):
            _fold(part, nodes, edges)
    if len(tree.parts) <= MOST:
        return
    keys = [tuple(_kinds(part, nodes)) for part in tree.parts]
    tree.parts = _folded(tree.parts, keys, _crossings(tree, edges), nodes)


def _folded(
    parts: "list[_Tree | int]",
    keys: Sequence[tuple[object, ...]],
    crossings: Sequence[int],
    nodes: Sequence[GraphNode],
) -> "list[_Tree | int]":
    found = longest_stretch(keys, crossings)
    if found is None:
        return parts
    begin, period, end = found.begin, found.period, found.end
    blocks = [parts[at : at + period] for at in range(begin, end, period)]
    inner: list[_Tree | int] = [_Tree(_span(block, nodes), "piece", block) for block in blocks]
    label = _span(parts[begin:end], nodes)
    return [
        *_folded(parts[:begin], keys[:begin], crossings[:begin], nodes),
        _Tree(label, "repeated", inner, found.times),
        *_folded(parts[end:], keys[end:], crossings[end:], nodes),
    ]


def _crossings(tree: _Tree, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return the number of edges between the parts before each part, and from it on."""
    place = {node: at for at, part in enumerate(tree.parts) for node in _numbers(part)}
    change = [0] * (len(tree.parts) + 1)
    for source, target in edges:
        if source in place and target in place:
            change[min(place[source], place[target]) + 1] += 1
            change[max(place[source], place[target]) + 1] -= 1
    return list(accumulate(change))[:-1]


def _numbers(part: "_Tree | int") -> Iterator[int]:
    if isinstance(part, int):
        yield part
        return
    for inner in part.parts:
        yield from _numbers(inner)


def _cut(tree: _Tree, nodes: Sequence[GraphNode]) -> None:
    """Cut groups that have too many parts."""
    for part in tree.parts:
        if isinstance(part, _Tree):
            _cut(part, nodes)
    while len(tree.parts) > MOST:
        # Both halves of the way down are then alike.
        size = min(MOST, ceil(sqrt(len(tree.parts))))
        pieces = [tree.parts[at : at + size] for at in range(0, len(tree.parts), size)]
        tree.parts = [_Tree(_span(parts, nodes), "piece", parts) for parts in pieces]


def _span(parts: "list[_Tree | int]", nodes: Sequence[GraphNode]) -> str:
    """Return what the first and the last part are called."""
    first, last = (
        part.label if isinstance(part, _Tree) else nodes[part].name
        for part in (parts[0], parts[-1])
    )
    return f"{first.partition(' … ')[0]} … {last.rpartition(' … ')[2]}"
