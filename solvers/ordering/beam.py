"""Beam search over ideals for the least peak."""

from time import monotonic

from braid.solvers.ordering.memory import MemoryProblem
from braid.solvers.ordering.memory_exact import IdealSearch, State


def beam_search(
    problem: MemoryProblem, width: int, level: int, deadline: float
) -> list[int] | None:
    """Return the order found with `width` ideals at a time, None when `deadline` comes first.

    `level` is a known lower bound: moves that fit under it are free.
    """
    search = IdealSearch(problem)
    beam: list[tuple[int, State]] = [(level, search.settle(search.root, level))]
    full = (1 << len(problem)) - 1
    finished: list[tuple[int, State]] = []
    while beam:
        candidates: dict[int, tuple[int, int, int, int]] = {}
        for place, (peak, state) in enumerate(beam):
            if monotonic() > deadline:
                return None
            for op in state.ready:
                ideal, live = search.step(state.ideal, state.live, op)
                during = state.live + search.need(state.ideal, op)
                entry = (max(peak, during), live, place, op)
                if ideal not in candidates or entry < candidates[ideal]:
                    candidates[ideal] = entry
        following: dict[int, tuple[int, State]] = {}
        for peak, _, place, op in sorted(candidates.values())[:width]:
            state = search.extend(beam[place][1], op, peak)
            if state.ideal not in following:
                following[state.ideal] = (peak, state)
        finished += [entry for ideal, entry in following.items() if ideal == full]
        beam = [entry for ideal, entry in following.items() if ideal != full]
        if finished:
            lowest = min(peak for peak, _ in finished)
            beam = [entry for entry in beam if entry[0] < lowest]
    if not finished:
        return beam_end(search, level)
    return min(finished, key=lambda entry: entry[0])[1].order()


def beam_end(search: IdealSearch, level: int) -> list[int]:
    """Return the order when all moves are free."""
    return search.settle(search.root, level).order()
