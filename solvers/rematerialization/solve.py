"""The entry point: the shortest schedule within a budget, with a bound."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from time import monotonic

from braid.solvers.rematerialization.improve import improvement_rounds
from braid.solvers.rematerialization.minimum import Need, minimum_budget, structural_need
from braid.solvers.rematerialization.order import candidate_orders
from braid.solvers.rematerialization.problem import InfeasibleBudgetError, Problem, Schedule
from braid.solvers.rematerialization.progress import Progress
from braid.solvers.rematerialization.prove import proof_rounds, relaxation_is_infeasible
from braid.solvers.rematerialization.simulate import simulate
from braid.solvers.rematerialization.start import find_schedule, first_schedule

_ORDERS = 8
"""Orders of first executions that the heuristics start from."""
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
    if budget < need.bytes:
        raise _infeasible(problem, budget, need, time_limit, seed)
    orders = candidate_orders(problem, seed, 1 if fixed_order else _ORDERS)
    sequence = first_schedule(
        problem,
        budget,
        orders,
        enough=begin + 0.1 * time_limit,
        give_up=begin + 0.5 * time_limit,
        fixed_order=fixed_order,
    )
    if sequence is None and not fixed_order:
        sequence = find_schedule(problem, budget, 0.3 * time_limit, seed)
    if sequence is None:
        if relaxation_is_infeasible(problem, budget, 0.1 * time_limit, seed):
            need = replace(need, bytes=budget + 1)
        raise _infeasible(problem, budget, need, time_limit - (monotonic() - begin), seed)
    progress = Progress(
        problem, budget, sequence, begin + _SHARE * time_limit, fixed_order=fixed_order
    )
    improving = improvement_rounds(progress, seed)
    proving = proof_rounds(progress, seed)
    if workers < 2:
        _alternate(progress, proving, improving)
    else:
        with ThreadPoolExecutor(2) as pool:
            for future in [pool.submit(_exhaust, progress, side) for side in (proving, improving)]:
                future.result()
    return _schedule(progress)


def _infeasible(
    problem: Problem, budget: int, need: Need, seconds: float, seed: int
) -> InfeasibleBudgetError:
    least = minimum_budget(problem, time_limit=max(1.0, seconds), seed=seed)
    return InfeasibleBudgetError(
        budget,
        lower_bound=need.bytes,
        smallest_found=least.found,
        blamed_ops=need.ops,
        blamed_tensors=need.tensors,
    )


def _exhaust(progress: Progress, rounds: Iterator[None]) -> None:
    while not progress.closed and progress.remaining > 0:
        if next(rounds, True):
            return


def _alternate(progress: Progress, *sides: Iterator[None]) -> None:
    """Give the next round to the side that has used the least time."""
    spent = dict.fromkeys(sides, 0.0)
    while spent and not progress.closed and progress.remaining > 0:
        side = min(spent, key=spent.__getitem__)
        begin = monotonic()
        if next(side, True):
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
