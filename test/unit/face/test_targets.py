"""Targets of the default pipeline."""

import pytest

from braid.compiler import kernel_families
from braid.graph_pipeline import graph_passes, with_ordering
from braid.support.errors import BraidError


def test_passes_ask_the_target_that_was_named() -> None:
    targets = {getattr(p, "target") for p in graph_passes("other") if hasattr(p, "target")}  # noqa: B009
    assert targets == {"other"}


@pytest.mark.parametrize("seconds", [None, 1.5])
def test_orders_are_for_the_target_whatever_its_path(seconds: float | None) -> None:
    target = '/tmp/my "big} machine.toml'
    passes = with_ordering(graph_passes(target), target, seconds, 2)
    (ordering,) = (p for p in passes if p.name in ("assign-lanes", "measure-order"))
    assert getattr(ordering, "target") == target  # noqa: B009
    assert getattr(ordering, "lanes") == 2  # noqa: B009


def test_an_unknown_target() -> None:
    with pytest.raises(BraidError, match="there is no target 'nowhere'"):
        kernel_families("nowhere")
