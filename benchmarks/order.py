"""Topological-order search on random graphs: optimality, and quality at size.

    python -m benchmarks.order enumerated [--count 500]     against all orders, both objectives
    python -m benchmarks.order narrow     [--count 20]      60 ops, width 8: is the peak proven?
    python -m benchmarks.order layered    [--sizes 100 250 500 1000] [--time-limit 60]

Each takes `--json FILE`.
"""

import resource
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from random import Random
from time import perf_counter
from typing import Annotated

from benchmarks.command import run_command
from benchmarks.generators.layered_graphs import (
    latency_problem,
    layered_graph,
    memory_problem,
    narrow_graph,
)
from braid.solvers.ordering import (
    LatencyProblem,
    MemoryProblem,
    baselines,
    count_orders,
    search,
)
from braid.solvers.ordering.graph import all_orders

Record = dict[str, object]
MAKERS = {"memory": memory_problem, "latency": latency_problem}


@dataclass(frozen=True)
class Settings:
    """The options of a measurement."""

    part: Annotated[str, ["enumerated", "narrow", "layered"]]
    _: KW_ONLY
    count: int = 20
    sizes: Sequence[int] = (100, 250, 500, 1000)
    time_limit: float = 60.0
    seed: int = 0


def enumerated(arguments: Settings) -> Iterator[Record]:
    """Compare with the best of all orders on graphs of at most 20,000 orders."""
    made, seed = 0, arguments.seed
    while made < arguments.count:
        seed += 1
        random = Random(seed)
        graph = layered_graph(random.randint(4, 16), random.randint(2, 6), seed)
        orders = count_orders(graph, 20_000)
        if orders is None or orders < 2:
            continue
        every = list(all_orders(graph))
        assert len(every) == orders, "enumerating and counting orders disagree"
        made += 1
        record: Record = {"seed": seed, "ops": len(graph), "orders": orders}
        for name, make in MAKERS.items():
            problem = make(graph, seed)
            best = min(map(problem.evaluate, every))
            found = search(problem, time_limit=arguments.time_limit, seed=seed)
            # Sums of durations differ in the last bits with the order of addition.
            record[f"{name}_equal"] = abs(found.value - best) <= 1e-9 * best
            record[f"{name}_proven"] = found.proven
        yield record


def quality(name: str, problem: MemoryProblem | LatencyProblem, limit: float, seed: int) -> Record:
    begin = perf_counter()
    found = search(problem, time_limit=limit, seed=seed)
    seconds = perf_counter() - begin
    classical = {k: problem.evaluate(v) for k, v in baselines(problem).items()}
    return {
        "objective": name,
        "ops": len(problem),
        "value": found.value,
        "lower_bound": found.lower_bound,
        "gap": found.gap,
        "ratio_to_best_classical": found.value / min(classical.values()),
        "never_worse": found.value <= min(classical.values()),
        "is_order": problem.graph.is_order(found.order),
        "seconds": seconds,
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        **classical,
    }


def narrow(arguments: Settings) -> Iterator[Record]:
    """Search graphs of 60 ops with antichains of up to 8 for the least peak."""
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        problem = memory_problem(narrow_graph(60, 8, seed), seed)
        yield quality("memory", problem, arguments.time_limit, seed)


def layered(arguments: Settings) -> Iterator[Record]:
    """Search graphs of growing size for both objectives."""
    for size in arguments.sizes:
        graph = layered_graph(size, 10, arguments.seed)
        for name, make in MAKERS.items():
            problem = make(graph, arguments.seed)
            yield quality(name, problem, arguments.time_limit, arguments.seed)


PARTS = {"enumerated": enumerated, "narrow": narrow, "layered": layered}


def main(arguments: Settings) -> Iterator[Record]:
    return PARTS[arguments.part](arguments)


if __name__ == "__main__":
    run_command(main)
