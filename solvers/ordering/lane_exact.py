"""The least makespan on identical lanes by constraint programming: one cumulative resource."""

from dataclasses import dataclass
from math import ceil, floor, isfinite

from ortools.sat.python import cp_model

from braid.solvers.ordering.lanes import Choice, LaneProblem

TICKS = 10**9
"""Of the best known makespan: durations are whole numbers of them, rounded down."""


@dataclass(frozen=True)
class ExactLanes:
    """A schedule, None where none was found, and what no schedule is faster than."""

    choice: Choice | None
    lower_bound: float


def exact_lanes(
    problem: LaneProblem, known: Choice, value: float, time_limit: float, seed: int
) -> ExactLanes:
    """Search from the schedule `known`, whose makespan is `value` > 0, for `time_limit` seconds."""
    if time_limit <= 0:
        return ExactLanes(None, 0.0)
    tick = value / TICKS
    model = cp_model.CpModel()
    horizon = ceil(value / tick) + 1
    starts = [model.new_int_var(0, horizon, "") for _ in range(len(problem))]
    ends = [model.new_int_var(0, horizon, "") for _ in range(len(problem))]
    modes: list[cp_model.IntVar] = []
    intervals: list[cp_model.IntervalVar] = []
    demands: list[int] = []
    for op, pair in enumerate(zip(problem.alone, problem.together, strict=True)):
        wide = model.new_bool_var("")
        modes.append(wide)
        for seconds, chosen, demand in zip(
            pair, (wide.negated(), wide), (1, problem.lanes), strict=True
        ):
            if not isfinite(seconds):
                model.add(chosen == 0)
                continue
            length = floor(seconds / tick)
            interval = model.new_optional_interval_var(starts[op], length, ends[op], chosen, "")
            if length:
                intervals.append(interval)
                demands.append(demand)
        for before in problem.graph.predecessors[op]:
            model.add(ends[before] <= starts[op])
    model.add_cumulative(intervals, demands, problem.lanes)
    makespan = model.new_int_var(0, horizon, "")
    model.add_max_equality(makespan, ends)
    model.minimize(makespan)
    placed = problem.place(known)
    for op, start in enumerate(placed.starts):
        model.add_hint(starts[op], floor(start / tick))
        model.add_hint(modes[op], known[1][op])
    return _solve(problem, model, starts, modes, tick, time_limit, seed)


def _solve(
    problem: LaneProblem,
    model: cp_model.CpModel,
    starts: list[cp_model.IntVar],
    modes: list[cp_model.IntVar],
    tick: float,
    time_limit: float,
    seed: int,
) -> ExactLanes:
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = time_limit
    solver.parameters.random_seed = seed
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    bound = solver.best_objective_bound * tick
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return ExactLanes(None, bound)
    rank = {op: place for place, op in enumerate(problem.graph.topological_order)}
    order = sorted(rank, key=lambda op: (solver.value(starts[op]), rank[op]))
    return ExactLanes((order, [bool(solver.value(mode)) for mode in modes]), bound)
