"""Natural loops of a control-flow graph, and the heaviest way through one."""

from collections.abc import Mapping, Sequence


def natural_loops(successors: Sequence[Sequence[int]]) -> dict[int, set[int]]:
    """Return the nodes of each loop by its header; node 0 is where the graph is entered.

    Dominators are found by iteration in reverse postorder (Cooper, Harvey, Kennedy, "A simple, fast
    dominance algorithm", 2001).
    """
    order = _reverse_postorder(successors)
    rank = {node: place for place, node in enumerate(order)}
    predecessors: dict[int, list[int]] = {node: [] for node in order}
    for node in order:
        for other in successors[node]:
            predecessors[other].append(node)
    dominator = _dominators(order, rank, predecessors)
    loops: dict[int, set[int]] = {}
    for node in order:
        for header in successors[node]:
            if _dominates(header, node, dominator):
                body = loops.setdefault(header, {header})
                waiting = [node]
                while waiting:
                    one = waiting.pop()
                    if one not in body:
                        body.add(one)
                        waiting += predecessors[one]
    return loops


def _reverse_postorder(successors: Sequence[Sequence[int]]) -> list[int]:
    order: list[int] = []
    seen, stack = {0}, [(0, iter(successors[0]))]
    while stack:
        node, rest = stack[-1]
        following = next((other for other in rest if other not in seen), None)
        if following is None:
            order.append(node)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(successors[following])))
    return order[::-1]


def _dominators(
    order: Sequence[int], rank: Mapping[int, int], predecessors: Mapping[int, Sequence[int]]
) -> dict[int, int]:
    """Return the immediate dominator of each node; that of the first is itself."""
    found = {0: 0}
    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            known = [other for other in predecessors[node] if other in found]
            new = known[0]
            for other in known[1:]:
                new = _common(new, other, rank, found)
            if found.get(node) != new:
                found[node] = new
                changed = True
    return found


def _common(left: int, right: int, rank: Mapping[int, int], dominator: Mapping[int, int]) -> int:
    while left != right:
        while rank[left] > rank[right]:
            left = dominator[left]
        while rank[right] > rank[left]:
            right = dominator[right]
    return left


def _dominates(header: int, node: int, dominator: Mapping[int, int]) -> bool:
    while node not in (header, 0):
        node = dominator[node]
    return node == header


def heaviest_path(
    successors: Sequence[Sequence[int]],
    body: set[int],
    header: int,
    weights: Sequence[tuple[int, int]],
) -> list[int]:
    """Return a way from the header to an edge back to it, with the largest sum of weights.

    Loops inside are gone through once at most. Weights are compared as pairs.
    """
    best: dict[int, tuple[tuple[int, int], list[int]] | None] = {}
    open_nodes: set[int] = set()

    def visit(node: int) -> tuple[tuple[int, int], list[int]] | None:
        if node in best:
            return best[node]
        open_nodes.add(node)
        own, chosen = weights[node], None
        for other in successors[node]:
            if other == header:
                candidate = own, [node]
            elif other in body and other not in open_nodes:
                rest = visit(other)
                if rest is None:
                    continue
                total = own[0] + rest[0][0], own[1] + rest[0][1]
                candidate = total, [node, *rest[1]]
            else:
                continue
            if chosen is None or candidate[0] > chosen[0]:
                chosen = candidate
        open_nodes.discard(node)
        best[node] = chosen
        return chosen

    found = visit(header)
    return found[1] if found is not None else [header]
