"""Search for a schedule on identical processors: list scheduling, neighbourhoods, exact search."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import isfinite
from random import Random
from time import monotonic

from braid.solvers.ordering.baselines import by_priority
from braid.solvers.ordering.graph import key_nodes
from braid.solvers.ordering.processors import Choice, ProcessorProblem, exact_processors

ROUNDS = 3000
EXACT_OPS = 200
"""Pieces with more ops are not searched exactly."""
CLOSE = 1e-6
"""A gap up to this is due to rounding."""


@dataclass(frozen=True)
class ProcessorSchedule:
    """Ops in an order in which they can be issued, and the processor of each by its number.

    An op whose processor is None runs on all of them, or on none if it takes no time. `value`
    is the makespan in seconds, and no schedule's is less than `lower_bound`.
    """

    order: tuple[int, ...]
    wide: tuple[bool, ...]
    processors: tuple[int | None, ...]
    value: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """Return how far the bound is below the value, as a fraction of the value."""
        return 1 - self.lower_bound / self.value if self.value else 0.0


def search_processors(
    problem: ProcessorProblem,
    *,
    time_limit: float = 2.0,
    seed: int = 0,
    reference: Sequence[int] | None = None,
) -> ProcessorSchedule:
    """Return the best schedule found in `time_limit` seconds, with a lower bound.

    Among equally good schedules, those near the order `reference` are preferred. The result is
    never worse than list scheduling by the critical path (T. L. Adam, K. M. Chandy, J. R. Dickson,
    "A comparison of list schedules for parallel processing systems", 1974), and never worse than
    one op after the other, each as fast as it can be. No op runs at the same time as a key node, so
    the pieces between key nodes are searched one by one. The result is the same for the same seed
    unless the time limit cuts the search short.
    """
    deadline = monotonic() + time_limit
    pieces = _pieces(problem, reference or problem.graph.topological_order)
    left, bound = len(problem), 0.0
    order: list[int] = []
    wide = [False] * len(problem)
    for piece in pieces:
        now = monotonic()
        limit = now + (deadline - now) * len(piece) / left
        (found, modes), least = _search_piece(problem.restrict(piece), limit, seed)
        order += [piece[op] for op in found]
        for op, mode in zip(piece, modes, strict=True):
            wide[op] = mode
        left -= len(piece)
        bound += least
    return scheduled(problem, (order, wide), bound)


def scheduled(
    problem: ProcessorProblem, choice: Choice, lower_bound: float = 0.0
) -> ProcessorSchedule:
    """Return the schedule of `choice`, whose bound is at least `lower_bound`."""
    placed = problem.place(choice)
    bound = min(max(lower_bound, problem.bounds.critical_path, problem.bounds.work), placed.value)
    order, wide = choice
    return ProcessorSchedule(tuple(order), tuple(wide), placed.processors, placed.value, bound)


def list_schedules(
    problem: ProcessorProblem, reference: Sequence[int] | None = None
) -> dict[str, Choice]:
    """Return the classical schedules by name.

    `together` runs ops in sequence in the order `reference`, on all processors if possible;
    `fastest` runs ops on all processors if they are faster there, `key-nodes` only key nodes, and
    `processors` only ops that need all.
    """
    forced = [not isfinite(seconds) for seconds in problem.alone]
    faster = [a > t for a, t in zip(problem.alone, problem.together, strict=True)]
    keys = list(forced)
    for op in key_nodes(problem.graph):
        keys[op] = faster[op]
    order = list(reference or problem.graph.topological_order)
    together = [isfinite(seconds) for seconds in problem.together]
    schedules: dict[str, Choice] = {"together": (order, together), "fastest": (order, faster)}
    for name, wide in (("processors", forced), ("key-nodes", keys)):
        schedules[name] = (by_priority(problem.graph, problem.bounds.tails), wide)
        schedules[f"{name}-greedy"] = (_greedy(problem, wide), wide)
    return schedules


def _greedy(problem: ProcessorProblem, wide: Sequence[bool]) -> list[int]:
    """Return the order that always takes the op that can start first, and among these the most
    critical.
    """
    graph, tails = problem.graph, problem.bounds.tails
    missing = [len(before) for before in graph.predecessors]
    ends = [0.0] * len(problem)
    free = [0.0] * problem.processors
    order: list[int] = []
    seconds = [t if w else a for w, a, t in zip(wide, problem.alone, problem.together, strict=True)]
    narrow, on_all, at_once = _Ready(tails), _Ready(tails), _Ready(tails)

    def add(op: int) -> None:
        ready = on_all if wide[op] else narrow
        time = max((ends[before] for before in graph.predecessors[op]), default=0.0)
        (ready if seconds[op] else at_once).add(op, time)

    for op, count in enumerate(missing):
        if not count:
            add(op)
    for _ in range(len(problem)):
        candidates = (narrow.first(min(free)), on_all.first(max(free)), at_once.first(0.0))
        start, _, op = min(candidate for candidate in candidates if candidate is not None)
        (on_all if wide[op] else narrow).take() if seconds[op] else at_once.take()
        order.append(op)
        ends[op] = start + seconds[op]
        if seconds[op] and wide[op]:
            free = [ends[op]] * problem.processors
        elif seconds[op]:
            free[free.index(min(free))] = ends[op]
        for after in graph.successors[op]:
            missing[after] -= 1
            if not missing[after]:
                add(after)
    return order


class _Ready:
    """The ready ops, and the times at which they become ready, which only grow."""

    def __init__(self, tails: Sequence[float]) -> None:
        self._tails = tails
        self._waiting: list[tuple[float, float, int]] = []  # by when they are ready
        self._startable: list[tuple[float, int]] = []  # were ready when the processor got free

    def add(self, op: int, time: float) -> None:
        """Note that `op` is ready at `time`."""
        heappush(self._waiting, (time, -self._tails[op], op))

    def first(self, free: float) -> tuple[float, float, int] | None:
        """Return when the next op starts if a processor is free, its criticality, and the op."""
        while self._waiting and self._waiting[0][0] <= free:
            _, tail, op = heappop(self._waiting)
            heappush(self._startable, (tail, op))
        if self._startable:
            return (free, *self._startable[0])
        return self._waiting[0] if self._waiting else None

    def take(self) -> None:
        """Remove the op that `first` gave."""
        if self._startable:
            heappop(self._startable)
        else:
            heappop(self._waiting)


def _pieces(problem: ProcessorProblem, reference: Sequence[int]) -> list[list[int]]:
    """Return the ops between key nodes, each key node on its own: nothing runs beside it."""
    keys = set(key_nodes(problem.graph))
    pieces: list[list[int]] = [[]]
    for op in reference:
        if op in keys:
            pieces += [[op], []]
        else:
            pieces[-1].append(op)
    return [piece for piece in pieces if piece]


def _search_piece(problem: ProcessorProblem, deadline: float, seed: int) -> tuple[Choice, float]:
    """Return a schedule of `problem`, and a lower bound of all schedules."""
    # A piece is numbered as the reference order has its ops.
    schedules = list_schedules(problem, range(len(problem)))
    found = min(schedules.values(), key=problem.evaluate)
    bound = problem.bounds.value
    value = problem.evaluate(found)
    if value > bound * (1 + CLOSE):
        found = _improve(problem, found, bound, deadline, seed)
        value = problem.evaluate(found)
    if value > bound * (1 + CLOSE) and len(problem) <= EXACT_OPS:
        exact = exact_processors(problem, found, value, deadline - monotonic(), seed)
        bound = max(bound, exact.lower_bound)
        if exact.choice is not None:
            found = min(found, exact.choice, key=problem.evaluate)
    return found, bound


def _improve(
    problem: ProcessorProblem, start: Choice, bound: float, deadline: float, seed: int
) -> Choice:
    """Change schedules a little as long as they become no worse."""
    random, best = Random(seed), start
    value = problem.evaluate(start)
    for _ in range(ROUNDS):
        if value <= bound * (1 + CLOSE) or monotonic() > deadline:
            break
        changed = _changed(problem, best, random)
        found = problem.evaluate(changed)
        if found <= value:
            best, value = changed, found
    return best


def _changed(problem: ProcessorProblem, choice: Choice, random: Random) -> Choice:
    """Change a schedule: another op on all processors, or no longer, or an op at another place."""
    order, wide = list(choice[0]), list(choice[1])
    place = random.randrange(len(order))
    op = order[place]
    if random.random() < 0.3 and isfinite(max(problem.alone[op], problem.together[op])):
        wide[op] = not wide[op]
        return order, wide
    before, after = set(problem.graph.predecessors[op]), set(problem.graph.successors[op])
    first = last = place
    while first and order[first - 1] not in before:
        first -= 1
    while last + 1 < len(order) and order[last + 1] not in after:
        last += 1
    order.insert(random.randint(first, last), order.pop(place))
    return order, wide
