"""Exact packing by constraint programming.

At every moment the live buffers are a disjunctive resource: placing them is job-shop scheduling
in which a buffer is an operation that needs, at once, the machine of each moment it is live in.
Disjunctive propagation on the maximal sets of live buffers is far stronger than propagation on
rectangles that do not overlap.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, gcd, isfinite, lcm

from ortools.sat.python import cp_model

from braid.solvers.deadline import Deadline, OutOfTime
from braid.solvers.packing.bounds import Segment, maximal_live_sets
from braid.solvers.packing.problem import Item


@dataclass(frozen=True)
class Search:
    """The settings of a search: a limit in seconds, a number of threads and a seed."""

    time_limit: float
    seed: int = 0
    workers: int = 1


@dataclass(frozen=True)
class ExactResult:
    """The bases found, by item (None if there are none), and the proven least end."""

    bases: dict[int, int] | None
    lower_bound: int


def common_unit(items: Sequence[Item], members: Sequence[int]) -> int:
    """Return a unit of which some optimal packing's bases are all multiples.

    Every base is a multiple of what divides all alignments (and starts of parts). Also, packings
    can be pushed down, so that bases are sums of extents, rounded up to alignments.
    """
    aligned = pushed = 0
    for i in members:
        starts = [part.start for part in items[i].parts]
        aligned = gcd(aligned, items[i].alignment, *starts)
        sizes = [part.size for part in items[i].parts]
        pushed = gcd(pushed, items[i].fixed or 0, *starts, *sizes)
    previous = 0
    while pushed != previous:
        previous = pushed
        for i in members:
            alignment = items[i].alignment
            if pushed % alignment and alignment % pushed:
                pushed = gcd(pushed, alignment)
    return max(aligned, pushed, 1)


class _Model:
    """The placement of `members` such that every item ends at or before `ceiling`."""

    def __init__(
        self, items: Sequence[Item], members: Sequence[int], ceiling: int, deadline: Deadline
    ) -> None:
        """Build the model. Raises OutOfTime at `deadline`."""
        self.items = items
        self.members = members
        self.unit = common_unit(items, members)
        self.model = cp_model.CpModel()
        self.steps = {i: lcm(items[i].alignment, self.unit) for i in members}
        self.variables = {
            i: self.model.new_int_var(0, (ceiling - items[i].extent) // self.steps[i], f"base{i}")
            for i in members
        }
        for i in members:
            fixed = items[i].fixed
            if fixed is not None:
                self.model.add(self.variables[i] == fixed // self.steps[i])
        self._forbid_overlap(deadline)

    def _forbid_overlap(self, deadline: Deadline) -> None:
        unit = self.unit
        intervals: dict[tuple[int, Segment], cp_model.IntervalVar] = {}
        for live in maximal_live_sets(self.items, self.members):
            deadline.check()
            together: list[cp_model.IntervalVar] = []
            for item, segments in sorted(live):
                base = self.variables[item] * (self.steps[item] // unit)
                for begin, end in segments:
                    key = (item, (begin, end))
                    if key not in intervals:
                        intervals[key] = self.model.new_fixed_size_interval_var(
                            base + begin // unit, -(-(end - begin) // unit), f"live{item}"
                        )
                    together.append(intervals[key])
            self.model.add_no_overlap(together)

    def minimize_end(self, lower_bound: int, ceiling: int) -> None:
        """Ask for the least end within these limits."""
        end = self.model.new_int_var(lower_bound, ceiling, "end")
        for i in self.members:
            self.model.add(self.variables[i] * self.steps[i] + self.items[i].extent <= end)
        self.model.minimize(end)

    def hint(self, bases: Sequence[int]) -> None:
        """Start the search near `bases`."""
        for i in self.members:
            self.model.add_hint(self.variables[i], bases[i] // self.steps[i])

    def run_in_order(
        self, order: Sequence[int], search: Search
    ) -> tuple[dict[int, int] | None, bool, int]:
        """Run as `run` does, but decide as in placing: an item that can lie lowest is placed first.

        Of items that can lie equally low, the first one in `order` is decided first.
        """
        free = self.model
        self.model = free.clone()
        self.model.add_decision_strategy(
            [self.model.get_int_var_from_proto_index(self.variables[i].index) for i in order],
            cp_model.CHOOSE_LOWEST_MIN,
            cp_model.SELECT_MIN_VALUE,
        )
        try:
            return self.run(search, as_ordered=True)
        finally:
            self.model = free

    def run(
        self, search: Search, as_ordered: bool = False
    ) -> tuple[dict[int, int] | None, bool, int]:
        """Return the bases found, whether there are provably none, and the proven bound."""
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = search.workers
        solver.parameters.random_seed = search.seed
        solver.parameters.max_time_in_seconds = max(search.time_limit, 0.01)
        if as_ordered:
            solver.parameters.search_branching = cp_model.FIXED_SEARCH
        status = solver.solve(self.model)
        known = solver.best_objective_bound
        bound = ceil(known - 1e-6) if isfinite(known) else 0
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None, status == cp_model.INFEASIBLE, bound
        bases = {i: solver.value(v) * self.steps[i] for i, v in self.variables.items()}
        return bases, False, bound


def fit(
    items: Sequence[Item],
    members: Sequence[int],
    ceiling: int,
    orders: Sequence[Sequence[int]],
    search: Search,
) -> ExactResult:
    """Search for bases of `members` that end at or before `ceiling`.

    Whether placing the lowest first succeeds at once depends on the order among equals, and no
    order is best for all instances: each of `orders` is tried for longer and longer, then the
    solver's own search gets the rest. `lower_bound` of the result is above `ceiling` when there
    are provably no such bases, else 0.
    """
    if any(items[i].extent + (items[i].fixed or 0) > ceiling for i in members):
        return ExactResult(None, ceiling + 1)
    deadline = Deadline.after(search.time_limit)
    try:
        model = _Model(items, members, ceiling, deadline)
    except OutOfTime:
        return ExactResult(None, 0)
    for dive in _dives(deadline.remaining, len(orders)):
        for order in orders:
            limit = min(dive, deadline.remaining)
            alone = replace(search, time_limit=limit, workers=1)
            bases, infeasible = model.run_in_order(order, alone)[:2]
            if bases is not None or infeasible:
                return ExactResult(bases, ceiling + 1 if infeasible else 0)
    bases, infeasible, _ = model.run(replace(search, time_limit=deadline.remaining))
    return ExactResult(bases, ceiling + 1 if infeasible else 0)


def _dives(time_limit: float, orders: int) -> list[float]:
    """Return the seconds of each round of dives: doubling, and half the time limit in all."""
    rounds: list[float] = []
    dive, left = 0.25, time_limit / 2
    while orders and dive * orders <= left:
        rounds.append(dive)
        left -= dive * orders
        dive *= 2
    return rounds


def minimize(
    items: Sequence[Item],
    members: Sequence[int],
    start: Sequence[int],
    limits: tuple[int, int],
    search: Search,
) -> ExactResult:
    """Search for the lowest packing of `members`, given that `start` ends at `limits[1]`.

    `limits` are the proven lower bound and the end to improve on.
    """
    deadline = Deadline.after(search.time_limit)
    try:
        model = _Model(items, members, limits[1], deadline)
    except OutOfTime:
        return ExactResult(None, limits[0])
    model.minimize_end(*limits)
    model.hint(start)
    bases, _, bound = model.run(replace(search, time_limit=deadline.remaining))
    return ExactResult(bases, max(limits[0], bound))
