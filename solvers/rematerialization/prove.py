"""Lower bounds on the duration, in rounds of growing effort."""

from collections.abc import Iterator

from ortools.sat.python import cp_model

from braid.solvers.deadline import Deadline, OutOfTime
from braid.solvers.rematerialization.cp_sat import Limits, run_cp_sat
from braid.solvers.rematerialization.cut_model import CutModel
from braid.solvers.rematerialization.cuts import choose_cuts
from braid.solvers.rematerialization.neighbourhoods import every_schedule
from braid.solvers.rematerialization.parts import PART, cut_at_articulations, part_of
from braid.solvers.rematerialization.problem import Problem
from braid.solvers.rematerialization.progress import Progress
from braid.solvers.rematerialization.selection import SelectionModel
from braid.solvers.rematerialization.simulate import simulate

_CARRIED = 12_000
"""Most cuts times ops: larger relaxations are not solved in the time that smaller ones take."""
_PLACES = 400
"""Largest supersequence of all schedules that is worth solving."""


def proof_rounds(progress: Progress, seed: int) -> Iterator[None]:
    """Yield after each round; ends when nothing is left to try.

    For graphs with articulation nodes, bounds are first the sum over their parts. Then comes the
    relaxation with more and more cuts, each valid for all orders, and for tiny graphs finally the
    model of all schedules.
    """
    problem = progress.problem
    yield from prove_by_parts(progress, seed, PART)
    profile = simulate(problem, problem.required).profile
    count, solved = 1, -1
    while True:
        cuts = choose_cuts(problem, profile, problem.required, progress.budget, count)
        if len(cuts) == solved or (solved > 0 and len(cuts) * len(problem.required) > _CARRIED):
            break
        solved = len(cuts)
        model = CutModel(problem, cuts, progress.budget, progress.ticks, progress.until)
        outcome = progress.minimize(model.cp, _seconds(progress), seed)
        progress.raise_bound(outcome.bound)
        yield
        count = 4 if count == 1 else 2 * count
    yield from _prove_exactly(progress, seed)


def prove_by_parts(progress: Progress, seed: int, least: int) -> Iterator[None]:
    """Raise the bound by the needs of parts with at least `least` ops beyond one run of each op.

    Yields after each part.
    """
    problem, durations = progress.problem, progress.scale.durations
    parts = cut_at_articulations(problem, least)
    if len(parts) == 1:
        return
    budget = progress.budget - problem.pinned_bytes
    bound = float(sum(durations[op] for op in problem.required))
    for index, ops in enumerate(parts):
        part = part_of(problem, ops, durations)
        profile = simulate(part, part.required).profile
        cuts = choose_cuts(part, profile, part.required, budget, max(1, _CARRIED // len(ops)))
        if not cuts:
            continue
        model = CutModel(part, cuts, budget, None, progress.until)
        seconds = max(1.0, progress.remaining / 3 / (len(parts) - index))
        ticks = progress.minimize(model.cp, seconds, seed).bound * model.scale.tick
        bound += max(0.0, ticks - part.base_duration)
        progress.raise_bound(bound)
        yield


def _seconds(progress: Progress) -> float:
    return max(1.0, progress.remaining / 3)


def _most_executions(progress: Progress) -> int:
    """Return a number of executions that a schedule at least as good as the best need not exceed.

    An execution is useful if a reader needs it; one beyond an op's first costs its duration.
    """
    problem, durations = progress.problem, progress.scale.durations
    spare = progress.ticks - sum(durations[op] for op in problem.required)
    most: dict[int, int] = {}
    for op in reversed(problem.required):
        outputs = problem.ops[op].outputs
        uses = sum(most.get(user, 0) for tensor in outputs for user in problem.consumers[tensor])
        uses += sum(tensor in problem.outputs for tensor in outputs)
        limit = max(1, uses)
        if durations[op]:
            limit = min(limit, 1 + spare // durations[op])
        most[op] = limit if problem.ops[op].recomputable else 1
    return sum(most.values())


def _prove_exactly(progress: Progress, seed: int) -> Iterator[None]:
    problem = progress.problem
    passes = max(_most_executions(progress), len(progress.sequence))
    if passes * len(problem.required) > _PLACES:
        return
    candidates = every_schedule(problem, progress.sequence, passes)
    model = SelectionModel(problem, candidates.ops, progress.budget, progress.until)
    model.hint(candidates.chosen)
    model.minimize(progress.bound)
    outcome = progress.minimize(model.cp, progress.remaining, seed)
    if outcome.solver is not None and not progress.fixed_order:
        progress.offer(model.selected(outcome.solver))
    progress.raise_bound(outcome.bound)
    yield


def relaxation_is_infeasible(problem: Problem, budget: int, deadline: Deadline, seed: int) -> bool:
    """Return whether the relaxation proves that no schedule at all keeps `budget`."""
    profile = simulate(problem, problem.required).profile
    cuts = choose_cuts(problem, profile, problem.required, budget, 16)
    try:
        model = CutModel(problem, cuts, budget, None, deadline)
    except OutOfTime:
        return False
    limits = Limits(deadline.remaining, seed=seed)
    return run_cp_sat(cp_model.CpSolver(), model.cp, limits).infeasible
