"""Beam search and local search for the least makespan."""

from random import Random
from time import monotonic

from braid.solvers.ordering.latency import LatencyProblem
from braid.solvers.ordering.latency_state import IssueSearch, IssueState


def beam_search(problem: LatencyProblem, width: int, deadline: float) -> list[int] | None:
    """Return the order found with `width` partial orders at a time, None at `deadline`."""
    search = IssueSearch(problem)
    tails = problem.tails
    beam: list[IssueState] = [search.root()]
    for _ in range(len(problem)):
        candidates: list[tuple[float, float, int, int, int]] = []
        for place, state in enumerate(beam):
            if monotonic() > deadline:
                return None
            for op in state.ready:
                bound, end = search.peek(state, op)
                candidates.append((bound, end - tails[op], place, op, state.ideal | 1 << op))
        following: list[IssueState] = []
        seen: set[tuple[int, tuple[float, ...]]] = set()
        for _, _, place, op, _ in sorted(candidates):
            state = search.issue(beam[place], op)
            if (state.ideal, state.free) not in seen:
                seen.add((state.ideal, state.free))
                following.append(state)
            if len(following) == width:
                break
        beam = following
    return min(beam, key=lambda state: state.bound).order()


def local_search(
    problem: LatencyProblem,
    start: list[int],
    target: float,
    deadline: float,
    seed: int,
    rounds: int,
) -> list[int]:
    """Move single ops to other legal places as long as that is no worse; return the best order.

    Stops at `target`, at `deadline` or after `rounds` moves.
    """
    random = Random(seed)
    order, value = list(start), problem.evaluate(start)
    count = len(order)
    for _ in range(rounds if count > 2 else 0):
        if value <= target or monotonic() > deadline:
            break
        source = random.randrange(count)
        moved = _moved(problem, order, source, random)
        if moved is None:
            continue
        changed = problem.evaluate(moved)
        if changed <= value:
            order, value = moved, changed
    return order


def _moved(
    problem: LatencyProblem, order: list[int], source: int, random: Random
) -> list[int] | None:
    """Return `order` with the op at `source` elsewhere, None when it cannot move that way."""
    op = order[source]
    reach = 1 + int(random.expovariate(1.0) * 8)
    if random.random() < 0.5:
        fence, target = set(problem.graph.predecessors[op]), source
        while target > 0 and source - target < reach and order[target - 1] not in fence:
            target -= 1
    else:
        fence, target = set(problem.graph.successors[op]), source
        last = len(order) - 1
        while target < last and target - source < reach and order[target + 1] not in fence:
            target += 1
    if target == source:
        return None
    moved = order[:source] + order[source + 1 :]
    moved.insert(target, op)
    return moved
