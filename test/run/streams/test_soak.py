"""Requests by the thousand, with failures and delays at random: none lost, doubled or reordered."""

import gc
import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import braid
from braid.support.errors import BraidError
from test.run.streams.conftest import SIZE, inputs

SOAK = {"FAULTY_FAILS": "40", "FAULTY_DELAYS": "100"}


def resident() -> int:
    """Bytes of the process that are in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def soak(model: braid.Model, count: int, step: int) -> tuple[int, list[int]]:
    """Streams `count` requests; how many failed, and the resident memory after each `step`.

    Each result must be that of its own request, to the bit: requests differ by their number.
    """
    steps = np.linspace(0, 1, SIZE, dtype=np.float32)
    handed_in = 0

    def source() -> Iterator[np.ndarray]:
        nonlocal handed_in
        for number in range(count):
            handed_in += 1
            yield steps + number

    failed, sizes = 0, list[int]()
    seen = 0
    for number, result in enumerate(model.stream(source(), return_errors=True)):
        seen += 1
        if isinstance(result, BraidError):
            assert "by chance" in str(result) and "'@cluster_" in str(result)
            failed += 1
        else:
            # ((x + x) - x + x) - x …: every op adds or takes away what tells the request.
            np.testing.assert_array_equal(np.asarray(result), reference(steps + number))
        if seen % step == 0:
            gc.collect()
            sizes.append(resident())
    assert seen == handed_in == count
    return failed, sizes


def reference(x: np.ndarray) -> np.ndarray:
    """Return the results of `chain` on five devices."""
    first = x + x
    second = first - x
    third = second + x
    fourth = third - x
    return fourth + first


def set_soak(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SOAK.items():
        monkeypatch.setenv(name, value)


def check_soak(model: braid.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """300 requests, some of which fail, and all are late."""
    set_soak(monkeypatch)
    failed, _ = soak(model, 300, 300)
    assert 5 < failed < 150


def check_long_soak(model: braid.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 of them; memory is flat, too."""
    set_soak(monkeypatch)
    soak(model, 1000, 1000)
    failed, sizes = soak(model, 10_000, 1000)
    assert 300 < failed < 3000
    assert max(sizes) - sizes[0] < 1 << 20


def test_the_reference(faulty: braid.Model) -> None:
    for x in inputs(3):
        np.testing.assert_array_equal(np.asarray(faulty(x)), reference(x))


def test_three_hundred(faulty: braid.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    check_soak(faulty, monkeypatch)


@pytest.mark.slow
def test_ten_thousand(faulty: braid.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    check_long_soak(faulty, monkeypatch)
