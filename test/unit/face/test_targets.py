"""Targets of the default pipeline."""

import pytest

from braid.compiler import graph_passes, kernel_families
from braid.errors import BraidError


def test_passes_ask_the_target_that_was_named() -> None:
    targets = {getattr(p, "target") for p in graph_passes("other") if hasattr(p, "target")}  # noqa: B009
    assert targets == {"other"}


def test_an_unknown_target() -> None:
    with pytest.raises(BraidError, match="there is no target 'nowhere'"):
        kernel_families("nowhere")
