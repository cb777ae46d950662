"""Assigning ops to devices: pipelined instances in the format of msr-fiddle/dnn-partitioning.

    python -m benchmarks.partition --data DIR/partition [--time-limit 60] [--json out.json]

The cost is the load of the busiest device; it is counted again here, from the file. `reference` is
the best one known to this file, found without keeping pieces contiguous.
"""

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np

from benchmarks.command import run_command
from braid.solvers.partition import PartitionProblem, solve

_REFERENCES = {
    "OperatorGraphs_bert_l-3_inference": 27.92,
    "OperatorGraphs_bert_l-6_inference": 29.58,
    "LayerGraphs_resnet50_inference": 33.77,
    "OperatorGraphs_resnet50_inference": 124.35,
    "LayerGraphs_bert24_training": 39.94,
}


class Instance:
    """A graph of the format; ops are numbered in topological order, accelerators before CPUs."""

    def __init__(self, path: Path) -> None:
        content: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
        nodes = {node["id"]: node for node in content["nodes"]}
        self.edges = {(edge["sourceId"], edge["destId"]) for edge in content["edges"]}
        before: dict[int, set[int]] = {name: set() for name in nodes}
        for source, target in self.edges:
            before[target].add(source)
        self.order = list(TopologicalSorter(before).static_order())
        self.nodes = [nodes[name] for name in self.order]
        self.move = defaultdict[int, float](float)
        for edge in content["edges"]:
            self.move[edge["sourceId"]] = max(self.move[edge["sourceId"]], edge["cost"])
        self.before = before
        self.accelerators = int(content["maxFPGAs"])
        self.cpus = int(content["maxCPUs"])
        self.capacity = float(content["maxSizePerFPGA"])

    def problem(self) -> PartitionProblem:
        """Return the same problem for the solver."""
        number = {name: op for op, name in enumerate(self.order)}
        on = [1] * self.accelerators + [0] * self.cpus
        seconds = [
            [
                (n["fpgaLatency"] if n["supportedOnFpga"] else np.inf) if is_on else n["cpuLatency"]
                for is_on in on
            ]
            for n in self.nodes
        ]
        moves = np.array([[self.move[name] * is_on for is_on in on] for name in self.order])
        classes = defaultdict[object, list[int]](list)
        for op, node in enumerate(self.nodes):
            classes[node.get("colorClass", ("op", op))].append(op)
        return PartitionProblem(
            seconds=np.array(seconds, float),
            operands=[[number[name] for name in self.before[op]] for op in self.order],
            receive=moves,
            send=moves,
            start=np.zeros(len(on)),
            bytes=np.array([float(node["size"]) for node in self.nodes]),
            capacity=np.array([self.capacity if is_on else np.inf for is_on in on]),
            colocated=list(classes.values()),
        )

    def busiest(self, device: tuple[int, ...]) -> float:
        """Return the largest load of an assignment; infinite if it is not allowed."""
        on = dict(zip(self.order, device, strict=True))
        colors = defaultdict[object, set[int]](set)
        load, used = defaultdict[int, float](float), defaultdict[int, float](float)
        for name, node in zip(self.order, self.nodes, strict=True):
            k = on[name]
            colors[node.get("colorClass", ("op", name))].add(k)
            if k >= self.accelerators:
                load[k] += node["cpuLatency"]
                continue
            if not node["supportedOnFpga"]:
                return float("inf")
            load[k] += node["fpgaLatency"]
            used[k] += node["size"]
        moved = {(source, on[target]) for source, target in self.edges}
        for source, k in {(s, k) for s, k in moved if k != on[s]}:
            load[k] += self.move[source] * (k < self.accelerators)
        for source in {s for s, k in moved if k != on[s]}:
            load[on[source]] += self.move[source] * (on[source] < self.accelerators)
        fits = all(size <= self.capacity for size in used.values())
        together = all(len(devices) == 1 for devices in colors.values())
        return max(load.values(), default=0.0) if fits and together else float("inf")


def measure(path: Path, time_limit: float, seed: int, workers: int) -> dict[str, object]:
    instance = Instance(path)
    begin = perf_counter()
    found = solve(instance.problem(), time_limit=time_limit, seed=seed, workers=workers)
    seconds = perf_counter() - begin
    name = path.name.split(".")[0].removeprefix("throughput_")
    return {
        "instance": name,
        "ops": len(instance.nodes),
        "devices": instance.accelerators + instance.cpus,
        "cost": round(instance.busiest(found.device), 4),
        "claimed": round(found.cost, 4),
        "lower_bound": round(found.lower_bound, 4),
        "gap_percent": round(100 * found.gap, 3),
        "reference": _REFERENCES.get(name),
        "seconds": round(seconds, 2),
    }


def main(
    *,
    data: Path,
    time_limit: float = 60.0,
    seed: int = 0,
    workers: int = 2,
    only: Annotated[str, "part of the names of instances"] = "",
) -> Iterator[dict[str, object]]:
    for path in sorted(data.glob("*.json.gz")):
        if only in path.name:
            yield measure(path, time_limit, seed, workers)


if __name__ == "__main__":
    run_command(main)
