"""Packing instances in MiniMalloc's format (`id,lower,upper,size`; capacity in the file name).

python -m benchmarks.packing --data DIR/minimalloc [--time-limit 30] [--json out.json]
"""

import argparse
import csv
import json
from pathlib import Path
from time import perf_counter

from benchmarks.arguments import output_file
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--time-limit", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", type=output_file)
    arguments = parser.parse_args()
    results: list[dict[str, object]] = []
    for path in sorted(arguments.data.glob("*.csv")):
        result = measure(path, arguments.time_limit, arguments.seed, arguments.workers)
        print(*(f"{key}={value}" for key, value in result.items()), flush=True)
        results.append(result)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
