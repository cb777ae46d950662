"""Replays searches on complete public spaces: evaluations until within 5 % of the optimum.

`python -m benchmarks.autotuning --data DIR` reads `autotuning/*.csv.gz` there: each row is a
configuration with its measured time. In addition to braid's search by a model there are random
search, simulated annealing (scipy's `dual_annealing`) and genetic search (PyGAD), all in the same
harness: a configuration that was asked before costs nothing, nor does one outside of the space,
which counts as very slow.
"""

import csv
import gzip
import logging
import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.command import UsageError, run_command
from braid.tuning.model_search import ModelRule, ModelSearch, Row, numeric_features

NEAR = 1.05
MEASURES = ("time_ms", "compile_ms", "benchmark_ms")


class _Found(Exception):
    pass


@dataclass(frozen=True)
class Space:
    """Configurations with their times, None for those that failed."""

    name: str
    times: Mapping[Row, float | None]

    @property
    def goal(self) -> float:
        return NEAR * min(time for time in self.times.values() if time is not None)

    @property
    def values(self) -> list[list[float]]:
        """The values that each parameter can have."""
        return [sorted(set(column)) for column in zip(*self.times, strict=True)]


def read_space(path: Path) -> Space:
    with gzip.open(path, "rt") as file:
        times: dict[Row, float | None] = {}
        for row in csv.DictReader(file):
            point = tuple(float(v) for name, v in row.items() if name not in MEASURES)
            text = row["time_ms"]
            times[point] = float(text) if text.replace(".", "", 1).isdigit() else None
    return Space(path.name.removesuffix(".csv.gz"), times)


class Replay:
    """Counts the configurations that were asked, until one is near the optimum."""

    def __init__(self, space: Space) -> None:
        self._space, self._goal = space, space.goal
        self.asked: set[Row] = set()
        self.is_near = False
        self._worst = 10 * max(time for time in space.times.values() if time is not None)

    def time(self, point: Row) -> float | None:
        self.asked.add(point)
        time = self._space.times[point]
        self.is_near = self.is_near or (time is not None and time <= self._goal)
        return time

    def cost(self, point: Row) -> float:
        """Return the time for minimizers, and end them by an exception."""
        if point not in self._space.times:
            return self._worst
        time = self.time(point)
        if self.is_near:
            raise _Found
        return self._worst if time is None else time


def by_random(space: Space, seed: int) -> int:
    replay, points = Replay(space), list(space.times)
    random.Random(seed).shuffle(points)
    for point in points:
        replay.time(point)
        if replay.is_near:
            break
    return len(replay.asked)


def by_model(space: Space, seed: int) -> int:
    replay, points = Replay(space), list(space.times)
    random.Random(seed).shuffle(points)
    rule = ModelRule(trials=len(points), patience=None, is_ordered=False)
    search = ModelSearch(points, lambda p: p, numeric_features, rule, seed)
    search.run(replay.time, is_done=lambda: replay.is_near)
    return len(replay.asked)


def by_annealing(space: Space, seed: int) -> int:
    from scipy.optimize import dual_annealing

    replay, values = Replay(space), space.values
    bounds = [(0.0, len(each) - 1e-9) for each in values]

    def cost(x: Any) -> float:
        return replay.cost(tuple(each[int(i)] for i, each in zip(x, values, strict=True)))

    try:
        for restart in range(1000):
            dual_annealing(cost, bounds, seed=1000 * seed + restart, no_local_search=True)
    except _Found:
        pass
    return len(replay.asked)


def _silent() -> logging.Logger:
    """PyGAD logs the exception that ends a replay."""
    logger = logging.getLogger("braid.replay")
    logger.disabled = True
    return logger


def by_genes(space: Space, seed: int) -> int:
    import pygad

    replay, values = Replay(space), space.values

    def fitness(_: Any, genes: Any, __: Any) -> float:
        return -replay.cost(tuple(map(float, genes)))

    try:
        for restart in range(1000):
            pygad.GA(
                num_generations=200,
                num_parents_mating=10,
                sol_per_pop=20,
                fitness_func=fitness,
                num_genes=len(values),
                gene_space=values,
                mutation_probability=0.1,
                random_seed=1000 * seed + restart,
                suppress_warnings=True,
                logger=_silent(),
            ).run()
    except _Found:
        pass
    return len(replay.asked)


SEARCHES: Mapping[str, Callable[[Space, int], int]] = {
    "random": by_random,
    "annealing": by_annealing,
    "genetic": by_genes,
    "model": by_model,
}


def _one(job: tuple[str, Path, int]) -> int:
    name, path, seed = job
    return SEARCHES[name](read_space(path), seed)


def main(
    *, data: Path, seeds: int = 100, jobs: int = 1, only: Sequence[str] = tuple(SEARCHES)
) -> object:
    results: dict[str, dict[str, dict[str, float]]] = {}
    paths = sorted((data / "autotuning").glob("*.csv.gz"))
    if not paths:
        raise UsageError(f"'{data}/autotuning' has no spaces (*.csv.gz)")
    for path in paths:
        space = read_space(path)
        near = sum(time is not None and time <= space.goal for time in space.times.values())
        print(f"{space.name}: {len(space.times)} configurations, {near} near the optimum")
        for name in only:
            searches = [(name, path, seed) for seed in range(seeds)]
            with ProcessPoolExecutor(jobs) as pool:
                counts = list(pool.map(_one, searches))
            mean, middle = statistics.fmean(counts), statistics.median(counts)
            error = statistics.stdev(counts) / math.sqrt(len(counts)) if len(counts) > 1 else 0.0
            figures = {"mean": mean, "median": middle, "error": error}
            results.setdefault(space.name, {})[name] = figures
            print(f"  {name:10} mean {mean:7.1f} ± {error:.1f}, median {middle:g}", flush=True)
    return results


if __name__ == "__main__":
    run_command(main)
