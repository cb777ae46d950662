"""What products by `wgmma` are predicted to take, beside what an H200 took for the benchmark.

That was measured after the constants had been fitted, to other runs.
"""

import json
import math
from pathlib import Path

import benchmarks
from braid.lowering.gpu.contraction.problem import ElementKind
from braid.lowering.gpu.contraction.schedules import Size
from braid.lowering.gpu.kernels.hopper.schedules import HopperCost
from braid.targets.machines.load import load_target

NUMBERS = {"bf16": ElementKind.BF16, "f16": ElementKind.F16, "i8": ElementKind.S8}


def measured() -> dict[Size, float]:
    """Seconds of the products in the record of `benchmarks.gpu`."""
    record = json.loads((Path(benchmarks.__path__[0]) / "results/gpu.json").read_text())
    found: dict[Size, float] = {}
    for case in record["cases"]:
        element, _, extents = case["name"].partition(" ")
        if case["kind"] == "product" and element in NUMBERS:
            rows, columns, depth = map(int, extents.split("×"))
            own, result = (1, 4) if element == "i8" else (2, 2)
            moved = own * depth * (rows + columns) + result * rows * columns
            found[Size(1, rows, columns, depth, NUMBERS[element], moved)] = case["seconds"]
    return found


def test_predictions_are_near_what_was_measured() -> None:
    target = load_target("gpu-h200")
    machine = target.device("gpu:0").machine
    launch = next(one for one in target.backends if one.name == "gpu").launch_seconds
    errors: list[float] = []
    for size, took in measured().items():
        cost = HopperCost(size, machine)
        errors.append(math.log((cost.seconds(cost.tiles()[0]) + launch) / took))
    assert len(errors) > 30
    assert math.sqrt(sum(own**2 for own in errors) / len(errors)) < 0.1
    assert max(map(abs, errors)) < 0.25
