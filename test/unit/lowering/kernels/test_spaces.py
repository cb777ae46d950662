"""Schedule spaces get finer level by level, and every schedule can be emitted."""

from dataclasses import replace
from itertools import islice

import pytest

from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.support.errors import BraidError
from braid.targets.kernels.kernel_family import LEVELS
from test.machines import AVX512
from test.run.kernels.conftest import candidate_of
from test.schedules import emitted
from test.unit.lowering.kernels.emitted_code import CASES, Case, families

LANES = VectorUnit.of(AVX512).lanes
CHOOSING = {"gemm", "conv-direct", "conv-depthwise", "conv-grouped", "pool", "elementwise", "tiled"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.family}-{case.label}")
def test_levels(case: Case, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))
    family = families()[case.machines[0]][case.family]
    candidate = candidate_of(family, case.group(LANES))
    levels = [list(candidate.space(level)) for level in range(LEVELS + 1)]
    assert 1 <= len(levels[0]) <= 4 and levels[LEVELS] == []
    every = [schedule for level in levels for schedule in level]
    assert len(set(every)) == len(every)
    assert len({(type(each), *each.entries) for each in every}) == 1, "levels name other numbers"
    assert all(type(each).read(each.entries) == each for each in every)
    is_narrow = case.layouts[-1] == "abcd" and case.family in {"pool", "conv-depthwise"}
    if case.family in CHOOSING and not is_narrow:  # Lines of one vector leave no choice.
        assert len(levels[1]) > 0
    for level in levels:
        for schedule in (*islice(level, 4), *level[-1:]):
            assert emitted(candidate, schedule).symbol == "kernel"


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"vector_bytes": 7.0}, "'vector_bytes' 7, expected one of 16, 32"),
        ({"vector_bytes": 0.0}, "'vector_bytes' 0, expected one of 16, 32"),
        ({"vector_registers": 1.0}, "'vector_registers' 1, expected at least 8"),
    ],
)
def test_vectors_that_no_kernel_is_for(facts, message) -> None:
    machine = replace(AVX512, facts=tuple(sorted({**dict(AVX512.facts), **facts}.items())))
    with pytest.raises(BraidError, match=message):
        VectorUnit.of(machine)
