"""The entry point: the shortest schedule within a budget, with a bound."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from time import monotonic

from braid.solvers.deadline import Deadline, OutOfTime
from braid.solvers.rematerialization.compose import schedule_parts
from braid.solvers.rematerialization.improve import improvement_rounds
from braid.solvers.rematerialization.minimum import (
    MinimumBudget,
    Need,
    minimum_budget,
    structural_need,
)
from braid.solvers.rematerialization.order import candidate_orders
from braid.solvers.rematerialization.parts import PART
from braid.solvers.rematerialization.plain_order import least_memory_order
from braid.solvers.rematerialization.problem import InfeasibleBudgetError, Problem, Schedule
from braid.solvers.rematerialization.progress import Progress
from braid.solvers.rematerialization.prove import proof_rounds, relaxation_is_infeasible
from braid.solvers.rematerialization.simulate import simulate
from braid.solvers.rematerialization.start import find_schedule, first_schedule

_ORDERS = 8
"""Orders of first executions that the heuristics start from."""
_COMPOSING = 0.45
"""Share of the time limit for schedules of parts of the graph."""
_ORDERING = 0.15
"""Share of the time limit for an order that needs no recomputation."""
_PART_SECONDS = 0.25
"""Least time for a part."""
_LEAST = 2
"""Ops of the smallest parts that are scheduled alone."""
_SHARE = 0.93
"""Share of the time limit after which no search is begun: CP-SAT ends a little late."""


def solve(
    problem: Problem,
    budget: int,
    *,
    time_limit: float = 60.0,
    seed: int = 0,
    workers: int = 1,
    fixed_order: bool = False,
) -> Schedule:
    """Return the shortest schedule found whose peak is at most `budget` bytes.

    Order and recomputation are chosen together; with `fixed_order` the first executions keep the
    order of `problem.ops`. Stops when the schedule is proven optimal or `time_limit` seconds have
    passed. With `workers` >= 2, one thread improves the schedule while another proves bounds; with
    one they take turns.

    Raises InfeasibleBudgetError when a single op needs more than `budget` or the relaxation has no
    solution (both are proofs), or when no schedule within it was found.
    """
    begin = monotonic()
    need = structural_need(problem)
    composed = begin + _COMPOSING * time_limit
    search = _RematerializationSearch(begin, time_limit, composed, seed, workers, fixed_order, [])
    if budget < need.bytes:
        raise _infeasible(budget, need, _minimum(problem, search))
    progress = _search(problem, budget, search, PART)
    if progress is None:
        if relaxation_is_infeasible(problem, budget, search.after(0.75), seed):
            need = replace(need, bytes=budget + 1)
        least = _minimum(problem, search)
        if least.found > budget:
            raise _infeasible(budget, need, least)
        progress = _progress(problem, budget, least.sequence, search)
    return _schedule(progress)


@dataclass(frozen=True)
class _RematerializationSearch:
    """The arguments of `solve`, and when it began; parts are scheduled alone until `composed`."""

    begin: float
    time_limit: float
    composed: float
    seed: int
    workers: int
    fixed_order: bool
    orders: list[tuple[int, ...]]
    """Orders of small peak that were found."""

    def after(self, share: float) -> Deadline:
        """Return when a share of the limit has passed."""
        return Deadline(self.begin + share * self.time_limit)


def _search(
    problem: Problem, budget: int, search: _RematerializationSearch, least: int
) -> Progress | None:
    """Return the best schedule, None where none was found; see `_compose` for `least`."""
    sequence = _start(problem, budget, search, least)
    if sequence is None:
        return None
    progress = _progress(problem, budget, sequence, search)
    improving = improvement_rounds(progress, search.seed)
    proving = proof_rounds(progress, search.seed)
    if search.workers < 2:
        _alternate(progress, proving, improving)
    else:
        with ThreadPoolExecutor(2) as pool:
            for future in [pool.submit(_exhaust, progress, side) for side in (proving, improving)]:
                future.result()
    return progress


def _progress(
    problem: Problem, budget: int, sequence: tuple[int, ...], search: _RematerializationSearch
) -> Progress:
    deadline = search.after(_SHARE)
    return Progress(problem, budget, sequence, deadline, fixed_order=search.fixed_order)


def _start(
    problem: Problem, budget: int, search: _RematerializationSearch, least: int
) -> tuple[int, ...] | None:
    """Return the better one of what the heuristics find and what the parts of the graph make up.

    Where neither is any, whatever an exact search finds. The parts of a part are asked only where
    the heuristics find nothing.
    """
    if simulate(problem, problem.required).peak <= budget:
        return problem.required
    orders = _orders(problem, budget, search)
    if simulate(problem, orders[-1]).peak <= budget:
        return orders[-1]
    composed = _compose(problem, budget, search, least) if least == PART else None
    found = first_schedule(
        problem,
        budget,
        chain(orders, candidate_orders(problem, search.seed, 1 if search.fixed_order else _ORDERS)),
        enough=search.after(0.3),
        give_up=search.after(0.5 if composed is None else 0.3),
        fixed_order=search.fixed_order,
    )
    starts = [sequence for sequence in (found, composed) if sequence is not None]
    if starts:
        return min(starts, key=lambda sequence: simulate(problem, sequence).duration)
    if least != PART and (composed := _compose(problem, budget, search, least)) is not None:
        return composed
    if search.fixed_order:
        return None
    return find_schedule(problem, budget, search.after(0.7), search.seed)


def _orders(
    problem: Problem, budget: int, search: _RematerializationSearch
) -> list[tuple[int, ...]]:
    """Return the given order, and unless it is fixed that of the least peak that is found."""
    if search.fixed_order:
        return [problem.required]
    ordering = search.after(_ORDERING)
    least = least_memory_order(problem, budget, ordering, search.seed, only_good=True)
    if not ordering.passed and simulate(problem, least).peak > budget:
        return [problem.required, least]  # none fits, and `least` may not be the least
    search.orders.append(least)
    return [problem.required, least]


def _compose(
    problem: Problem, budget: int, search: _RematerializationSearch, least: int
) -> tuple[int, ...] | None:
    """Return a schedule of parts of at least `least` ops, one after the other.

    Small parts are easier, large ones lose less at their cuts: parts are divided further only
    where they are too hard.
    """
    if least < _LEAST:
        return None

    def solve_part(part: Problem, limit: int, share: float) -> tuple[int, ...] | None:
        begin = monotonic()
        if limit < structural_need(part).bytes or begin > search.composed:
            return None
        seconds = max(_PART_SECONDS, share * (search.composed - begin))
        alone = replace(search, begin=begin, time_limit=seconds, workers=1, orders=[])
        progress = _search(part, limit, alone, least // 3)
        return None if progress is None else progress.sequence

    return schedule_parts(problem, budget, least, solve_part)


def _minimum(problem: Problem, search: _RematerializationSearch) -> MinimumBudget:
    """Return the least peak, in the time that is left and at least a fiftieth of the limit."""
    seconds = max(search.after(_SHARE).remaining, 0.02 * search.time_limit)
    orders = [problem.required] if search.fixed_order else search.orders
    return minimum_budget(
        problem,
        time_limit=seconds,
        seed=search.seed,
        orders=orders,
        fixed_order=search.fixed_order,
    )


def _infeasible(budget: int, need: Need, least: MinimumBudget) -> InfeasibleBudgetError:
    return InfeasibleBudgetError(
        budget,
        lower_bound=need.bytes,
        smallest_found=least.found,
        blamed_ops=need.ops,
        blamed_tensors=need.tensors,
    )


def _exhaust(progress: Progress, rounds: Iterator[None]) -> None:
    while not progress.closed and progress.remaining > 0:
        if _is_over(rounds):
            return


def _is_over(rounds: Iterator[None]) -> bool:
    """Run one round; return whether no round is left, or no time for one."""
    try:
        return bool(next(rounds, True))
    except OutOfTime:
        return True


def _alternate(progress: Progress, *sides: Iterator[None]) -> None:
    """Give the next round to the side that has used the least time."""
    spent = dict.fromkeys(sides, 0.0)
    while spent and not progress.closed and progress.remaining > 0:
        side = min(spent, key=spent.__getitem__)
        begin = monotonic()
        if _is_over(side):
            del spent[side]
        else:
            spent[side] += monotonic() - begin


def _schedule(progress: Progress) -> Schedule:
    result = simulate(progress.problem, progress.sequence)
    bound = result.duration
    if not progress.closed:
        bound = min(bound, progress.scale.bound(progress.problem, progress.bound))
    gap = (result.duration - bound) / result.duration if result.duration else 0.0
    return Schedule(
        progress.sequence, result.duration, result.peak, bound, gap, bound >= result.duration
    )
