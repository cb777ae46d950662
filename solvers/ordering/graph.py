"""A dependence graph of ops numbered from 0: topological orders, and key nodes to cut it at."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Graph:
    """A directed acyclic graph: `predecessors[op]` are the ops that come before `op`."""

    predecessors: tuple[tuple[int, ...], ...]

    @staticmethod
    def from_edges(size: int, edges: Iterable[tuple[int, int]]) -> "Graph":
        """Return the graph of `size` ops with `edges` from an op to one that comes after it."""
        before: list[set[int]] = [set() for _ in range(size)]
        for source, target in edges:
            before[target].add(source)
        return Graph(tuple(tuple(sorted(ops)) for ops in before))

    def __post_init__(self) -> None:
        if len(self.topological_order) < len(self):
            raise ValueError("the graph has a cycle: expected a directed acyclic graph")

    def __len__(self) -> int:
        return len(self.predecessors)

    @cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        """The ops that come after each op, ascending."""
        after: list[list[int]] = [[] for _ in self.predecessors]
        for op, before in enumerate(self.predecessors):
            for predecessor in before:
                after[predecessor].append(op)
        return tuple(tuple(ops) for ops in after)

    @cached_property
    def topological_order(self) -> tuple[int, ...]:
        """The order of Kahn's algorithm, first in, first out."""
        missing = [len(before) for before in self.predecessors]
        order = [op for op, count in enumerate(missing) if not count]
        for op in order:
            for after in self.successors[op]:
                missing[after] -= 1
                if not missing[after]:
                    order.append(after)
        return tuple(order)

    def is_order(self, order: Sequence[int]) -> bool:
        """Return whether `order` has every op once, after its predecessors."""
        position = {op: place for place, op in enumerate(order)}
        return len(position) == len(order) == len(self) and all(
            position[before] < position[op]
            for op in position
            for before in self.predecessors[op]
            if before in position
        )

    def restrict(self, ops: Sequence[int]) -> "Graph":
        """Return the graph on `ops` alone, renumbered by their place in `ops`."""
        local = {op: place for place, op in enumerate(ops)}
        return Graph(
            tuple(
                tuple(sorted(local[before] for before in self.predecessors[op] if before in local))
                for op in ops
            )
        )


def all_orders(graph: Graph) -> Iterator[list[int]]:
    """Yield every topological order, each as a list of its own."""
    missing = [len(before) for before in graph.predecessors]
    order: list[int] = []

    def extend() -> Iterator[list[int]]:
        if len(order) == len(graph):
            yield list(order)
            return
        for op in [op for op, count in enumerate(missing) if not count]:
            missing[op] = -1
            order.append(op)
            for after in graph.successors[op]:
                missing[after] -= 1
            yield from extend()
            for after in graph.successors[op]:
                missing[after] += 1
            order.pop()
            missing[op] = 0

    return extend()


def count_orders(graph: Graph, limit: int | None = None) -> int | None:
    """Return the number of topological orders, None when there are more than `limit`.

    Counts the paths through the lattice of ideals (sets closed under predecessors) level by
    level. Every order has one prefix in each level and every prefix can be completed, so more
    than `limit` prefixes in a level are more than `limit` orders.
    """
    needs = [sum(1 << before for before in graph.predecessors[op]) for op in range(len(graph))]
    level = {0: 1}
    for _ in range(len(graph)):
        following: dict[int, int] = {}
        for ideal, count in level.items():
            for op, need in enumerate(needs):
                if not ideal >> op & 1 and need & ideal == need:
                    grown = ideal | 1 << op
                    following[grown] = following.get(grown, 0) + count
        level = following
        if limit is not None and sum(level.values()) > limit:
            return None
    return sum(level.values())


def key_nodes(graph: Graph) -> list[int]:
    """Return the ops on every path from a virtual source to a virtual sink, in order.

    Scanning a topological order, an op is on every path exactly when no edge passes over it,
    edges from the virtual source and to the virtual sink included.
    """
    order = graph.topological_order
    position = {op: place for place, op in enumerate(order)}
    sources = [position[op] for op, before in enumerate(graph.predecessors) if not before]
    sinks = [position[op] for op, after in enumerate(graph.successors) if not after]
    found: list[int] = []
    reach = max(sources, default=0)
    for op in order:
        if reach <= position[op] <= min(sinks):
            found.append(op)
        reach = max(reach, *(position[after] for after in graph.successors[op]), 0)
    return found


def split_at_key_nodes(
    graph: Graph, key_nodes_per_subgraph: int = 1, min_nodes: int = 1
) -> list[list[int]]:
    """Cut the graph after every `key_nodes_per_subgraph`-th key node.

    Returns pieces in data-flow order that cover all ops, each in topological order. A piece ends
    with a key node, so that its successor needs nothing else that is not already there in order. A
    piece with fewer than `min_nodes` ops is merged with the next ones, as are single ops, which
    have only one order. The last piece is merged with the one before it.
    """
    if key_nodes_per_subgraph < 1:
        raise ValueError(f"key nodes per subgraph is {key_nodes_per_subgraph}; expected at least 1")
    cuts = key_nodes(graph)[key_nodes_per_subgraph - 1 :: key_nodes_per_subgraph]
    return _merge_small(cut_after(cuts, graph.topological_order), max(min_nodes, 2))


def cut_after(cuts: Iterable[int], order: Sequence[int]) -> list[list[int]]:
    """Return the pieces of an order that is cut after each of some ops; none is empty."""
    last = set(cuts)
    pieces: list[list[int]] = [[]]
    for op in order:
        pieces[-1].append(op)
        if op in last:
            pieces.append([])
    return [piece for piece in pieces if piece]


def _merge_small(pieces: Sequence[list[int]], min_nodes: int) -> list[list[int]]:
    merged: list[list[int]] = []
    complete, has_choice = True, False
    for piece in pieces:
        if complete:
            merged.append([])
        has_choice = len(piece) > 1 or (not complete and has_choice)
        merged[-1] += piece
        complete = has_choice and len(merged[-1]) >= min_nodes
    if len(merged) > 1 and not complete:
        merged[-2:] = [merged[-2] + merged[-1]]
    return merged
