"""The count of PyTorch's own samples, on a few of them."""

from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("onnxscript")
pytest.importorskip("expecttest")

from benchmarks.conformance.opinfo import (
    Ending,
    Sample,
    by_compile,
    by_export,
    ops,
    run,
    summary,
)


@pytest.fixture(scope="module")
def entries() -> dict[str, Any]:
    return ops()


@pytest.mark.parametrize(
    ("name", "compiled", "exported"),
    [
        ("atan2", Ending.RIGHT, Ending.RIGHT),
        ("hstack", Ending.RIGHT, Ending.RIGHT),
        ("fft.fft", Ending.RIGHT, Ending.RIGHT),
        ("_native_batch_norm_legit", Ending.RIGHT, Ending.REPORTED),
        ("linalg.svd", Ending.NOT_EXPORTED, Ending.NOT_EXPORTED),
        ("bernoulli", Ending.NO_GRAPH, Ending.RANDOM),
        ("empty_like", Ending.ANY_VALUES, Ending.ANY_VALUES),
    ],
)
def test_endings(entries: dict[str, Any], name: str, compiled: Ending, exported: Ending) -> None:
    assert run(entries[name], "compile")[0] == compiled
    assert run(entries[name], "from_torch")[0] == exported


def test_wrong_results_are_found() -> None:
    import torch

    calls: list[int] = []

    def unsteady(x: Any) -> Any:
        calls.append(1)
        return x * 2 + len(calls)

    sample = Sample(unsteady, [torch.ones(3)], compares=True)
    assert by_compile(sample)[0] == Ending.WRONG
    ending, why = by_export(sample)
    assert ending in (Ending.WRONG, Ending.REPORTED) and "differs by up to" in why


def test_summary() -> None:
    found = {"a": (Ending.RIGHT, ""), "b": (Ending.REFUSED, "no"), "c": (Ending.NO_SAMPLE, "")}
    assert summary(found).startswith("1 of 2 right (50.0 %) of 3 ops; 0 wrong")
