"""Check that solvers keep their time limits on a busy machine: each on a large problem.

    python -m benchmarks.deadlines [--solvers packing order…] [--limits 5 20] [--competitors N]
        [--json FILE]

Beside each, as many processes spin as there are CPUs. A solver may exceed its limit by 5 % and one
second, reading the problem included, and exits with status 1 where one does.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Annotated

import numpy as np

from benchmarks.busy import competitors as spinning
from benchmarks.command import Judged, run_command
from benchmarks.generators.layered_graphs import latency_problem, layered_graph, memory_problem
from benchmarks.generators.layout_graphs import layout_problem
from benchmarks.generators.planted_orders import planted_order
from benchmarks.generators.planted_packings import planted_packing
from benchmarks.generators.planted_strategies import planted_strategies
from benchmarks.generators.sharding_graphs import sharding_problem
from braid.solvers import ordering, packing, partition, rematerialization, strategy
from braid.solvers.strategy import StrategyProblem

Attempt = Callable[[float], object]


def _packing(buffers: int) -> Attempt:
    planted = planted_packing(buffers, 1)
    return lambda limit: packing.pack(planted.buffers, capacity=planted.capacity, time_limit=limit)


def _rematerialization(ops: int, *, fixed_order: bool = False) -> Attempt:
    planted = planted_order(ops, 1)
    budget = int(0.8 * planted.budget)

    def attempt(limit: float) -> object:
        with suppress(rematerialization.InfeasibleBudgetError):
            return rematerialization.solve(
                planted.problem, budget, time_limit=limit, fixed_order=fixed_order
            )

    return attempt


def _strategy(problem: StrategyProblem) -> Attempt:
    def attempt(limit: float) -> object:
        with suppress(TimeoutError):
            return strategy.solve(problem, time_limit=limit)

    return attempt


def _memory_order(ops: int) -> Attempt:
    problem = memory_problem(layered_graph(ops, 12, 1), 1)
    return lambda limit: ordering.search(problem, time_limit=limit)


def _latency_order(ops: int) -> Attempt:
    problem = latency_problem(layered_graph(ops, 12, 1), 1)
    return lambda limit: ordering.search(problem, time_limit=limit)


def _partition(ops: int) -> Attempt:
    graph, draw = layered_graph(ops, 12, 1), np.random.default_rng(1)
    seconds, moves = draw.uniform(0.1, 1.0, (ops, 4)), draw.uniform(0.0, 0.3, (ops, 4))
    problem = partition.PartitionProblem(
        seconds=seconds,
        operands=graph.predecessors,
        receive=moves,
        send=moves,
        start=np.full(4, 0.5),
        bytes=np.ones(ops),
        capacity=np.full(4, 0.4 * ops),
    )
    return lambda limit: partition.solve(problem, time_limit=limit)


SOLVERS: dict[str, Callable[[], Attempt]] = {
    "packing of 500": lambda: _packing(500),
    "packing of 5000": lambda: _packing(5000),
    "rematerialization of 250": lambda: _rematerialization(250),
    "rematerialization of 2000": lambda: _rematerialization(2000),
    "rematerialization of 2000, one order": lambda: _rematerialization(2000, fixed_order=True),
    "strategies of 5000": lambda: _strategy(planted_strategies(5000, 1).problem),
    "strategies of 20000, memory": lambda: _strategy(
        planted_strategies(20_000, 1, memory=True).problem
    ),
    "shardings of 2000": lambda: _strategy(sharding_problem(2000, seed=1)),
    "layouts of 20000": lambda: _strategy(layout_problem(20_000, seed=1)),
    "order of 250, memory": lambda: _memory_order(250),
    "order of 5000, memory": lambda: _memory_order(5000),
    "order of 250, latency": lambda: _latency_order(250),
    "order of 5000, latency": lambda: _latency_order(5000),
    "partition of 500": lambda: _partition(500),
    "partition of 5000": lambda: _partition(5000),
}


def allowed(limit: float) -> float:
    """Seconds that a solver may take with this limit."""
    return 1.05 * limit + 1.0


def main(
    *,
    solvers: Annotated[Sequence[str] | None, "those whose names contain one of these"] = None,
    limits: Sequence[float] = (5.0, 20.0),
    competitors: int = os.cpu_count() or 1,
) -> object:
    wanted = solvers or [""]
    records: list[dict[str, object]] = []
    for name, make in SOLVERS.items():
        if not any(part in name for part in wanted):
            continue
        attempt = make()
        for limit in limits:
            with spinning(competitors):
                begin = perf_counter()
                attempt(limit)
                seconds = perf_counter() - begin
            keeps = seconds <= allowed(limit)
            records.append({"solver": name, "limit": limit, "seconds": seconds, "keeps": keeps})
            print(
                f"{name:<38} limit {limit:6.1f} s, took {seconds:7.2f} s,"
                f" {seconds - limit:+6.2f} s{'' if keeps else '   TOO LATE'}",
                flush=True,
            )
    return Judged(records, all(record["keeps"] for record in records))


if __name__ == "__main__":
    run_command(main)
