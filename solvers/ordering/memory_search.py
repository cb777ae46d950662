"""Least peak memory: lists, exact search between key nodes, then annealing, beams and windows."""

from collections.abc import Sequence
from random import Random

from braid.solvers.deadline import Deadline
from braid.solvers.ordering.graph import cut_after, key_nodes
from braid.solvers.ordering.memory import MemoryProblem
from braid.solvers.ordering.memory_annealing import MemoryAnnealer
from braid.solvers.ordering.memory_ideals import (
    MAX_OPS,
    ExactOrder,
    IdealTable,
    beam_search,
    least_peak,
)

EXACT_OPS = 1500
"""Pieces with more ops are not searched exactly: their ideals would fill the memory."""
WINDOW_STATES = 20_000
LISTING = 0.1
"""Share of the time for list schedules."""
_LOOK, _RESTRICTED = 1e-6, 1e-6
"""Seconds per op to evaluate an order, and to turn a window of it into a problem."""
FRUITLESS = 8
"""Annealings in a row that gain nothing, after which there is no other."""


def improve_memory(
    problem: MemoryProblem,
    start: list[int],
    deadline: Deadline,
    seed: int,
    good_enough: float,
    only_good: bool = False,
) -> tuple[list[int], int]:
    """Return an order no worse than `start`, and a lower bound on all orders.

    With `only_good`, a bound above `good_enough` ends the search.
    """
    search = _MemorySearch(problem, start, deadline, seed, good_enough, only_good)
    search.make_lists()
    search.solve_pieces()
    search.anneal(0.5)
    search.widen_beams()
    search.reorder_windows()
    search.anneal(1.0)
    return search.order, search.bound


class _MemorySearch:
    """The best order so far and what is proven."""

    def __init__(
        self,
        problem: MemoryProblem,
        start: list[int],
        deadline: Deadline,
        seed: int,
        good_enough: float,
        only_good: bool,
    ) -> None:
        self.problem = problem
        self.order = start
        self.value = problem.evaluate(start)
        self.bound = problem.lower_bound()
        self.deadline = deadline
        self.random = Random(seed)
        self.good_enough = good_enough
        self.only_good = only_good
        self._annealer: MemoryAnnealer | None = None

    @property
    def finished(self) -> bool:
        """True if there is nothing to gain or no time."""
        if self.only_good and self.bound > self.good_enough:
            return True
        return self.value <= max(self.bound, self.good_enough) or self.deadline.passed

    def _evaluate(self, order: Sequence[int]) -> int:
        self.deadline.spend(_LOOK * len(order))
        return self.problem.evaluate(order)

    def _adopt(self, order: Sequence[int] | None) -> None:
        if order is None:
            return
        value = self._evaluate(order)
        if value < self.value:
            self.order, self.value = list(order), value

    def _anneal(self) -> MemoryAnnealer:
        if self._annealer is None:
            self._annealer = MemoryAnnealer(self.problem, self.order, self.random.getrandbits(32))
        return self._annealer

    @property
    def _target(self) -> int:
        return max(self.bound, int(self.good_enough))

    def make_lists(self) -> None:
        """Begin with the best of many list schedules: exact search looks below it only."""
        if self.finished:
            return
        annealer = self._anneal()
        annealer.try_lists(self._target, self.deadline.share(LISTING))
        self._adopt(annealer.order)

    def anneal(self, share: float) -> None:
        """Anneal for a share of the time that is left, until nothing is gained any more."""
        deadline, fruitless = self.deadline.share(share), 0
        while not self.finished and not deadline.passed and fruitless < FRUITLESS:
            annealer, before = self._anneal(), self.value
            annealer.anneal(self._target, deadline)
            self._adopt(annealer.order)
            fruitless = 0 if self.value < before else fruitless + 1

    def solve_pieces(self) -> None:
        """Search between adjacent key nodes, each piece exactly up to its share of the time.

        Every op comes before or after a key node in all orders, so pieces are independent and
        the least peak is the greatest of theirs.
        """
        pieces = cut_after(key_nodes(self.problem.graph), self.order)
        hard: list[list[int]] = []
        done: list[int] = []
        order: list[int] = []
        during = dict(zip(self.order, self.problem.profile(self.order), strict=True))
        for piece in pieces:
            if len(piece) == 1:
                # All that comes before does so in every order.
                self.bound = max(self.bound, min(during[piece[0]][0], self.value))
                found = [0]
            elif self.finished:
                found = None
            else:
                local = self.problem.restrict(piece, done)
                found = self._solve_piece(local, len(piece) / len(self.order))
            done += piece
            order += [piece[op] for op in found] if found else piece
            if not found:
                hard.append(piece)
        if not hard or self._evaluate(order) < self.value:
            self._adopt(order)

    def _solve_piece(self, local: MemoryProblem, share: float) -> list[int] | None:
        if self.finished or len(local) > EXACT_OPS:
            self.bound = max(self.bound, local.lower_bound() if len(local) <= 200 else 0)
            return None
        level = max(self.bound, local.lower_bound())
        limit = self.deadline.share(max(0.6 * share, 0.1))
        small = len(local) <= MAX_OPS
        quick = limit.share(0.1) if small else limit
        result = least_peak(local, level, self.value, quick)
        if small and result.order is None and result.lower_bound < self.value:
            result = _tabulate(local, result.lower_bound, self.value, limit)
        self.bound = max(self.bound, min(result.lower_bound, self.value))
        return result.order

    def widen_beams(self) -> None:
        """Run beams of doubling width for a half of the time that is left."""
        deadline = self.deadline.share(0.5)
        width = 1
        while not self.finished and width <= 4096:
            order = beam_search(self.problem, width, self.bound, deadline)
            if order is None:
                return
            self._adopt(order)
            width *= 4

    def reorder_windows(self) -> None:
        """Reorder windows of the order around its peak, exactly, in growing size."""
        size, failures = 12, 0
        while not self.finished and failures < 200:
            window = self._window(min(size, len(self.order)))
            if self._reorder(*window):
                failures = 0
                continue
            failures += 1
            size = 12 + (size + 7) % 120

    def _window(self, size: int) -> tuple[int, int]:
        self.deadline.spend(_LOOK * len(self.order))
        peaks = [during for during, _ in self.problem.profile(self.order)]
        at = peaks.index(max(peaks))
        low = max(0, min(at - self.random.randrange(size), len(self.order) - size))
        return low, low + size

    def _reorder(self, low: int, high: int) -> bool:
        window = self.order[low:high]
        self.deadline.spend(_RESTRICTED * len(self.order))
        local = self.problem.restrict(window, self.order[:low])
        before = (
            local.evaluate(range(len(window))) if local.graph.is_order(range(high - low)) else 0
        )
        level = max(local.lower_bound(), self.bound)
        if before <= level:
            return False
        found = least_peak(local, level, before, self.deadline, WINDOW_STATES)
        if found.order is None or local.evaluate(found.order) >= before:
            return False
        self.order[low:high] = [window[op] for op in found.order]
        self.value = self._evaluate(self.order)
        return True


def _tabulate(problem: MemoryProblem, level: int, ceiling: int, deadline: Deadline) -> ExactOrder:
    """Return the least order below `ceiling`; where that takes too long, a better bound.

    The lower the ceiling the smaller the tables, so a search that is cut short is repeated with
    half the distance to the bound: that either finds an order or raises the bound.
    """
    goal = ceiling
    while level < goal and not deadline.passed:
        found = IdealTable(problem, level, goal, deadline).run()
        if found is None:
            goal = level + (goal - level) // 2
        elif found.order is not None:
            return found
        else:
            level, goal = goal, ceiling if goal == ceiling else goal + (ceiling - goal + 1) // 2
    return ExactOrder(None, level)
