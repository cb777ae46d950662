"""Groups of ops that every relevant assignment keeps together, and the values between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from braid.solvers.partition.disjoint_sets import DisjointSets
from braid.solvers.partition.problem import Objective, PartitionProblem, Seconds


@dataclass(frozen=True)
class Groups:
    """Sets of ops, by number, and the values that may be transferred between them.

    Attributes:
        of: by op, its group.
        seconds: group × device.
        bytes: by group.
        makers: by value, the op that makes it.
        readers: by value, the groups other than the maker's that read it, each once.
    """

    problem: PartitionProblem
    of: Sequence[int]
    seconds: Seconds
    bytes: Seconds
    makers: Sequence[int]
    readers: Sequence[Sequence[int]]

    @property
    def count(self) -> int:
        """Return the number of groups."""
        return len(self.bytes)

    @staticmethod
    def of_problem(problem: PartitionProblem, below: float = float("inf")) -> Groups:
        """Return the groups that every assignment with a cost below `below` keeps together.

        Ops that must run together are a group; so are those that run on one device alone, and an
        op and its readers where sending its value away and receiving it takes too long between any
        two devices.
        """
        sets = DisjointSets(problem.ops)
        for ops in (*problem.colocated, *_tied(problem)):
            for a, b in pairwise(ops):
                sets.join(a, b)
        dear = _least_transfer(problem) > below
        for op, operands in enumerate(problem.operands):
            for other in operands:
                if dear[other]:
                    sets.join(other, op)
        numbers = dict[int, int]()
        of = [numbers.setdefault(sets.find(op), len(numbers)) for op in range(problem.ops)]
        seconds = np.zeros((len(numbers), problem.devices))
        np.add.at(seconds, of, problem.seconds)
        readers: list[dict[int, None]] = [{} for _ in of]
        for op, operands in enumerate(problem.operands):
            for other in operands:
                if of[other] != of[op]:
                    readers[other][of[op]] = None
        makers = [op for op, groups in enumerate(readers) if groups]
        total = np.bincount(of, problem.bytes, len(numbers)).astype(np.float64)
        return Groups(problem, of, seconds, total, makers, [list(readers[op]) for op in makers])

    def expand(self, device: Sequence[int]) -> list[int]:
        """Return the devices of ops, by those of groups."""
        return [device[group] for group in self.of]


def _tied(problem: PartitionProblem) -> list[list[int]]:
    """Return, by device, the ops that no other device runs."""
    runs = np.isfinite(problem.seconds)
    alone = runs.sum(axis=1) == 1
    return [np.flatnonzero(alone & runs[:, k]).tolist() for k in range(problem.devices)]


def _least_transfer(problem: PartitionProblem) -> Seconds:
    """Return, by op, the least cost in the objective of moving its value between two devices."""
    if problem.devices < 2:
        return np.zeros(problem.ops)
    least = np.full(problem.ops, np.inf)
    for sender in range(problem.devices):
        for receiver in range(problem.devices):
            if sender != receiver:
                both = problem.send[:, sender], problem.receive[:, receiver]
                add = problem.objective is Objective.LATENCY
                least = np.minimum(least, sum(both) if add else np.maximum(*both))
    return least
