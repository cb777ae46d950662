"""Large graphs, planted assignments, limits of time, and what cannot be assigned."""

from dataclasses import replace
from random import Random
from time import perf_counter

import numpy as np
import pytest

from braid.solvers.partition import (
    InfeasiblePartition,
    Objective,
    PartitionProblem,
    cost,
    solve,
)


def planted(ops_each: int, devices: int, seed: int) -> tuple[PartitionProblem, float]:
    """Chains that fill their devices evenly, between which nothing moves; and the best cost."""
    random = Random(seed)
    whole = 1000.0
    seconds: list[float] = []
    operands: list[list[int]] = []
    for _ in range(devices):
        cuts = sorted(random.sample(range(1, int(whole)), ops_each - 1))
        parts = np.diff([0, *cuts, int(whole)]).tolist()
        for part in parts:
            operands.append([len(operands) - 1] if part is not parts[0] and operands else [])
            seconds.append(float(part))
    for device in range(devices):
        operands[device * ops_each] = []
    ops = len(seconds)
    problem = PartitionProblem(
        seconds=np.array([[s] * devices for s in seconds]),
        operands=operands,
        receive=np.full((ops, devices), 50.0),
        send=np.full((ops, devices), 50.0),
        start=np.zeros(devices),
        bytes=np.ones(ops),
        capacity=np.full(devices, float(ops_each)),
    )
    return problem, whole


@pytest.mark.parametrize(("ops", "devices"), [(5, 3), (40, 3), (60, 4)])
def test_planted_chains(ops: int, devices: int) -> None:
    problem, best = planted(ops, devices, ops)
    found = solve(problem, time_limit=20)
    assert found.cost == best
    assert found.proven


def chain(ops: int, devices: int, seed: int) -> PartitionProblem:
    random = np.random.default_rng(seed)
    return PartitionProblem(
        seconds=random.integers(1, 9, (ops, devices)).astype(float),
        operands=[[] if op == 0 else [op - 1] for op in range(ops)],
        receive=np.ones((ops, devices)),
        send=np.ones((ops, devices)),
        start=np.ones(devices),
        bytes=np.zeros(ops),
        capacity=np.full(devices, np.inf),
    )


@pytest.mark.parametrize("objective", list(Objective))
def test_limit_of_time(objective: Objective) -> None:
    problem = replace(chain(3000, 8, 0), objective=objective)
    begin = perf_counter()
    found = solve(problem, time_limit=3)
    assert perf_counter() - begin < 60  # other work may take the cores
    assert found.cost == cost(problem, found.device)
    assert 0 < found.lower_bound <= found.cost


def test_no_ops() -> None:
    problem = PartitionProblem(
        *(np.zeros((0, 2)), [], np.zeros((0, 2)), np.zeros((0, 2))),
        *(np.ones(2), np.zeros(0), np.zeros(2)),
    )
    found = solve(problem, time_limit=1)
    assert (found.device, found.cost, found.gap) == ((), 0.0, 0.0)


def test_unsupported_op_is_named() -> None:
    problem = chain(4, 2, 0)
    problem.seconds[2] = np.inf
    with pytest.raises(InfeasiblePartition, match="support of op 2"):
        solve(problem, time_limit=1)


def test_memory_too_small_for_one_op() -> None:
    problem = replace(chain(4, 2, 0), bytes=np.array([1.0, 5, 1, 1]), capacity=np.full(2, 4.0))
    with pytest.raises(InfeasiblePartition, match="memory for op 1"):
        solve(problem, time_limit=1)


def test_memory_too_small_for_all() -> None:
    problem = replace(chain(4, 2, 0), bytes=np.full(4, 3.0), capacity=np.full(2, 4.0))
    with pytest.raises(InfeasiblePartition, match="too small for all"):
        solve(problem, time_limit=1)


def test_same_seed_same_answer() -> None:
    problem = chain(12, 3, 5)
    assert solve(problem, time_limit=5).device == solve(problem, time_limit=5).device
