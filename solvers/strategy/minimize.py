"""The solver's course: reduce, bound, round, fix, repeat; then search what is left."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from math import ceil, inf, isfinite

import numpy as np

from braid.solvers.cp_sat import has_cp_sat
from braid.solvers.deadline import Deadline
from braid.solvers.strategy.annealing import Annealing
from braid.solvers.strategy.dive import dive
from braid.solvers.strategy.dual import DualAscent
from braid.solvers.strategy.elimination import (
    components,
    eliminate,
    elimination_order,
    independent_parts,
)
from braid.solvers.strategy.fixing import fix_by_bound
from braid.solvers.strategy.neighbourhood import NeighbourhoodSearch, subproblem
from braid.solvers.strategy.presolve import presolve
from braid.solvers.strategy.pricing import ascend
from braid.solvers.strategy.problem import InfeasibleAssignment, Integers, Vector
from braid.solvers.strategy.residual import Residual

TABLE_LIMIT = 1 << 22
"""Largest table, in cells, that dynamic programming builds for a component."""

ROUNDING = 1e-13
"""The change of a sum by adding up in another order, per unit of the terms' absolute values."""

_DEARER = (1.0, 1.02, 1.1, 1.5, 4.0)
"""Factors of the prices at which choices are mended, until one can be."""
_ANNEALINGS = 4
"""Most annealings before a search of neighbourhoods."""
SLICE = 4.0
"""Seconds of the first round."""
_PRESOLVING = 0.2
"""Share of that for reducing the problem, twice; afterwards reductions go on."""
SLICE_CELLS = 50_000
"""Cells of a problem for which the first round takes a second more."""


@dataclass
class Limits:
    """The limits of a search in time and sizes, with its threads and its source of randomness.

    Attributes:
        deadline: when to stop.
        slice: seconds that the steps of a round share. It grows from round to round and does not
            depend on the deadline, so that a later deadline continues what an earlier one cuts.
        workers: threads of the exact search.
        rng: source of all random decisions.
        exact_cells: size of a residual up to which it is given to the exact search.
        iterations: most iterations of one ascent of the dual bound.
        depth: 0 for the whole problem, 1 for a neighbourhood.
    """

    deadline: Deadline
    workers: int
    rng: np.random.Generator
    exact_cells: int = 500_000
    iterations: int = 500
    depth: int = 0
    slice: float = SLICE

    def share(self, part: float) -> Deadline:
        """Return the deadline of a step that may take `part` of the slice."""
        return self.deadline.earlier(Deadline.after(part * self.slice))

    def presolving(self, problem: Residual) -> Deadline:
        """Return the deadline of reducing a whole problem."""
        return self.deadline.earlier(Deadline.after(_PRESOLVING * first_slice(problem)))


def first_slice(problem: Residual) -> float:
    """Return the seconds of the first round."""
    return SLICE + problem.cells() / SLICE_CELLS


@dataclass
class Minimizer:
    """Best choice and bound of one residual problem, improved step by step.

    Attributes:
        entry: the problem; never changed.
        limits: time and randomness.
        choice: best known, per node of `entry`, or None.
        cost: of `choice`; ``inf`` without one.
        bound: no feasible choice costs less.
        pending: nodes that reductions have yet to look at; None for all.
        log: milestones: ``(seconds, phase, cost, bound, nodes left)``.
    """

    entry: Residual
    limits: Limits
    choice: Integers | None = None
    cost: float = inf
    bound: float = -inf
    pending: set[int] | None = None
    log: list[tuple[float, str, float, float, int]] = field(
        default_factory=list[tuple[float, str, float, float, int]]
    )

    def __post_init__(self) -> None:
        """Start from a copy of the entry problem."""
        self._began = time.monotonic()
        self._work = self.entry.fresh_copy()
        self._prices: dict[int, float] = {}
        self._rounding = 0.0
        self._annealing: Annealing | None = None
        if self.limits.depth == 0:
            slice_ = max(self.limits.slice, first_slice(self.entry))
            self.limits = replace(self.limits, slice=slice_)

    @property
    def proven(self) -> bool:
        """Return whether nothing better than `cost` can exist."""
        return self.cost < inf and self.cost - self.bound <= self._tolerance()

    def run(self) -> None:
        """Improve cost and bound until they meet or time is up.

        Raises:
            InfeasibleAssignment: it is proven that no feasible choice exists.
        """
        try:
            self._presolve()
            self._note("presolve")
            while not self.proven and self._narrow():
                pass
            if not self.proven:
                self._search()
        except InfeasibleAssignment:
            if self.choice is None:
                raise
            self.bound = self.cost  # nothing is left that is better than the best known

    def _presolve(self) -> None:
        """Reduce what is pending, for a share of the slice, or as long as it gets much smaller."""
        while self.pending is None or self.pending:
            before = self._work.cells()
            self.pending = presolve(self._work, self.limits.share(_PRESOLVING), self.pending)
            if self.limits.deadline.passed or self._work.cells() > 0.95 * before:
                break

    def _narrow(self) -> bool:
        """Bound, round and fix; return whether the problem shrinks enough to do so again."""
        self._decide_components()
        if self.proven or self.limits.deadline.passed or self._split():
            return False
        cells, gap = self._work.cells(), self.cost - self.bound
        dual = self._ascend()
        if not self.limits.deadline.passed:
            self._round(dual)
        if self.proven or self.limits.deadline.passed:
            return False
        dual.write_back(self._work)
        if self.cost == inf:
            self.limits.slice *= 2  # until something fits
            large = self._work.cells() > self.limits.exact_cells
            return bool(large and self._work.alive and self._work.capacity.size)
        assert self.pending is not None
        self.pending |= fix_by_bound(self._work, dual, self.cutoff(), self.limits.deadline)
        self._presolve()
        self._note("fix")
        closing = self.cost - self.bound <= 0.9 * gap
        return closing or self._work.cells() <= 0.8 * cells

    def _decide_components(self) -> None:
        """Solve every component without memory rows and with narrow tables exactly."""
        for members in components(self._work):
            if self.limits.deadline.passed:
                break
            if any(self._work.loads[node] for node in members):
                continue
            until = self.limits.share(0.5)
            order = elimination_order(self._work, members, largest=TABLE_LIMIT, deadline=until)
            if order is not None and order.total <= 16 * TABLE_LIMIT:
                eliminate(self._work, order)
        if not self._work.alive:
            self._offer(np.zeros(len(self._work.costs), dtype=np.int64))
            self.bound = max(self.bound, min(self._work.constant, self.cost))
            self._note("elimination")

    def _split(self) -> bool:
        """Solve parts that nothing couples one by one; return False if there is only one part."""
        parts = independent_parts(self._work)
        if len(parts) < 2:
            return False
        choice = np.zeros(len(self._work.costs), dtype=np.int64)
        bound = self._work.constant
        subproblems = [subproblem(self._work, nodes, choice) for nodes in parts]
        cells = [part.cells() for part in subproblems]
        complete = True
        for k, (nodes, part) in enumerate(zip(parts, subproblems, strict=True)):
            deadline = self.limits.deadline.share(cells[k] / sum(cells[k:]))
            search = Minimizer(part, replace(self.limits, deadline=deadline))
            search.run()
            bound += search.cost if search.proven else search.bound
            if search.choice is None:
                complete = False
            else:
                choice[nodes] = search.choice
        if complete:
            self._offer(choice)
        self._raise_bound(bound)
        self._note("parts")
        return True

    def _ascend(self) -> DualAscent:
        """Improve the bound; return the reparametrized costs that prove it."""
        prices = np.array([self._prices.get(t, 0.0) for t in self._work.times.tolist()])
        dual = DualAscent(self._work, prices)
        ascent = ascend(
            dual,
            iterations=self.limits.iterations,
            deadline=self.limits.share(0.3 if self.cost < inf else 0.1),  # steps need a target
            target=self.cost,
            tolerance=1e-3 * (self.cost - self.bound) if self.bound > -inf else inf,
        )
        self._remember(ascent.prices)
        self._raise_bound(ascent.bound)
        self._note("dual")
        return dual

    def _remember(self, prices: Vector) -> None:
        self._prices = dict(zip(self._work.times.tolist(), prices.tolist(), strict=True))

    def _round(self, dual: DualAscent) -> None:
        """Look for a better choice near the dual solution."""
        if not self.limits.depth:
            self._repair(dual)
            if self.choice is not None and self._work.cells() > self.limits.exact_cells:
                self._polish(self.limits.share(0.3), idle=30)
                return
        ascending = list(range(len(dual.nodes)))
        for order in (ascending, ascending[::-1]):
            if self.choice is not None and self.limits.deadline.passed:
                break
            found = dive(self._work, dual, order=order, deadline=self.limits.share(0.2))
            if found is not None:
                self._offer(found)
        if self.choice is None and self._work.capacity.size:
            self._round_frugally(dual)
        self._note("dive")
        if self.choice is None or self.proven or self.limits.depth:
            return
        close = self.cost - self.bound <= 1e-3 * abs(self.cost)
        if not (close and self._work.cells() <= self.limits.exact_cells):
            self._polish(self.limits.share(0.1), idle=30)

    def _repair(self, dual: DualAscent) -> None:
        """Repair the nodes' own best choices, with growing prices of memory until they fit."""
        if self._annealing is None:
            self._annealing = Annealing(self.entry)
        prices, deadline = dual.prices, self.limits.share(0.2)
        for dearer in _DEARER if prices.size else _DEARER[:1]:
            if deadline.passed or self.proven:
                break
            if dearer > 1:
                dual.reprice(dearer * prices)
                dual.sweep(forward=True, deadline=deadline)
                dual.sweep(forward=False, deadline=deadline)
            choice = np.zeros(len(self._work.costs), dtype=np.int64)
            choice[dual.nodes] = dual.choice()
            known = self._entry_prices()
            found = self._annealing.repair(
                self._work.complete(choice), known, deadline.share(0.5), self.limits.rng
            )
            if found is not None:
                self._accept(found)
                break
        dual.reprice(prices)
        self._note("repair")

    def _entry_prices(self) -> Vector:
        return np.array([self._prices.get(time, 0.0) for time in self.entry.times.tolist()])

    def _round_frugally(self, dual: DualAscent) -> None:
        """Dive with ever dearer memory until something fits; the prices of `dual` are restored."""
        prices = dual.prices
        level = (abs(self.bound) + 1.0) / float(dual.capacity.sum() + 1.0)
        for power in range(8):
            dual.reprice(prices + level * 8.0**power / 8.0)
            found = dive(self._work, dual, failures=20, deadline=self.limits.share(0.2))
            if found is not None:
                self._offer(found)
                break
        dual.reprice(prices)

    def _polish(self, deadline: Deadline, idle: int) -> None:
        """Search large neighbourhoods of the best known choice."""
        assert self.choice is not None
        self._anneal(Deadline.after(deadline.remaining / 2))
        search = NeighbourhoodSearch(self.entry, self.choice.copy(), self.cost, self.limits.rng)
        goal = self.bound + self._tolerance()
        search.run(self._solve_part, deadline=deadline, idle=idle, goal=goal)
        self._accept(search.choice)
        self._note("neighbourhoods")

    def _anneal(self, deadline: Deadline) -> None:
        """Anneal from the best known choice, at the prices of the bound."""
        assert self.choice is not None
        if self._annealing is None:
            self._annealing = Annealing(self.entry)
        prices = self._entry_prices()
        for left in range(_ANNEALINGS, 0, -1):
            if self.proven or deadline.passed:
                break
            until = deadline.share(1 / left)
            self._accept(self._annealing.run(self.choice, prices, until, self.limits.rng))
        self._note("annealing")

    def _solve_part(
        self, part: Residual, current: Integers, deadline: Deadline
    ) -> tuple[Integers, bool]:
        limits = Limits(deadline, 1, self.limits.rng, 50_000, 60, depth=1, slice=1.0)
        inner = Minimizer(part, limits, current, part.cost_of(current))
        inner.run()
        assert inner.choice is not None
        return inner.choice, inner.proven

    def _search(self) -> None:
        """Spend the remaining time on what is left: exactly if it is small, nearby, and narrowing.

        Alternate between all of them, each time for twice as long, so that none waits long.
        """
        affordable = self.limits.exact_cells * (4 if self.choice is None else 1)
        is_small = has_cp_sat() and self._work.cells() <= affordable
        while not self.proven and not self.limits.deadline.passed:
            if is_small:
                self._search_exactly(self.limits.share(0.5 if self.limits.depth == 0 else inf))
            if self.limits.depth:
                return
            if self.choice is not None and not self.proven:
                self._polish(self.limits.share(0.5), idle=1 << 30)
            elif not is_small:
                return
            if not has_cp_sat():
                return  # the rest would be searched in vain until the deadline
            self.limits.slice *= 2
            if not self.proven:
                self._narrow()
                is_small = self._work.cells() <= affordable

    def _search_exactly(self, deadline: Deadline) -> None:
        # Here, since CP-SAT takes half a second to import and is seldom needed.
        from braid.solvers.strategy.exact import solve_exactly

        result = solve_exactly(
            self._work,
            deadline=deadline,
            workers=self.limits.workers,
            seed=int(self.limits.rng.integers(1 << 30)),
            cutoff=self.cutoff(),
            tolerance=self._tolerance(),
        )
        if result.choice is not None:
            self._offer(result.choice)
        if result.bound == inf and self.choice is None:
            raise InfeasibleAssignment(
                "an exhaustive search found no assignment that avoids every forbidden pair"
                " within the memory limit"
            )
        self._raise_bound(result.bound)
        self._note("exact")

    def cutoff(self) -> float:
        """Return the largest cost that is still an improvement."""
        return self.cost - (0.5 if self.entry.integral else self._tolerance())

    def _tolerance(self) -> float:
        """Return what the cost may exceed the bound by: nothing, but for how floats are
        added up.
        """
        if self.entry.integral:
            return 0.5
        return max(1e-9 * abs(self.cost), self._rounding) if isfinite(self.cost) else 0.0

    def _raise_bound(self, bound: float) -> None:
        """Take over a bound of the residual, which holds up to the best known cost."""
        if self.entry.integral and isfinite(bound):
            bound = float(ceil(bound - 1e-2))
        self.bound = max(self.bound, min(bound, self.cost))
        if self.bound == inf:
            raise InfeasibleAssignment("the forbidden pairs leave no assignment")

    def _offer(self, found: Integers) -> None:
        """Consider a choice of the reduced problem."""
        self._accept(self._work.complete(found))

    def _accept(self, choice: Integers) -> None:
        cost = self.entry.cost_of(choice)
        if cost < self.cost:
            self.choice, self.cost = choice.copy(), cost
            self._rounding = ROUNDING * self.entry.magnitude_of(choice)

    def _note(self, phase: str) -> None:
        elapsed = time.monotonic() - self._began
        self.log.append((elapsed, phase, self.cost, self.bound, len(self._work.alive)))
