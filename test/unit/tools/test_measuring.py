"""Figures of repeated runs, and targets of the default pipeline."""

import pytest

from braid.compiler import graph_passes, kernel_families
from braid.errors import BraidError
from braid.tools.commands.measuring import measure_runs, percentile


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
    figures = measure_runs(lambda: calls.append(0), runs=4, warmup=3)
    assert len(calls) == 7
    assert 0 <= figures.minimum <= figures.median <= figures.p90


def test_passes_ask_the_target_that_was_named() -> None:
    targets = {getattr(p, "target") for p in graph_passes("other") if hasattr(p, "target")}  # noqa: B009
    assert targets == {"other"}


def test_an_unknown_target() -> None:
    with pytest.raises(BraidError, match="there is no target 'nowhere'"):
        kernel_families("nowhere")
