"""Solvers on generated instances whose answers are known by construction.

    python -m benchmarks.planted packing  [--count 50] [--sizes 100 500] [--time-limit 60]
    python -m benchmarks.planted remat    [--sizes 100 250 500 1000] [--time-limit 60] [--tight 0.9]
    python -m benchmarks.planted strategy [--sizes 5000 20000 65000] [--time-limit 120] [--memory]

`over` is how far an answer is above the best one, in percent; `late` by how many seconds the solver
exceeded its limit. CPU seconds are those of this process. Each takes `--seed` and `--json FILE`.
With `--tight` the budget is that fraction of the planted order's peak, and `fixed_order` is the
result of the same search in the same time if first executions keep the given order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from time import perf_counter, process_time
from typing import Annotated

from benchmarks.command import run_command
from benchmarks.generators.planted_orders import planted_order
from benchmarks.generators.planted_packings import planted_packing
from benchmarks.generators.planted_strategies import planted_strategies
from benchmarks.packing import overlapping
from braid.solvers.packing import pack
from braid.solvers.rematerialization import InfeasibleBudgetError, Problem, simulate
from braid.solvers.rematerialization import solve as schedule
from braid.solvers.strategy import evaluate
from braid.solvers.strategy import solve as assign

Record = dict[str, object]


class _Clock:
    """Seconds since it was made."""

    def __init__(self, limit: float) -> None:
        self.limit, self.wall, self.cpu = limit, perf_counter(), process_time()

    def record(self) -> Record:
        seconds = perf_counter() - self.wall
        return {
            "seconds": round(seconds, 2),
            "cpu_seconds": round(process_time() - self.cpu, 2),
            "late": round(max(0.0, seconds - self.limit), 2),
        }


SIZES = {
    "packing": [100, 500],
    "remat": [100, 250, 500, 1000],
    "strategy": [5000, 20_000, 65_000],
}
COUNTS = {"packing": 50, "remat": 5, "strategy": 1}


@dataclass(frozen=True)
class Settings:
    """The options of a measurement."""

    part: Annotated[str, list(SIZES)]
    _: KW_ONLY
    count: int = 0
    sizes: Sequence[int] = ()
    time_limit: float = 0.0
    seed: int = 0
    memory: bool = False
    tight: float = 1.0

    def of_part(self) -> "Settings":
        """Return it with what the part has where nothing is given."""
        return replace(
            self,
            count=self.count or COUNTS[self.part],
            sizes=self.sizes or SIZES[self.part],
            time_limit=self.time_limit or (120 if self.part == "strategy" else 60),
        )


def packing(arguments: Settings) -> Iterator[Record]:
    """Cut rectangles into pieces, every third by straight cuts alone, and pack them again."""
    low, high = arguments.sizes[0], arguments.sizes[-1]
    for number in range(arguments.count):
        size = low + (high - low) * number // max(1, arguments.count - 1)
        planted = planted_packing(size, arguments.seed + number, guillotine=number % 3 == 0)
        buffers = list(planted.buffers)
        clock = _Clock(arguments.time_limit)
        found = pack(buffers, capacity=planted.capacity, time_limit=arguments.time_limit)
        yield {
            "buffers": len(buffers),
            "seed": arguments.seed + number,
            "over": 100 * (found.arena_size / planted.capacity - 1),
            "overlapping_pairs": overlapping(buffers, found.offsets),
            **clock.record(),
        }


def remat(arguments: Settings) -> Iterator[Record]:
    """Schedule graphs within the peak of an order that needs no recomputation."""
    for size in arguments.sizes:
        for seed in range(arguments.seed, arguments.seed + arguments.count):
            planted = planted_order(size, seed)
            problem = planted.problem
            record: Record = {
                "ops": size,
                "seed": seed,
                "of_given_order": planted.budget / simulate(problem, problem.required).peak,
            }
            budget = int(planted.budget * arguments.tight)
            clock = _Clock(arguments.time_limit)
            over = _over(problem, budget, arguments.time_limit)
            record |= {"over": over, **clock.record()}
            if arguments.tight < 1:
                record["fixed_order"] = _over(problem, budget, arguments.time_limit, fixed=True)
            yield record


def _over(problem: Problem, budget: int, limit: float, *, fixed: bool = False) -> float | None:
    """Return the percentages of time that recomputation takes, None where no schedule is found."""
    try:
        found = schedule(problem, budget, time_limit=limit, fixed_order=fixed)
    except InfeasibleBudgetError:
        return None
    result = simulate(problem, found.sequence)
    assert result.peak <= budget, "the schedule is over its budget"
    return 100 * (result.duration / problem.base_duration - 1)


def strategy(arguments: Settings) -> Iterator[Record]:
    """Assign strategies where the least cost is known, with `--memory` under a limit that binds."""
    for size in arguments.sizes:
        for seed in range(arguments.seed, arguments.seed + arguments.count):
            planted = planted_strategies(size, seed, memory=arguments.memory)
            problem, optimum = planted.problem, planted.optimum
            assert evaluate(problem, planted.assignment) == optimum, "the generator is wrong"
            record: Record = {"nodes": size, "seed": seed, "memory": arguments.memory}
            clock = _Clock(arguments.time_limit)
            try:
                found = assign(problem, time_limit=arguments.time_limit, seed=seed)
            except TimeoutError as error:
                yield {**record, "over": None, "error": str(error), **clock.record()}
                continue
            record |= clock.record()
            yield {
                **record,
                "over": 100 * (evaluate(problem, found.assignment) / optimum - 1),
                "bound_below": 100 * (1 - found.lower_bound / optimum),
                "bound_holds": found.lower_bound <= optimum,
            }


PARTS = {"packing": packing, "remat": remat, "strategy": strategy}


def main(arguments: Settings) -> Iterator[Record]:
    return PARTS[arguments.part](arguments.of_part())


if __name__ == "__main__":
    run_command(main)
