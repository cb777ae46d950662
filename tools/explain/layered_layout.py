"""Positions for drawing a directed acyclic graph in layers, without IR.

After K. Sugiyama, S. Tagawa, M. Toda, "Methods for Visual Understanding of Hierarchical System
Structures", 1981: layers by longest path, orders by barycenters; then every layer is placed as
close to its neighbours as its widths allow, which is an isotonic regression.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

Size = tuple[float, float]
Point = tuple[float, float]

GAP = 24.0
"""Pixels between two nodes of a layer."""
LAYER_GAP = 38.0
"""Pixels between two layers."""
SWEEPS = 6
_LANE = 10.0
"""Width that a passing edge takes in a layer."""


@dataclass(frozen=True)
class Placement:
    """Where things are, in pixels: centers of nodes, corners of edges, size of it all."""

    nodes: list[Point]
    edges: list[list[Point]]
    size: Size


@dataclass
class _Layers:
    """Nodes and, where an edge passes a layer, lanes, by layer; lanes are numbered after nodes."""

    layers: list[list[int]]
    above: list[list[int]]
    below: list[list[int]]
    widths: list[float]
    paths: list[list[int]]


def place(sizes: Sequence[Size], edges: Sequence[tuple[int, int]]) -> Placement:
    """Place nodes of these sizes so that edges run downward.

    Raises ValueError if the edges form a cycle.
    """
    ranks = _ranks(len(sizes), edges)
    layers = _layers(sizes, edges, ranks)
    for sweep in range(SWEEPS):
        _order(layers, downward=sweep % 2 == 0)
    x = _pack(layers)
    for sweep in range(SWEEPS):
        _align(layers, x, downward=sweep % 2 == 0)
    return _placement(sizes, ranks, layers, x)


def _ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Longest path from a node without operands; these then move down to their first reader."""
    successors: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for source, target in edges:
        successors[source].append(target)
        missing[target] += 1
    roots = [node for node in range(count) if not missing[node]]
    order, ranks = list(roots), [0] * count
    for node in order:
        for successor in successors[node]:
            ranks[successor] = max(ranks[successor], ranks[node] + 1)
            missing[successor] -= 1
            if not missing[successor]:
                order.append(successor)
    if len(order) != count:
        raise ValueError("a graph with a cycle has no layers")
    for node in roots:
        ranks[node] = min((ranks[s] - 1 for s in successors[node]), default=0)
    return ranks


def _layers(
    sizes: Sequence[Size], edges: Sequence[tuple[int, int]], ranks: Sequence[int]
) -> _Layers:
    widths = [width for width, _ in sizes]
    layers: list[list[int]] = [[] for _ in range(max(ranks, default=-1) + 1)]
    for node, rank in enumerate(ranks):
        layers[rank].append(node)
    paths: list[list[int]] = []
    for source, target in edges:
        lanes = range(len(widths), len(widths) + ranks[target] - ranks[source] - 1)
        widths += [_LANE] * len(lanes)
        for rank, lane in enumerate(lanes, ranks[source] + 1):
            layers[rank].append(lane)
        paths.append([source, *lanes, target])
    above: list[list[int]] = [[] for _ in widths]
    below: list[list[int]] = [[] for _ in widths]
    for path in paths:
        for upper, lower in pairwise(path):
            below[upper].append(lower)
            above[lower].append(upper)
    return _Layers(layers, above, below, widths, paths)


def _order(graph: _Layers, *, downward: bool) -> None:
    """Sorts every layer by where the neighbours in the layer before it are."""
    neighbours = graph.above if downward else graph.below
    layers = graph.layers if downward else graph.layers[::-1]
    position = {node: float(i) for layer in graph.layers for i, node in enumerate(layer)}
    for layer in layers:
        around = {n: [position[m] for m in neighbours[n]] for n in layer}
        layer.sort(key=lambda n: sum(around[n]) / len(around[n]) if around[n] else position[n])
        position.update((node, float(index)) for index, node in enumerate(layer))


def _offsets(graph: _Layers, layer: Sequence[int]) -> list[float]:
    """Least distance of each center from the first one's."""
    offsets = [0.0]
    for left, right in pairwise(layer):
        offsets.append(offsets[-1] + (graph.widths[left] + graph.widths[right]) / 2 + GAP)
    return offsets


def _pack(graph: _Layers) -> list[float]:
    x = [0.0] * len(graph.widths)
    for layer in graph.layers:
        offsets = _offsets(graph, layer)
        for node, offset in zip(layer, offsets, strict=False):
            x[node] = offset - offsets[-1] / 2
    return x


def _align(graph: _Layers, x: list[float], *, downward: bool) -> None:
    """Moves every layer to the least squared distance from its neighbours, in its order."""
    neighbours = graph.above if downward else graph.below
    for layer in graph.layers if downward else graph.layers[::-1]:
        wanted = [
            sum(x[m] for m in neighbours[n]) / len(neighbours[n]) if neighbours[n] else x[n]
            for n in layer
        ]
        offsets = _offsets(graph, layer)
        pushed = isotonic([w - o for w, o in zip(wanted, offsets, strict=False)])
        for node, value, offset in zip(layer, pushed, offsets, strict=False):
            x[node] = value + offset


def isotonic(values: Sequence[float]) -> list[float]:
    """The non-decreasing sequence nearest to `values` in squares (pool adjacent violators)."""
    blocks: list[tuple[float, int]] = []
    for value in values:
        total, count = value, 1
        while blocks and blocks[-1][0] / blocks[-1][1] >= total / count:
            before, members = blocks.pop()
            total, count = total + before, count + members
        blocks.append((total, count))
    return [total / count for total, count in blocks for _ in range(count)]


def _placement(
    sizes: Sequence[Size], ranks: Sequence[int], graph: _Layers, x: Sequence[float]
) -> Placement:
    heights = [
        max((sizes[n][1] for n in layer if n < len(sizes)), default=0.0) for layer in graph.layers
    ]
    middle: list[float] = []
    top = 0.0
    for height in heights:
        middle.append(top + height / 2)
        top += height + LAYER_GAP
    left = min((c - w / 2 for c, w in zip(x, graph.widths, strict=True)), default=0.0)
    right = max((c + w / 2 for c, w in zip(x, graph.widths, strict=True)), default=0.0)
    nodes = [(x[node] - left, middle[ranks[node]]) for node in range(len(sizes))]
    paths: list[list[Point]] = []
    for path in graph.paths:
        source, target = path[0], path[-1]
        points = [(nodes[source][0], nodes[source][1] + sizes[source][1] / 2)]
        for rank, lane in enumerate(path[1:-1], ranks[source] + 1):
            half = heights[rank] / 2
            points += [(x[lane] - left, middle[rank] + dy) for dy in (-half, half)]
        points.append((nodes[target][0], nodes[target][1] - sizes[target][1] / 2))
        paths.append(points)
    return Placement(nodes, paths, (right - left, max(top - LAYER_GAP, 0.0)))
