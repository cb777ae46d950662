"""Supersequences: lists of candidate executions among which the selection model chooses."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from random import Random

from braid.solvers.rematerialization.problem import Problem


@dataclass(frozen=True)
class Supersequence:
    """Candidate executions `ops`; `chosen` are the places of the schedule it was built around.

    The places in `pinned` happen in any case.
    """

    ops: tuple[int, ...]
    chosen: frozenset[int]
    pinned: frozenset[int]


def _ancestors(problem: Problem, op: int, depth: int, ran: Collection[int]) -> list[int]:
    """Return the ops that ran before and lie at most `depth` steps upstream of `op`, ascending."""
    found: set[int] = set()
    front = {op}
    for _ in range(depth):
        front = {maker for user in front for maker in problem.predecessors[user]} - found
        if not front:
            break
        found |= front
    return sorted(other for other in found & set(ran) if problem.ops[other].recomputable)


def with_recomputation(
    problem: Problem, sequence: Sequence[int], depth: int, before: Collection[int]
) -> Supersequence:
    """Allow, before each step in `before`, every op up to `depth` steps upstream to run again.

    First executions keep their order; recomputations may also disappear. With all steps and an
    unlimited depth this is Checkmate's stage matrix, restricted to useful recomputation.
    """
    places: list[int] = []
    chosen: set[int] = set()
    first: dict[int, int] = {}
    for step, op in enumerate(sequence):
        if step in before:
            places.extend(_ancestors(problem, op, depth, first.keys()))
        first.setdefault(op, len(places))
        chosen.add(len(places))
        places.append(op)
    return Supersequence(tuple(places), frozenset(chosen), frozenset(first.values()))


def with_reordering(
    problem: Problem, sequence: Sequence[int], start: int, stop: int, passes: int, random: Random
) -> Supersequence:
    """Allow the steps `start..stop` to run in other orders, with recomputation among them.

    The window is followed by `passes` further copies of its ops, each in a random topological
    order, and all executions in it are optional; outside, first executions are pinned.
    """
    window = sequence[start:stop]
    rank = {op: (random.random(), op) for op in set(window)}
    for op in sorted(rank):
        floor = max((rank[m][0] for m in problem.predecessors[op] if m in rank), default=0.0)
        rank[op] = (max(rank[op][0], floor), op)
    extra = sorted(rank, key=rank.__getitem__) * passes
    extra = [op for op in extra if problem.ops[op].recomputable or op in window]
    places = (*sequence[:stop], *extra, *sequence[stop:])
    shift = len(extra)
    chosen = {step if step < stop else step + shift for step in range(len(sequence))}
    seen: set[int] = set()
    pinned: set[int] = set()
    for step, op in enumerate(sequence):
        if op not in seen and not start <= step < stop:
            pinned.add(step if step < stop else step + shift)
        seen.add(op)
    return Supersequence(places, frozenset(chosen), frozenset(pinned))


def every_schedule(problem: Problem, sequence: Sequence[int], passes: int) -> Supersequence:
    """Return `passes` copies of the required ops in topological order, built around `sequence`.

    Every schedule of at most `passes` executions is a subsequence. `sequence` must not be longer.
    """
    order = problem.required
    rank = {op: place for place, op in enumerate(order)}
    chosen = {row * len(order) + rank[op] for row, op in enumerate(sequence)}
    return Supersequence(order * passes, frozenset(chosen), frozenset())
