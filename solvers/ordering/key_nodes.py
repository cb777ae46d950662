"""Key nodes: the articulation points of a graph, where all paths meet, and pieces cut there."""

from collections.abc import Sequence

from braid.solvers.ordering.graph import Graph


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
    with a key node, so that its successor needs nothing else that is not already there in
    order. A piece of fewer than `min_nodes` ops joins the next until there are as many, and so
    do single ops, which have no other order; the last joins the one before it.
    """
    if key_nodes_per_subgraph < 1:
        raise ValueError(f"key nodes per subgraph is {key_nodes_per_subgraph}; expected at least 1")
    cuts = set(key_nodes(graph)[key_nodes_per_subgraph - 1 :: key_nodes_per_subgraph])
    pieces: list[list[int]] = [[]]
    for op in graph.topological_order:
        pieces[-1].append(op)
        if op in cuts:
            pieces.append([])
    return _merge_small([piece for piece in pieces if piece], max(min_nodes, 2))


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
