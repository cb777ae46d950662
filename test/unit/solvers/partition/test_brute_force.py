"""Assignments against all of them, by arithmetic that shares nothing with the solver."""

from dataclasses import replace
from itertools import combinations, product
from random import Random

import numpy as np
import pytest

from braid.solvers.partition import (
    InfeasiblePartition,
    Objective,
    PartitionProblem,
    cost,
    loads,
    solve,
)


def random_problem(seed: int) -> PartitionProblem:
    """Up to 10 ops on up to 3 devices: pins, memories, colocation, starts, equal devices."""
    random = Random(seed)
    ops, devices = random.randint(1, 10 if seed % 4 == 0 else 7), random.randint(1, 3)
    operands = [
        random.sample(range(op), min(op, random.choice((0, 1, 1, 2, 3)))) for op in range(ops)
    ]
    integers = [[float(random.randint(0, 9)) for _ in range(devices)] for _ in range(ops)]
    seconds = np.array(integers)
    moves = np.array([[float(random.choice((0, 1, 3, 8)))] * devices for _ in range(ops)])
    if random.random() < 0.3:
        seconds[:] = seconds[:, :1]
    else:
        moves[:, 0] = 0.0
    for op in range(ops):
        for k in range(1, devices):
            if random.random() < 0.15:
                seconds[op, k] = np.inf
    colocated = [random.sample(range(ops), 2)] if ops > 2 and random.random() < 0.3 else []
    capacity = np.array([float(random.choice((6, 12, np.inf))) for _ in range(devices)])
    return PartitionProblem(
        seconds=seconds,
        operands=operands,
        receive=moves,
        send=moves * random.choice((0.0, 1.0)),
        start=np.array([float(random.choice((0, 0, 1, 4))) for _ in range(devices)]),
        bytes=np.array([float(random.randint(0, 3)) for _ in range(ops)]),
        capacity=capacity,
        colocated=colocated,
        objective=random.choice(tuple(Objective)),
        runs=[random.choice((1.0, 1.0, 0.5, 10.0)) for _ in range(ops)],
    )


def with_replicas(problem: PartitionProblem, seed: int) -> PartitionProblem:
    """Return the same problem, where ops may be on two or all devices, which then take turns."""
    random = Random(seed)
    sets = [list(s) for n in (2, 3) for s in combinations(range(problem.devices), n)]
    replicas = random.sample(sets, min(len(sets), random.choice((1, 1, 2))))

    def more(table: np.ndarray) -> np.ndarray:
        columns = [table[..., members].max(axis=-1) / len(members) for members in replicas]
        return np.concatenate([table, np.stack(columns, axis=-1)], axis=-1)

    if not replicas:
        return problem
    return replace(
        problem,
        seconds=more(problem.seconds),
        receive=more(problem.receive),
        send=more(problem.send),
        start=more(problem.start),
        capacity=np.append(problem.capacity, [np.inf] * len(replicas)),
        replicas=replicas,
    )


def longest_alternation(problem: PartitionProblem, device: tuple[int, ...], k: int) -> float:
    """Return the most stretches of ops on `k`, separated by others, on any path; path by path."""

    def walk(op: int, inside: bool) -> float:
        here = device[op] == k
        begun = problem.runs[op] if here and not inside else 0.0
        readers = [r for r, operands in enumerate(problem.operands) if op in operands]
        return begun + max((walk(reader, here) for reader in readers), default=0.0)

    return max((walk(op, False) for op in range(problem.ops)), default=0.0)


def naive_cost(problem: PartitionProblem, device: tuple[int, ...]) -> float:
    """Seconds of an assignment, device by device; infinite where it is not one."""
    if any(len({device[op] for op in ops}) > 1 for ops in problem.colocated):
        return float("inf")
    single = problem.devices - len(problem.replicas)
    totals = [0.0] * single
    held = [0.0] * single
    for k in range(problem.devices):
        mine = [op for op in range(problem.ops) if device[op] == k]
        comes = {u for op in mine for u in problem.operands[op] if device[u] != k}
        leaves = {
            u
            for op in range(problem.ops)
            for u in problem.operands[op]
            if device[u] == k and device[op] != k
        }
        total = sum(problem.seconds[op, k] for op in mine)
        total += sum(problem.receive[u, k] for u in comes)
        total += sum(problem.send[u, k] for u in leaves)
        if problem.start[k]:
            total += problem.start[k] * longest_alternation(problem, device, k)
        for member in [k] if k < single else problem.replicas[k - single]:
            totals[member] += float(total)
            held[member] += sum(problem.bytes[op] for op in mine)
    if any(bytes > problem.capacity[k] for k, bytes in enumerate(held)):
        return float("inf")
    return sum(totals) if problem.objective is Objective.LATENCY else max(totals)


def check(seed: int) -> None:
    problem = random_problem(seed)
    if seed % 3 == 0 and (problem.devices < 3 or problem.ops < 7):
        problem = with_replicas(problem, seed)
    every = product(range(problem.devices), repeat=problem.ops)
    runs = (d for d in every if np.isfinite([problem.seconds[o, k] for o, k in enumerate(d)]).all())
    best = min((naive_cost(problem, device) for device in runs), default=float("inf"))
    if best == float("inf"):
        with pytest.raises(InfeasiblePartition):
            solve(problem, time_limit=10)
        return
    found = solve(problem, time_limit=10)
    assert found.cost == pytest.approx(best)
    assert naive_cost(problem, found.device) == pytest.approx(found.cost)
    assert cost(problem, found.device) == pytest.approx(found.cost)
    assert loads(problem, found.device).sum() >= found.cost - 1e-9
    assert found.proven


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_optimum(first: int) -> None:
    for seed in range(first, first + 20):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 100))
def test_optimum_of_two_thousand(first: int) -> None:
    for seed in range(first, first + 100):
        check(seed)
