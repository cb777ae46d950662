"""Targets of the default pipeline."""

import pytest
from xdsl.dialects.builtin import ModuleOp

from braid.dialects.braid.attribute_names import TARGET
from braid.dialects.braid.attributes import TargetAttr
from braid.driver.lower_source import known_target
from braid.driver.pipeline import graph_passes, with_ordering
from braid.support.errors import BraidError
from braid.targets.machines.load import load_target


def test_passes_ask_the_target_of_the_module() -> None:
    asking = [p for p in graph_passes(load_target()) if hasattr(p, "target")]
    assert asking and {getattr(p, "target") for p in asking} == {None}  # noqa: B009


def test_what_backends_ask_for_stands_in_the_pipeline() -> None:
    names = [pass_.name for pass_ in graph_passes(load_target())]
    assert "prepare-backends" not in names and "expand-padding" in names


@pytest.mark.parametrize("seconds", [None, 1.5])
def test_orders_are_for_streams(seconds: float | None) -> None:
    passes = with_ordering(graph_passes(load_target()), seconds, 2)
    (ordering,) = (p for p in passes if p.name in ("assign-inter-op-streams", "measure-order"))
    assert getattr(ordering, "streams") == 2  # noqa: B009


def test_an_unknown_target() -> None:
    module = ModuleOp([])
    module.attributes[TARGET] = TargetAttr.of("nowhere", {})
    with pytest.raises(BraidError, match="there is no target 'nowhere'"):
        known_target(module)
