"""Budgeted rematerialization of training graphs (Checkmate's, as node-link JSON).

python -m benchmarks.remat --data DIR/remat [--graphs fcn_8_vgg-train …] [--fractions 0.9 0.8 min]
                           [--time-limit 60] [--workers 1] [--json out.json]

A fraction is of the natural peak: that of the given order without recomputation. `min` is the
smallest budget for which a schedule is found.
"""

import gzip
import json
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from time import perf_counter
from typing import Annotated

from benchmarks.command import run_command
from braid.solvers.rematerialization import (
    InfeasibleBudgetError,
    Op,
    Problem,
    minimum_budget,
    simulate,
    solve,
)

Row = dict[str, object]


def load(path: Path) -> Problem:
    """Read a graph whose nodes have one output each and whose last node makes the result."""
    with gzip.open(path, "rt") as stream:
        graph = json.load(stream)
    inputs: list[list[int]] = [[] for _ in graph["nodes"]]
    for link in graph["links"]:
        inputs[link["target"]].append(link["source"])
    ops = tuple(
        Op(node["cost_cpu"], tuple(sorted(inputs[index])), (index,), name=node["name"])
        for index, node in enumerate(graph["nodes"])
    )
    sizes = tuple(node["cost_ram"] for node in graph["nodes"])
    return Problem(ops, sizes, frozenset({len(ops) - 1}))


@dataclass(frozen=True)
class Settings:
    """The options of a measurement."""

    _: KW_ONLY
    data: Path
    graphs: Annotated[Sequence[str] | None, "names of graphs; default: all in DIR"] = None
    fractions: Sequence[str] = ("0.9", "0.8", "0.6", "min")
    time_limit: float = 60.0
    seed: int = 0
    workers: int = 1
    fixed_order: bool = False


def measure(problem: Problem, budget: int, options: Settings) -> Row:
    """Solve one instance; the schedule is simulated again, apart from the solver's own figures."""
    begin = perf_counter()
    try:
        schedule = solve(
            problem,
            budget,
            time_limit=options.time_limit,
            seed=options.seed,
            workers=options.workers,
            fixed_order=options.fixed_order,
        )
    except InfeasibleBudgetError as error:
        return {
            "feasible": False,
            "infeasibility_proven": error.proven,
            "lower_bound_bytes": error.lower_bound,
            "smallest_found_bytes": error.smallest_found,
            "blamed": [problem.ops[op].name for op in error.blamed_ops],
            "seconds": perf_counter() - begin,
        }
    seconds = perf_counter() - begin
    result = simulate(problem, schedule.sequence)
    return {
        "feasible": True,
        "within_budget": result.peak <= budget,
        "peak_bytes": result.peak,
        "duration": result.duration,
        "base_duration": problem.base_duration,
        "overhead_percent": 100 * (result.duration / problem.base_duration - 1),
        "bound_percent": 100 * (schedule.lower_bound / problem.base_duration - 1),
        "gap_percent": 100 * schedule.gap,
        "proven": schedule.proven,
        "executions": len(schedule.sequence),
        "seconds": seconds,
    }


def describe(row: Row) -> str:
    """Return one line of the table."""
    head = f"{row['graph']:18} {row['fraction']:>7} {row['budget_bytes']:>14,} "
    if not row["feasible"]:
        verdict = "infeasible" if row["infeasibility_proven"] else "not found"
        found = row["smallest_found_bytes"]
        blamed = ", ".join(map(str, row["blamed"]))  # type: ignore[call-overload]
        return f"{head}{verdict}: needs {row['lower_bound_bytes']:,} ({blamed}), found {found:,}"
    kept = "" if row["within_budget"] else "  OVER BUDGET"
    return (
        f"{head}{row['overhead_percent']:>+9.3f} {row['bound_percent']:>+9.3f} "
        f"{row['gap_percent']:>8.3f} {row['seconds']:>8.1f} {row['executions']:>6}{kept}"
    )


def main(options: Settings) -> object:
    names = options.graphs or sorted(p.name.split(".")[0] for p in options.data.glob("*.json.gz"))
    print(
        f"{'graph':18} {'of peak':>7} {'budget, B':>14} {'time +%':>9} {'bound +%':>9} "
        f"{'gap %':>8} {'s':>8} {'runs':>6}"
    )
    rows: list[Row] = []
    for name in names:
        problem = load(options.data / f"{name}.json.gz")
        natural = simulate(problem, problem.required).peak
        for fraction in options.fractions:
            begin = perf_counter()
            if fraction == "min":
                budget = minimum_budget(
                    problem, time_limit=options.time_limit, seed=options.seed
                ).found
            else:
                budget = int(float(fraction) * natural)
            search = perf_counter() - begin
            row = measure(problem, budget, options)
            shown = f"{budget / natural:.3f}" if fraction == "min" else fraction
            rows.append(
                {
                    "graph": name,
                    "fraction": shown,
                    "lowest_found": fraction == "min",
                    "budget_bytes": budget,
                    "natural_peak_bytes": natural,
                    "budget_search_seconds": search,
                    **row,
                }
            )
            print(describe(rows[-1]), flush=True)
    settings = {"time_limit": options.time_limit, "workers": options.workers, "seed": options.seed}
    return {"settings": settings, "rows": rows}


if __name__ == "__main__":
    run_command(main)
