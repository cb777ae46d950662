"""Which tiles products and convolutions of f32 are predicted to be fastest by, on an H200.

The record has the times of all tiles there; of convolutions with channels of weights last.
"""

import json
import math
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import benchmarks
from benchmarks.gpu_schedules import cases
from braid.lowering.gpu.contraction.problem import ElementKind
from braid.lowering.gpu.contraction.schedules import Size, seconds
from braid.lowering.gpu.contraction.tiles import Tiles
from braid.targets.machines.load import load_target


def sizes() -> Iterator[tuple[str, Size]]:
    """Return the products in cases of f32."""
    for case in cases():
        if case.element != "f32":
            continue
        left, right = case.shapes
        if case.kind == "product":
            (rows, depth), columns, copied = left, right[1], (16, 16)
        else:
            images, side, _, channels = left
            columns, window, *_ = right
            rows, depth = images * (side - window + 1) ** 2, window * window * channels
            copied = (16, 4)
        moved = 4 * (rows * depth + depth * columns + rows * columns)
        yield case.name, Size(1, rows, columns, depth, ElementKind.F32, moved, copied)


def test_the_fastest_is_chosen_or_nearly() -> None:
    machine = load_target("gpu-h200").device("gpu:0").machine
    known = dict(sizes())
    record = json.loads((Path(benchmarks.__path__[0]) / "results/gpu_schedules.json").read_text())
    losses: dict[str, float] = {}
    for name, rows in groupby(record["rows"], key=lambda row: row["case"]):
        if name not in known:
            continue
        timed = {Tiles.read(row["schedule"]): row["seconds"] for row in rows if row["seconds"]}
        chosen = min(timed, key=lambda tiles: seconds(known[name], tiles, machine))
        losses[name] = timed[chosen] / min(timed.values())
    assert losses.keys() == known.keys()
    # One convolution is worse, whose weights are copied element by element by all processors.
    assert sorted(losses.values())[-2] < 1.15, losses
    assert math.prod(losses.values()) ** (1 / len(losses)) < 1.06, losses
