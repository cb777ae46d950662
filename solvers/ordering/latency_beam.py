"""Beam search for the least makespan."""

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
