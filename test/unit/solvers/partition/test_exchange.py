"""Pairs of devices assigned anew, against all assignments of every pair."""

from itertools import product

import numpy as np
import pytest

from braid.solvers.deadline import NEVER, Deadline
from braid.solvers.partition import cost
from braid.solvers.partition.exchange import exchange
from braid.solvers.partition.groups import Groups
from braid.solvers.partition.starts import first_fit
from test.unit.solvers.partition.test_brute_force import random_problem, with_replicas


def best_of_pairs(groups: Groups, device: list[int]) -> float:
    """Return the least cost of assignments in which ops on two devices are on either."""
    least = np.inf
    devices = range(groups.problem.devices)
    for a, b in product(devices, devices):
        free = [group for group, here in enumerate(device) if here in (a, b)]
        for chosen in product((a, b), repeat=len(free)):
            other = list(device)
            for group, there in zip(free, chosen, strict=True):
                other[group] = there
            if np.isfinite(groups.seconds[range(groups.count), other]).all():
                least = min(least, cost(groups.problem, groups.expand(other)))
    return least


@pytest.mark.parametrize("seed", range(40))
def test_ends_where_no_pair_helps(seed: int) -> None:
    problem = random_problem(seed)
    if seed % 3 == 0:
        problem = with_replicas(problem, seed)
    groups = Groups.of_problem(problem)
    start = first_fit(groups)
    before = cost(problem, groups.expand(start))
    found = exchange(groups, start, NEVER, seed)
    after = cost(problem, groups.expand(found))
    assert after <= before
    # Starts are counted in the integer program as one for each device that is used.
    if np.isfinite(after) and not problem.start.any():
        assert after <= best_of_pairs(groups, found) * (1 + 1e-5)


def test_late() -> None:
    groups = Groups.of_problem(random_problem(4))
    start = first_fit(groups)
    assert exchange(groups, start, Deadline.after(-1.0), 0) == start
