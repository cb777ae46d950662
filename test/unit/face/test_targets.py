"""Targets of the default pipeline."""

import shutil
from pathlib import Path

import pytest

from braid.compiler import known_target
from braid.graph_pipeline import graph_passes, with_ordering
from braid.support.errors import BraidError


def test_passes_ask_the_target_that_was_named(tmp_path: Path) -> None:
    path = str(shutil.copy(Path(__file__).parents[3] / "targets/machines/host.toml", tmp_path))
    targets = {getattr(p, "target") for p in graph_passes(path) if hasattr(p, "target")}  # noqa: B009
    assert targets == {path}


def test_what_backends_ask_for_stands_in_the_pipeline() -> None:
    names = [pass_.name for pass_ in graph_passes("host")]
    assert "prepare-backends" not in names and "expand-padding" in names


@pytest.mark.parametrize("seconds", [None, 1.5])
def test_orders_are_for_the_target_whatever_its_path(seconds: float | None) -> None:
    target = '/tmp/my "big} machine.toml'
    passes = with_ordering(graph_passes("host"), target, seconds, 2)
    (ordering,) = (p for p in passes if p.name in ("assign-lanes", "measure-order"))
    assert getattr(ordering, "target") == target  # noqa: B009
    assert getattr(ordering, "lanes") == 2  # noqa: B009


def test_an_unknown_target() -> None:
    with pytest.raises(BraidError, match="there is no target 'nowhere'"):
        known_target("nowhere")
