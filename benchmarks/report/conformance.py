"""The table of StableHLO's, JAX's and IREE's tests."""

from collections.abc import Mapping
from typing import Any

from benchmarks.report.results import read, table

_LEFT_OUT = ("it runs on several devices", "it has the check", "it draws numbers", "the function")
"""How the reasons begin why a test is run by nobody."""
_EXECUTORS = {"compile": "braid", "xla": "XLA", "iree": "IREE"}


def suites() -> str:
    """Return how many tests of each suite each compiler passes, of those that can be run."""
    counts = read("conformance")
    ran = [name for name in _EXECUTORS if any(name in found for found in counts.values())]
    rows: list[list[str]] = []
    for suite, found in counts.items():
        left_out = _left_out(found["compile"])
        runnable = _cases(found["compile"]) - left_out
        shares = [_passed(found.get(name), runnable, left_out) for name in ran]
        wrong = str(found["compile"]["failed"])
        rows.append([suite, str(runnable), str(left_out), *shares, wrong])
    header = "suite", "tests", "left out", *(_EXECUTORS[name] for name in ran), "wrong by braid"
    return table(header, rows)


def _cases(counts: Mapping[str, Any]) -> int:
    return counts["passed"] + counts["failed"] + counts["unsupported"]


def _left_out(counts: Mapping[str, Any]) -> int:
    """Return how many tests the harness cannot make a model of."""
    reasons = [reason.partition(": ")[2] for reason in counts["others"].values()]
    return sum(reason.startswith(_LEFT_OUT) for reason in reasons)


def _passed(counts: Mapping[str, Any] | None, runnable: int, left_out: int) -> str:
    if counts is None or _cases(counts) != runnable + left_out:
        return ""
    return f"{counts['passed']} ({counts['passed'] / runnable:.1%})"
