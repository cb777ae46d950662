"""What installed packages add is looked up once in a process, however often it is asked for."""

import importlib.metadata
from collections.abc import Callable

import pytest

from braid.support import entry_points as module
from braid.targets.backends import backend_names


@pytest.mark.parametrize(
    "ask",
    [backend_names, module.installed_tables, module.family_backends, module.installed_targets],
)
def test_entry_points_are_read_once(
    ask: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading them takes milliseconds, and graphs have thousands of ops that ask."""
    first = ask()

    def read(**_: str) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(importlib.metadata, "entry_points", read)
    assert ask() == first
