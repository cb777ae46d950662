"""Better devices for what runs on two devices, pair after pair, by the integer program.

A neighbourhood search whose neighbourhoods are solved exactly (P. Shaw, "Using constraint
programming and local search methods to solve vehicle routing problems", CP 1998): loads are
balanced by many groups that change sides at once, which annealing seldom finds.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from random import Random

import numpy as np

from braid.solvers.deadline import Deadline, OutOfTime
from braid.solvers.partition.cp_sat import PartitionModel
from braid.solvers.partition.groups import Groups
from braid.solvers.partition.problem import Objective, cost, loads

_SECONDS = 2.0
"""Longest search of a pair."""
_SHARE = 0.3
"""The longest search of a pair, as a share of the time that is left."""
_LEAST_SECONDS = 0.02
"""Shortest search of a pair."""
_LESS = 1e-6
"""The share of the cost by which an assignment has to be better."""

_Pair = tuple[int, int]


def exchange(groups: Groups, device: Sequence[int], deadline: Deadline, seed: int) -> list[int]:
    """Assign the groups of pairs of devices anew while that lowers the cost; by group, its device.

    Ends at `deadline`, or if no exchange can lower it; ops that do not fit the memories stay where
    they are. Where the largest load counts, the busiest device is in every pair.
    """
    random, best = Random(seed), list(device)
    least = cost(groups.problem, groups.expand(best))
    pairs = _pairs(groups, best, random) if 0 < least < np.inf else []
    while pairs and deadline.remaining > _LEAST_SECONDS:
        until = deadline.share(_SHARE).earlier(Deadline.after(_SECONDS))
        found, seconds = _assign_pair(groups, best, least, pairs.pop(), until)
        if seconds < least:
            best, least = found, seconds
            pairs = _pairs(groups, best, random)
    return best


def _pairs(groups: Groups, device: Sequence[int], random: Random) -> list[_Pair]:
    """Return the unordered pairs of devices of which at least one has groups."""
    problem = groups.problem
    used = set(device)
    if problem.objective is Objective.THROUGHPUT:
        busiest = int(np.argmax(loads(problem, groups.expand(device))))
        used &= {k for k in range(problem.devices) if busiest in problem.on(k)}
    every = combinations(range(problem.devices), 2)
    pairs = [pair for pair in every if not used.isdisjoint(pair)]
    random.shuffle(pairs)
    return pairs


def _assign_pair(
    groups: Groups, device: Sequence[int], least: float, pair: _Pair, until: Deadline
) -> tuple[list[int], float]:
    """Return the best assignment in which the groups on `pair` are on either of the two, and its
    cost.
    """
    seconds = np.full_like(groups.seconds, np.inf)
    for group, here in enumerate(device):
        may = list(pair) if here in pair else [here]
        seconds[group, may] = groups.seconds[group, may]
    best, cheapest = list(device), least

    def keep(found: list[int]) -> None:
        nonlocal best, cheapest
        whole = cost(groups.problem, groups.expand(found))
        if whole < cheapest:
            best, cheapest = found, whole

    try:
        model = PartitionModel(replace(groups, seconds=seconds), least * (1 - _LESS), until)
    except OutOfTime:
        return best, cheapest
    model.solve(until, 1, keep)
    return best, cheapest
