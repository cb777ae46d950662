"""The entry of the partition solver."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np

from braid.solvers.cp_sat import has_cp_sat
from braid.solvers.deadline import Deadline, OutOfTime
from braid.solvers.partition.groups import Groups
from braid.solvers.partition.native import MOST_DEVICES, NativePartition
from braid.solvers.partition.problem import InfeasiblePartition, Objective, PartitionProblem, cost
from braid.solvers.partition.starts import first_fit, starts

_ENUMERATED = 16
"""Groups up to which branch and bound is tried before all else."""
_MOST_VARIABLES = 100_000
"""The most variables of an integer program that is worth building."""
_EXCHANGING = 0.25
"""Share of the time that is left for exact searches of pairs of devices."""
_WANTED_GAP = 0.01
"""First it is proven that there is nothing this much better, then that there is nothing better."""
_TOLERANCE = 1e-5
"""Relative error of the bounds of the integer program, whose costs are integers."""


@dataclass(frozen=True)
class Partition:
    """The device of every op, and how good that is.

    `cost` and `lower_bound` are seconds: no assignment costs less than the bound.
    """

    device: tuple[int, ...]
    cost: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """Return ``(cost - lower_bound) / cost``."""
        return (self.cost - self.lower_bound) / self.cost if self.cost else 0.0

    @property
    def proven(self) -> bool:
        """Return whether no assignment is better, up to the rounding of the search."""
        return self.gap <= _TOLERANCE


def solve(
    problem: PartitionProblem, *, time_limit: float = 60.0, seed: int = 0, workers: int = 1
) -> Partition:
    """Assign every op to a device so that the objective is least.

    Simulated annealing and exact searches of pairs of devices find assignments; where there are
    few groups, branch and bound, else an integer program proves how good they are, beside them
    where there are two workers.

    Args:
        problem: what to partition.
        time_limit: seconds after which the best answer so far is returned.
        seed: of all random decisions.
        workers: cores to use.

    Raises:
        InfeasiblePartition: an op or a set of colocated ones runs on no device, or memory is too
            small.
        TimeoutError: no assignment within the memories was found in time, though one may exist.
    """
    if problem.devices > MOST_DEVICES:
        raise InfeasiblePartition(f"{problem.devices} devices; at most {MOST_DEVICES} are possible")
    search = _PartitionSearch(problem, Deadline.after(time_limit), seed, workers)
    search.run()
    if search.device is None:
        raise TimeoutError(
            f"no assignment within the memories of the devices found in {time_limit:g} s; give"
            " more time or more memory"
        )
    return Partition(tuple(search.device), search.cost, min(search.bound, search.cost))


class _PartitionSearch:
    """The best assignment of ops so far, and the bound."""

    def __init__(
        self, problem: PartitionProblem, deadline: Deadline, seed: int, workers: int
    ) -> None:
        self.problem, self.deadline = problem, deadline
        self.seed, self.workers = seed, workers
        self.device: list[int] | None = None
        self.cost = float("inf")
        self.bound = 0.0

    def run(self) -> None:
        """Search until the best is proven or time is out."""
        groups = Groups.of_problem(self.problem)
        _require_runnable(groups)
        self.bound = _simple_bound(groups)
        if groups.count <= _ENUMERATED and self._enumerate(groups):
            return
        start = min(starts(groups), key=lambda device: self._cost_of(groups, device))
        self._anneal(groups, start, min(0.1 * self.deadline.remaining, 10.0))
        if self._done():
            return
        self._exchange(self.deadline.share(_EXCHANGING))
        from concurrent.futures import ThreadPoolExecutor  # brings logging

        with ThreadPoolExecutor(1) as beside:
            improving = beside.submit(self._improve) if self.workers > 1 else None
            with suppress(OutOfTime):
                self._prove()
            if improving is None:
                self._improve()
            else:
                improving.result()

    def _cost_of(self, groups: Groups, device: Sequence[int]) -> float:
        return cost(self.problem, groups.expand(device))

    def _done(self) -> bool:
        return self.cost <= self.bound * (1 + _TOLERANCE)

    def _found(self, device: Sequence[int]) -> None:
        """Keep an assignment of ops if it is the best one, by the definition of its cost."""
        seconds = cost(self.problem, device)
        if seconds < self.cost:
            self.device, self.cost = list(device), seconds

    def _found_groups(self, groups: Groups, device: Sequence[int]) -> None:
        self._found(groups.expand(device))

    def _anneal(self, groups: Groups, start: Sequence[int], seconds: float) -> None:
        enough = self.bound * (1 + _TOLERANCE)
        device, seconds = NativePartition(groups).anneal(start, seconds, enough, self.seed)
        self.seed += 1
        if seconds < float("inf"):
            self._found(groups.expand(device))

    def _improve(self) -> None:
        """Search until the time is over, in parts, so that each continues from the best result so
        far."""
        while not self._done() and self.deadline.remaining > 0.01:
            self._exchange(self.deadline.share(_EXCHANGING))
            groups = Groups.of_problem(self.problem, self.cost)
            self._anneal(groups, self._start(groups), max(self.deadline.remaining / 3, 0.2))

    def _exchange(self, until: Deadline) -> None:
        """Assign the groups of pairs of devices anew while that helps."""
        from braid.solvers.partition.exchange import exchange  # it takes long to load

        groups = Groups.of_problem(self.problem, self.cost)
        if self._done() or self.device is None or _variables(groups) > _MOST_VARIABLES:
            return
        self.seed += 1
        self._found_groups(groups, exchange(groups, self._start(groups), until, self.seed))

    def _start(self, groups: Groups) -> list[int]:
        """Return the best assignment so far by groups."""
        if self.device is None:
            return first_fit(groups)
        device = [0] * groups.count
        for op, group in enumerate(groups.of):
            device[group] = self.device[op]
        return device

    def _enumerate(self, groups: Groups) -> bool:
        """Run branch and bound for half of the time; return whether that proved the best one."""
        start, seconds = first_fit(groups), 0.5 * self.deadline.remaining
        device, found, complete = NativePartition(groups).exact(start, self.cost, seconds)
        if found < self.cost:
            self._found(groups.expand(device))
        if complete and self.device is None:
            raise InfeasiblePartition("the memories of the devices are too small for all ops")
        if complete:
            self.bound = self.cost
        return complete

    def _prove(self) -> None:
        """Raise the bound, and find what is better on the way, where CP-SAT is installed."""
        if not has_cp_sat():
            return
        from braid.solvers.partition.cp_sat import PartitionModel  # it takes long to load

        # In several steps, since a better assignment makes the first proof easier.
        for gap, share in (*((_WANTED_GAP, part) for part in (0.3, 0.4, 0.7)), (0.0, 1.0)):
            if self._done() or self.device is None or self.deadline.remaining < 0.05:
                return
            limit = (1 - gap) * self.cost
            if self.bound >= limit * (1 - _TOLERANCE):
                continue
            groups = Groups.of_problem(self.problem, limit)
            if _variables(groups) > _MOST_VARIABLES:
                return
            until = self.deadline.share(share)
            model = PartitionModel(groups, limit, until)
            # Several strategies for each core: which one succeeds is not known before.
            proof = model.solve(until, 2 * self.workers, partial(self._found_groups, groups))
            self.bound = max(self.bound, proof.lower_bound)


def _variables(groups: Groups) -> int:
    """Return about how many variables the integer program has."""
    return (groups.count + sum(map(len, groups.readers))) * groups.problem.devices


def _require_runnable(groups: Groups) -> None:
    """Check that each group runs somewhere. Raises InfeasiblePartition."""
    runs = np.isfinite(groups.seconds)
    capacity = groups.problem.capacity
    least = [min(capacity[k] for k in groups.problem.on(d)) for d in range(groups.problem.devices)]
    fits = groups.bytes[:, None] <= np.array(least)
    for group in np.flatnonzero(~(runs & fits).any(axis=1)).tolist():
        ops = [op for op, number in enumerate(groups.of) if number == group]
        why = "memory for" if runs[group].any() else "support of"
        raise InfeasiblePartition(f"no device has {why} op {ops[0]} and those it runs with: {ops}")


def _simple_bound(groups: Groups) -> float:
    """Return the least work of all groups, shared evenly by the devices, or the dearest one's."""
    problem = groups.problem
    least = groups.seconds.min(axis=1, initial=np.inf)
    if not len(least):
        return 0.0
    copies = np.array([len(problem.on(k)) for k in range(problem.devices)], float)
    total = float((groups.seconds * copies).min(axis=1).sum())
    if problem.objective is Objective.LATENCY:
        return total
    return max(total / problem.single, float(least.max()))
