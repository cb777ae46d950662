"""Counts the cases that the tests of this folder have tried, for `run.py` to tell."""

import os
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from test.fuzz.run import COUNT

_TRIED = re.compile(r"(\d+) (?:passing|failing|invalid)\b")
_cases = pytest.StashKey[int]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, Any, Any]:
    """Add the examples of a property, or the `cases` that a test has recorded as its property.

    A test without either is one case.
    """
    report = yield
    if call.when == "call" and not report.skipped:
        statistics = getattr(item, "hypothesis_statistics", "")
        examples = sum(int(count) for count in _TRIED.findall(statistics))
        recorded = sum(int(str(count)) for name, count in item.user_properties if name == "cases")
        stash = item.config.stash
        stash[_cases] = stash.get(_cases, 0) + (examples or recorded or 1)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    if COUNT in os.environ:
        Path(os.environ[COUNT]).write_text(str(session.config.stash.get(_cases, 0)))
