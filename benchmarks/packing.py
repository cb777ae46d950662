"""Packing instances in MiniMalloc's format (`id,lower,upper,size`; capacity in the file name).

python -m benchmarks.packing --data DIR/minimalloc [--time-limit 30] [--json out.json]
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from benchmarks.command import run_command
from braid.solvers.packing import Buffer, pack


def load(path: Path) -> list[Buffer]:
    with path.open() as stream:
        return [
            Buffer(int(row["lower"]), int(row["upper"]), int(row["size"]))
            for row in csv.DictReader(stream)
        ]


def overlapping(buffers: list[Buffer], offsets: tuple[int, ...]) -> int:
    """Return how many pairs overlap in time and in memory, counted without the solver."""
    return sum(
        a.lower < b.upper
        and b.lower < a.upper
        and offsets[i] < offsets[j] + b.size
        and offsets[j] < offsets[i] + a.size
        for i, a in enumerate(buffers)
        for j, b in enumerate(buffers[:i])
    )


def measure(path: Path, time_limit: float, seed: int, workers: int) -> dict[str, object]:
    buffers = load(path)
    capacity = int(path.name.split(".")[1])
    begin = perf_counter()
    packing = pack(buffers, capacity=capacity, time_limit=time_limit, seed=seed, workers=workers)
    return {
        "instance": path.stem,
        "buffers": len(buffers),
        "capacity": capacity,
        "arena_size": packing.arena_size,
        "lower_bound": packing.lower_bound,
        "gap": packing.gap,
        "fits": packing.arena_size <= capacity,
        "overlapping_pairs": overlapping(buffers, packing.offsets),
        "seconds": perf_counter() - begin,
        "seed": seed,
    }


def main(
    *, data: Path, time_limit: float = 30.0, seed: int = 0, workers: int = 1
) -> Iterator[dict[str, object]]:
    for path in sorted(data.glob("*.csv")):
        yield measure(path, time_limit, seed, workers)


if __name__ == "__main__":
    run_command(main)
