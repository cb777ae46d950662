"""Ops on identical processors that run side by side: P | prec | Cmax in three-field notation.

An op runs on one processor, or on all of them at once, which is faster by itself but leaves no
processor for others (a moldable task). A schedule is an order of ops and which of them run on all
processors: taken in this order, each op starts as early as it can. Ordered by their starts, the ops
of every schedule start no later that way, because at any time no more processors are busy; so an
order and a choice of least makespan are among those that are searched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, gcd, isfinite, lcm
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from braid.solvers.cp_sat import has_cp_sat
from braid.solvers.ordering.graph import Graph

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

INTERVAL_OPS = 250
"""The most ops of a graph whose intervals are analysed; of larger ones only paths and total work
are."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ProcessorBounds:
    """Heads, tails and the bound of a problem; see `ProcessorProblem` for the fields."""

    graph: Graph
    alone: tuple[float, ...]
    together: tuple[float, ...]
    processors: int

    @cached_property
    def shortest(self) -> tuple[float, ...]:
        """The least seconds of each op."""
        return tuple(map(min, zip(self.alone, self.together, strict=True)))

    @cached_property
    def heads(self) -> tuple[float, ...]:
        """The earliest time at which each op can start: the longest path to it."""
        heads = [0.0] * len(self.graph)
        for op in self.graph.topological_order:
            for after in self.graph.successors[op]:
                heads[after] = max(heads[after], heads[op] + self.shortest[op])
        return tuple(heads)

    @cached_property
    def follows(self) -> tuple[float, ...]:
        """The least time from the end of each op to the end of all."""
        follows = [0.0] * len(self.graph)
        for op in reversed(self.graph.topological_order):
            for before in self.graph.predecessors[op]:
                follows[before] = max(follows[before], follows[op] + self.shortest[op])
        return tuple(follows)

    @cached_property
    def tails(self) -> tuple[float, ...]:
        """The least time from the start of each op to the end of all."""
        return tuple(map(sum, zip(self.shortest, self.follows, strict=True)))

    @property
    def critical_path(self) -> float:
        """The longest path."""
        return max(self.tails, default=0.0)

    @property
    def work(self) -> float:
        """The work of all ops, shared by all processors."""
        pairs = zip(self.alone, self.together, strict=True)
        return sum(min(alone / self.processors, together) for alone, together in pairs)

    @cached_property
    def value(self) -> float:
        """The greatest of the longest path, the work, and the work that intervals must hold."""
        bound = max(self.critical_path, self.work)
        if 0 < len(self.graph) <= INTERVAL_OPS:
            bound = max(bound, self._intervals())
        return bound

    def _intervals(self) -> float:
        """Return the bound of E. B. Fernandez and B. Bussell, "Bounds on the number of processors
        and time for multiprocessor optimal schedules" (IEEE Transactions on Computers, 1973).

        Were the longest path the makespan, an interval in which more than all processors' time
        had to be worked would be too short by the rest: the makespan is that much longer.
        """
        length = self.critical_path
        begins = np.unique(self.heads)
        ends = np.unique(length - np.array(self.follows))
        most = 0.0
        for begin in begins.tolist():
            later = ends[ends > begin]
            work = np.zeros_like(later)
            for op in range(len(self.graph)):
                work += np.minimum(
                    self._least(op, self.alone, begin, later),
                    self._least(op, self.together, begin, later) * self.processors,
                )
            most = max(most, float((work / self.processors - (later - begin)).max(initial=0.0)))
        return length + most

    def _least(self, op: int, seconds: Sequence[float], begin: float, ends: Floats) -> Floats:
        """Return how long `op` runs at least in the interval from `begin` to each of `ends`."""
        length = self.critical_path
        if not np.isfinite(seconds[op]):
            return np.full_like(ends, np.inf)
        inside = np.minimum(ends - begin, seconds[op])
        inside = np.minimum(inside, self.heads[op] + seconds[op] - begin)
        latest = length - self.follows[op] - seconds[op]
        return np.maximum(np.minimum(inside, ends - latest), 0.0)


Choice = tuple[Sequence[int], Sequence[bool]]
"""A topological order, and for each op whether it runs on all processors."""


@dataclass(frozen=True)
class ProcessorProblem:
    """Find the schedule of `graph` on `processors` identical processors with the least makespan.

    `alone` are the seconds of each op on one processor, infinite if it needs all of them; an op of
    0 seconds takes no processor. `together` are those on all processors at once, infinite where
    that is not possible.
    """

    graph: Graph
    alone: tuple[float, ...]
    together: tuple[float, ...]
    processors: int

    def __post_init__(self) -> None:
        if self.processors < 1:
            raise ValueError(f"there are {self.processors} processors, expected at least 1")
        if not len(self.graph) == len(self.alone) == len(self.together):
            raise ValueError(
                f"{len(self.alone)} and {len(self.together)} durations for {len(self.graph)} ops"
            )
        if any(min(pair) < 0 for pair in self._pairs) or not all(map(isfinite, self.shortest)):
            raise ValueError("a duration is negative, or both durations of an op are infinite")

    def __len__(self) -> int:
        return len(self.graph)

    @property
    def _pairs(self) -> Iterable[tuple[float, float]]:
        return zip(self.alone, self.together, strict=True)

    @cached_property
    def shortest(self) -> tuple[float, ...]:
        """The least seconds of each op."""
        return tuple(map(min, self._pairs))

    @cached_property
    def bounds(self) -> ProcessorBounds:
        """Return the bounds that hold for every schedule."""
        return ProcessorBounds(self.graph, self.alone, self.together, self.processors)

    def evaluate(self, choice: Choice) -> float:
        """Return the makespan of a schedule."""
        return self.place(choice).value

    def place(self, choice: Choice) -> Placed:
        """Return on which processor and when each op runs."""
        order, wide = choice
        free = [0.0] * self.processors
        starts, ends = [0.0] * len(self), [0.0] * len(self)
        processors: list[int | None] = [None] * len(self)
        for op in order:
            ready, near = 0.0, None
            for before in self.graph.predecessors[op]:
                if ends[before] >= ready:
                    ready, near = ends[before], processors[before]
            seconds = self.together[op] if wide[op] else self.alone[op]
            if not seconds:
                starts[op] = ends[op] = ready
            elif wide[op]:
                starts[op] = max(ready, *free)
                ends[op] = starts[op] + seconds
                free = [ends[op]] * self.processors
            else:
                processor = earliest(free, ready, near)
                starts[op] = max(free[processor], ready)
                ends[op] = free[processor] = starts[op] + seconds
                processors[op] = processor
        return Placed(tuple(processors), tuple(starts), max(ends, default=0.0))

    def restrict(self, ops: Sequence[int]) -> ProcessorProblem:
        """Return the problem of `ops` alone, renumbered by their place in `ops`."""
        alone = tuple(self.alone[op] for op in ops)
        together = tuple(self.together[op] for op in ops)
        return ProcessorProblem(self.graph.restrict(ops), alone, together, self.processors)


@dataclass(frozen=True)
class Placed:
    """The processor of each op, None for all or none; when it starts; when all is done."""

    processors: tuple[int | None, ...]
    starts: tuple[float, ...]
    value: float


def earliest(free: Sequence[float], ready: float, near: int | None) -> int:
    """Return the processor on which an op that is `ready` starts first.

    Of several it is `near`, whose caches hold what the op reads, or else the one that became idle
    last.
    """
    if near is not None and free[near] <= ready:
        return near
    idle = [processor for processor, time in enumerate(free) if time <= ready]
    if idle:
        return max(idle, key=free.__getitem__)
    return min(range(len(free)), key=free.__getitem__)


TICKS = 10**9
"""The ticks of the best known makespan; durations are rounded down to whole ticks."""
COARSE = 10**5
"""The number of ticks of a makespan up to which durations are exact multiples of their common
divisor.

The search proves little where a makespan has many ticks, since its bounds grow tick by tick.
"""


@dataclass(frozen=True)
class ExactProcessors:
    """A schedule, None if none was found, and a lower bound of all schedules."""

    choice: Choice | None
    lower_bound: float


def exact_processors(
    problem: ProcessorProblem, known: Choice, value: float, time_limit: float, seed: int
) -> ExactProcessors:
    """Search from the schedule `known`, whose makespan is `value` > 0, for `time_limit` seconds."""
    if time_limit <= 0 or not has_cp_sat():
        return ExactProcessors(None, 0.0)
    from ortools.sat.python import cp_model  # it takes longer to load than most searches

    tick = _tick(problem, value)
    model = cp_model.CpModel()
    horizon = ceil(value / tick) + 1
    starts = [model.new_int_var(0, horizon, "") for _ in range(len(problem))]
    modes = [model.new_bool_var("") for _ in range(len(problem))]
    makespan = model.new_int_var(0, horizon, "")
    intervals: list[cp_model.IntervalVar] = []
    demands: list[int] = []
    lengths: list[cp_model.LinearExpr] = []
    work: list[cp_model.LinearExpr] = []
    for start, wide, pair in zip(
        starts, modes, zip(problem.alone, problem.together, strict=True), strict=True
    ):
        for seconds, chosen in zip(pair, (wide.negated(), wide), strict=True):
            if not isfinite(seconds):
                model.add(chosen == 0)
        ticks = [floor(seconds / tick) if isfinite(seconds) else 0 for seconds in pair]
        sizes = (1, problem.processors)
        for length, demand, chosen in zip(ticks, sizes, (wide.negated(), wide), strict=True):
            if length:
                intervals.append(
                    model.new_optional_fixed_size_interval_var(start, length, chosen, "")
                )
                demands.append(demand)
        lengths.append(ticks[0] + (ticks[1] - ticks[0]) * wide)
        work.append(ticks[0] + (ticks[1] * problem.processors - ticks[0]) * wide)
    model.add_cumulative(intervals, demands, problem.processors)
    for op, start in enumerate(starts):
        model.add(start + lengths[op] <= makespan)
        for before in problem.graph.predecessors[op]:
            model.add(starts[before] + lengths[before] <= start)
    model.add(sum(work) <= problem.processors * makespan)
    model.minimize(makespan)
    placed = problem.place(known)
    for op, start in enumerate(placed.starts):
        model.add_hint(starts[op], floor(start / tick))
        model.add_hint(modes[op], known[1][op])
    return _solve(problem, model, starts, modes, tick, time_limit, seed)


def _tick(problem: ProcessorProblem, value: float) -> float:
    """Return the largest number that divides all durations, unless that is too small a part of
    `value`.
    """
    divisor = Fraction(0)
    for seconds in (*problem.alone, *problem.together):
        if isfinite(seconds):
            exact = Fraction(seconds)
            common = lcm(divisor.denominator, exact.denominator)
            divisor = Fraction(gcd(int(divisor * common), int(exact * common)), common)
            if divisor * COARSE < value:
                return value / TICKS
    return float(divisor)


def _solve(
    problem: ProcessorProblem,
    model: cp_model.CpModel,
    starts: list[cp_model.IntVar],
    modes: list[cp_model.IntVar],
    tick: float,
    time_limit: float,
    seed: int,
) -> ExactProcessors:
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = time_limit
    solver.parameters.random_seed = seed
    solver.parameters.num_workers = 1
    # On 150 random problems of up to 8 ops, these leave 7 open after two seconds, defaults 10.
    solver.parameters.linearization_level = 2
    solver.parameters.cp_model_probing_level = 0
    status = solver.solve(model)
    bound = solver.best_objective_bound * tick
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return ExactProcessors(None, bound)
    rank = {op: place for place, op in enumerate(problem.graph.topological_order)}
    order = sorted(rank, key=lambda op: (solver.value(starts[op]), rank[op]))
    return ExactProcessors((order, [bool(solver.value(mode)) for mode in modes]), bound)
