"""Layout and strategy selection: cost, proven bound, time and memory, instance by instance.

``python -m benchmarks.layout --data DIR --instances B network-10000 sharding-65000 --json o.json``
reads instance B from ``DIR/asplos-2025-iopddl-B.json.gz`` (google/iopddl); ``B-unlimited`` drops
its memory limit, ``network-N`` is a layout problem of N ops, ``sharding-N`` the sharding of a
training step of N tensors, ``module-N`` a file of N ops that braid-opt reads, decides on by
`select-layouts` and writes again, all of which counts.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from benchmarks.command import run_command
from benchmarks.generators.layout_graphs import layout_problem
from benchmarks.generators.layout_modules import layout_module
from benchmarks.generators.sharding_graphs import sharding_problem
from benchmarks.iopddl import read_iopddl
from braid.solvers.strategy import InfeasibleAssignment, StrategyProblem, greedy, solve

_COLUMNS = "{:<16} {:>7} {:>7} {:>14} {:>14} {:>14} {:>9} {:>7} {:>8} {:>9}"


@dataclass(frozen=True)
class Measurement:
    """One solved instance; memory is the peak of the whole process.

    Seconds are without reading the instance, except for a module, which has ops for nodes.
    """

    instance: str
    nodes: int
    edges: int
    greedy_cost: float | None
    cost: float | None
    lower_bound: float | None
    gap: float | None
    proven: bool
    seconds: float
    peak_mib: float
    phases: list[dict[str, float | str]]


def read_instance(name: str, data: Path, seed: int) -> StrategyProblem:
    """Return the instance called `name`."""
    family, _, size = name.partition("-")
    if family == "network":
        return layout_problem(int(size), seed=seed)
    if family == "sharding":
        return sharding_problem(int(size), seed=seed)
    return read_iopddl(data / f"asplos-2025-iopddl-{family}.json.gz", memory=size != "unlimited")


@dataclass(frozen=True)
class Settings:
    """The options of a measurement."""

    _: KW_ONLY
    data: Path = Path()
    instances: Sequence[str] = ("B",)
    time_limit: float = 60.0
    workers: int = 2
    seed: int = 0
    single: Annotated[str | None, argparse.SUPPRESS] = None


def measure_module(name: str, ops: int, options: Settings) -> Measurement:
    """Run `select-layouts` by braid-opt on a file with `ops` ops."""
    with TemporaryDirectory() as folder:
        source, remarks = Path(folder) / "module.mlir", Path(folder) / "remarks.json"
        source.write_text(layout_module(ops, seed=options.seed))
        pipeline = f"select-layouts{{time-limit={options.time_limit}}}"
        command = [sys.executable, "-m", "braid.tools.braid_opt", str(source), "-p", pipeline]
        command += ["-o", str(Path(folder) / "decided.mlir"), f"--remarks-json={remarks}"]
        began = time.perf_counter()
        subprocess.run(command, check=True)
        seconds = time.perf_counter() - began
        (remark,) = json.loads(remarks.read_text())
    found = remark["data"]
    return Measurement(
        instance=name,
        nodes=ops,
        edges=0,
        greedy_cost=None,
        cost=found["cost"],
        lower_bound=found["lower_bound"],
        gap=found["gap"],
        proven=found["gap"] == 0,
        seconds=seconds,
        peak_mib=resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
        phases=[],
    )


def measure(name: str, options: Settings) -> Measurement:
    """Solve one instance in this process."""
    family, _, size = name.partition("-")
    if family == "module":
        return measure_module(name, int(size), options)
    problem = read_instance(name, options.data, options.seed)
    try:
        greedy_cost = greedy(problem).cost
    except InfeasibleAssignment:
        greedy_cost = None
    began = time.perf_counter()
    try:
        found = solve(
            problem, time_limit=options.time_limit, seed=options.seed, workers=options.workers
        )
    except TimeoutError:
        found = None
    return Measurement(
        instance=name,
        nodes=problem.num_nodes,
        edges=len(problem.edges),
        greedy_cost=greedy_cost,
        cost=found and found.cost,
        lower_bound=found and found.lower_bound,
        gap=found and found.gap,
        proven=found is not None and found.proven,
        seconds=time.perf_counter() - began,
        peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        phases=[asdict(milestone) for milestone in found.stats] if found else [],
    )


def _in_own_process(name: str, arguments: list[str]) -> Measurement:
    """Measure in a fresh process, so that one instance's memory does not count for the next."""
    command = [sys.executable, "-m", "benchmarks.layout", *arguments, "--single", name]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return Measurement(**json.loads(output))


def _row(m: Measurement) -> str:
    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:.10g}"

    gap = "-" if m.gap is None else f"{m.gap:.3%}"
    proven = "yes" if m.proven else "no"
    best, bound, simple = number(m.cost), number(m.lower_bound), number(m.greedy_cost)
    return _COLUMNS.format(
        m.instance, m.nodes, m.edges, simple, best, bound, gap, proven,
        f"{m.seconds:.2f}", f"{m.peak_mib:.0f}",
    )  # fmt: skip


def main(options: Settings) -> object:
    """Parse the arguments, measure, print the table."""
    if options.single:
        print(json.dumps(asdict(measure(options.single, options))))
        return None
    print(_COLUMNS.format(
        "instance", "nodes", "edges", "greedy", "cost", "bound", "gap", "proven", "seconds", "MiB"
    ))  # fmt: skip
    results: list[Measurement] = []
    for name in options.instances:
        results.append(_in_own_process(name, sys.argv[1:]))
        print(_row(results[-1]), flush=True)
    return results


if __name__ == "__main__":
    run_command(main)
