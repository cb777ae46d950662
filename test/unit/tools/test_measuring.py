"""Figures of repeated runs."""

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import braid
from braid.frontends.mlir import parse_mlir
from braid.tools.commands.measuring import Figures, measure_runs, percentile
from braid.universe import make_context


@pytest.mark.parametrize(
    ("values", "fraction", "expected"),
    [
        ([3.0], 0.9, 3.0),
        ([float(i) for i in range(10, 0, -1)], 0.9, 9.0),
        ([float(i) for i in range(1, 11)], 0.91, 10.0),
        ([2.0, 1.0], 0.5, 1.0),
    ],
)
def test_percentile(values: list[float], fraction: float, expected: float) -> None:
    assert percentile(values, fraction) == expected


def test_warm_up_runs_are_not_measured() -> None:
    calls: list[int] = []

    def run() -> list[NDArray[Any]]:
        calls.append(0)
        return []

    figures = measure_runs(run, runs=4, warmup=3)
    assert len(calls) == 7
    assert 0 <= figures.minimum <= figures.median <= figures.p90


_AFTER_A_LARGER_PEAK = """
import json
import numpy as np
from braid.tools.commands.measuring import measure_runs

assert np.ones(64 << 20, np.uint8).all()
kept = [np.ones(20 << 20, np.uint8), np.ones(1 << 20, np.uint8)]
del kept[0]  # the allocator may keep it

def run():
    scratch = np.ones(32 << 20, np.uint8)
    return [scratch[: 8 << 20].copy()]

figures = measure_runs(run, runs=2, warmup=0)
print(json.dumps([figures.output_bytes, figures.rss_growth_bytes, figures.other_bytes(0)]))
"""


def test_memory_that_a_run_takes_is_seen_whatever_was_there_before() -> None:
    # In a process of its own: what the tests before this one mapped may leave the memory meanwhile.
    result = subprocess.run(
        [sys.executable, "-c", _AFTER_A_LARGER_PEAK], capture_output=True, text=True, check=True
    )
    outputs, growth, other = json.loads(result.stdout)
    assert outputs == 8 << 20
    assert growth == pytest.approx(40 << 20, abs=4 << 20)
    assert other == pytest.approx(32 << 20, abs=4 << 20)


def test_nothing_but_the_arena_and_the_outputs_is_of_the_size_of_the_graph() -> None:
    extent = 2048  # a tensor takes 16 MiB
    tensor = f"tensor<{extent}x{extent}xf32>"
    text = f"""func.func @main(%x: {tensor}) -> {tensor} {{
      %a = braid.exp %x : ({tensor}) -> {tensor}
      %b = braid.transpose %a {{permutation = array<i64: 1, 0>}} : ({tensor}) -> {tensor}
      %c = braid.matmul %b, %a : ({tensor}, {tensor}) -> {tensor}
      %d = braid.transpose %c {{permutation = array<i64: 1, 0>}} : ({tensor}) -> {tensor}
      %e = braid.matmul %d, %c : ({tensor}, {tensor}) -> {tensor}
      func.return %e : {tensor}
    }}"""
    model = braid.compile(parse_mlir(make_context(), text, "test.mlir").module, jobs=1)
    inputs = [np.zeros((extent, extent), np.float32)]
    figures = measure_runs(lambda: model.run(inputs), runs=1, warmup=1)
    assert model.arena_bytes >= 32 << 20
    assert figures.output_bytes == 16 << 20
    assert figures.rss_growth_bytes > model.arena_bytes  # it is touched only when it runs
    assert figures.other_bytes(model.arena_bytes) < 4 << 20


def test_figures_say_their_units() -> None:
    figures = Figures(
        runs=3,
        median=2e-3,
        p90=3e-3,
        minimum=1e-3,
        rss_growth_bytes=9 << 20,
        mapped_bytes=1 << 20,
        output_bytes=2 << 20,
    )
    assert figures.to_json(4 << 20) == {
        "runs": 3,
        "median_seconds": 2e-3,
        "p90_seconds": 3e-3,
        "minimum_seconds": 1e-3,
        "arena_bytes": 4 << 20,
        "output_bytes": 2 << 20,
        "peak_rss_growth_bytes": 9 << 20,
        "mapped_file_bytes": 1 << 20,
        "other_bytes": 2 << 20,
    }
    assert figures.describe(4 << 20).splitlines() == [
        "median 2.000 ms, p90 3.000 ms, minimum 1.000 ms over 3 runs",
        "arena 4.00 MiB, peak RSS growth 9.00 MiB",
        "outputs 2.00 MiB, pages of files 1.00 MiB, anything else 2.00 MiB",
    ]
