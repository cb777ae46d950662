"""Partitioning as an integer program: proofs for hundreds of groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor, inf, isfinite

import numpy as np
from ortools.sat.python import cp_model

from braid.solvers.deadline import Deadline
from braid.solvers.partition.groups import Groups
from braid.solvers.partition.native import alike
from braid.solvers.partition.problem import Objective

_STEPS = 1_000_000
"""Integers in the cost of the assignment that the search begins with."""


@dataclass(frozen=True)
class Proof:
    """No assignment costs less than `lower_bound` seconds."""

    lower_bound: float
    complete: bool


class PartitionModel:
    """The integer program of groups that cost less than `cost` seconds. Raises OutOfTime.

    Seconds are rounded down to integers, so that its bound holds; a device that is used starts
    once, so that it is one where starts cost more, too.
    """

    def __init__(self, groups: Groups, cost: float, deadline: Deadline) -> None:
        self._groups, self._cost, self._deadline = groups, cost, deadline
        self._scale = _STEPS / cost
        self._model = cp_model.CpModel()
        devices = range(groups.problem.devices)
        self._on = [
            [self._model.new_bool_var("") if self._may_run(g, k) else None for k in devices]
            for g in range(groups.count)
        ]
        for row in self._on:
            self._model.add_exactly_one(v for v in row if v is not None)
        self._tell_devices_apart()
        each = [self._load(k) for k in devices]
        totals = [sum(each[r] for r in self._also(k)) for k in range(groups.problem.single)]
        if groups.problem.objective is Objective.LATENCY:
            self._model.minimize(sum(totals))
        else:
            largest = self._model.new_int_var(0, _STEPS, "")
            for total in totals:
                self._model.add(total <= largest)
            self._model.minimize(largest)

    def solve(self, deadline: Deadline, workers: int, found: Callable[[list[int]], None]) -> Proof:
        """Search until `deadline`; `found` receives assignments of groups as they are found."""
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = workers
        solver.parameters.symmetry_level = 2
        solver.parameters.max_time_in_seconds = max(deadline.remaining, 0.01)
        status = solver.solve(self._model, _Listener(self._on, found))
        if status == cp_model.INFEASIBLE:
            return Proof(self._cost, True)
        bound = solver.best_objective_bound / self._scale
        return Proof(max(bound, 0.0), status == cp_model.OPTIMAL)

    def _may_run(self, group: int, device: int) -> bool:
        seconds, problem = self._groups.seconds[group, device], self._groups.problem
        capacity = min(problem.capacity[k] for k in problem.on(device))
        fits = self._groups.bytes[group] <= capacity
        return bool(fits and isfinite(seconds) and seconds <= self._cost)

    def _also(self, device: int) -> list[int]:
        """Return a device that is not a replica, and the replicas that are on it."""
        problem = self._groups.problem
        return [k for k in range(problem.devices) if device in problem.on(k)]

    def _tell_devices_apart(self) -> None:
        """Break the symmetry of equal devices: the i-th one takes none of the first i groups."""
        first = alike(self._groups)
        rank = [first[:k].count(first[k]) for k in range(len(first))]
        work = np.nanmax(
            np.where(np.isfinite(self._groups.seconds), self._groups.seconds, 0), axis=1
        )
        for place, group in enumerate(np.argsort(-work, kind="stable")):
            for k, variable in enumerate(self._on[int(group)]):
                if variable is not None and rank[k] > place:
                    self._model.add_bool_and(variable.negated())

    def _load(self, device: int) -> cp_model.LinearExprT:
        """Return what `device` alone takes, in steps; keeps to its memory, with replicas."""
        groups, problem, model = self._groups, self._groups.problem, self._model
        here = [(g, row[device]) for g, row in enumerate(self._on)]
        runs = {g: variable for g, variable in here if variable is not None}
        terms = [self._steps(groups.seconds[g, device]) * variable for g, variable in runs.items()]
        for maker, readers in zip(groups.makers, groups.readers, strict=True):
            self._deadline.check()
            source = runs.get(groups.of[maker])
            receive = self._steps(problem.receive[maker, device])
            send = self._steps(problem.send[maker, device])
            comes = [runs[r] for r in readers if r in runs]
            if receive and comes:
                terms.append(receive * self._unless(comes, [] if source is None else [source]))
            if send and source is not None:
                terms.append(send * self._leaves(source, [runs.get(r) for r in readers]))
        if problem.start[device] and runs:
            starts = problem.start[device] * min(problem.runs, default=1.0)
            terms.append(self._steps(starts) * self._unless(list(runs.values()), []))
        if device < problem.single and isfinite(problem.capacity[device]):
            unit = max(problem.capacity[device] / 2**40, 1e-300)
            sizes = [floor(groups.bytes[g] / unit) for g in range(groups.count)]
            model.add(
                sum(
                    sizes[g] * variable
                    for k in self._also(device)
                    for g, row in enumerate(self._on)
                    if (variable := row[k]) is not None
                )
                <= 2**40
            )
        return sum(terms)

    def _unless(
        self, any_of: Sequence[cp_model.IntVar], but: Sequence[cp_model.IntVar]
    ) -> cp_model.IntVar:
        """Return whether one of the first is, while none of the others is."""
        result = self._model.new_bool_var("")
        for variable in any_of:
            self._model.add_bool_or(result, variable.negated(), *but)
        return result

    def _leaves(
        self, source: cp_model.IntVar, readers: Sequence[cp_model.IntVar | None]
    ) -> cp_model.IntVar:
        """Return whether the value of `source` has a reader elsewhere."""
        result = self._model.new_bool_var("")
        for reader in readers:
            with_reader = [] if reader is None else [reader]
            self._model.add_bool_or(result, source.negated(), *with_reader)
        return result

    def _steps(self, seconds: float) -> int:
        return floor(min(seconds * self._scale, 4.0 * _STEPS)) if seconds < inf else 0


class _Listener(cp_model.CpSolverSolutionCallback):
    """Hands each solution on as the devices of groups."""

    def __init__(
        self,
        on: Sequence[Sequence[cp_model.IntVar | None]],
        found: Callable[[list[int]], None],
    ) -> None:
        super().__init__()
        self._on, self._found = on, found

    def on_solution_callback(self) -> None:
        """Report a solution; the solver calls this."""
        self._found(
            [
                next(k for k, v in enumerate(row) if v is not None and self.boolean_value(v))
                for row in self._on
            ]
        )
