"""Copies of ops that are fused are no part of their group."""

import pytest

from benchmarks.generators.opaque_modules import random_module
from test.unit.passes.random_pipelines import LOWERING, run_where_possible

RECOMPUTED = ("select-rematerialization{tensor-threshold=0}", "apply-rematerialization")
IN_ORDER = ("select-rematerialization{budget=500 time-limit=0.5}", "apply-rematerialization")


@pytest.mark.parametrize("decisions", [RECOMPUTED, IN_ORDER], ids=["sets", "order"])
@pytest.mark.parametrize("seed", [11, 263, 275, 287, 292])
def test_what_is_fused_before_it_is_recomputed_can_be_outlined(seed, decisions) -> None:
    module = random_module(seed, seed % 12 + 1, parameters=0.3)
    pipeline = ("select-fusion", *decisions, "apply-fusion")
    after, ran = run_where_possible(module, iter(pipeline))
    assert "select-fusion" in ran
    run_where_possible(after, iter(LOWERING))
    after.verify()
