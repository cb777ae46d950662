"""Beams of packing: what they infer rules out no packing, so that one wide enough finds each."""

import pytest

from benchmarks.generators.planted_packings import planted_packing
from braid.solvers.packing.conflicts import find_conflicts
from braid.solvers.packing.native import FOUND, NativePacking
from braid.solvers.packing.placement import Placer
from braid.solvers.packing.problem import gather_items


def check_planted(seed: int, holes: float) -> None:
    planted = planted_packing(10 + seed % 25, seed, guillotine=seed % 3 == 0, holes=holes)
    items, _ = gather_items(planted.buffers)
    conflicts = find_conflicts(items)
    placer = Placer(items, conflicts)
    for members in conflicts.components():
        packing = NativePacking(placer, members, planted.capacity)
        ended, bases = packing.search_by_beam(30, width=3000, waste=3, seed=1)
        assert ended == FOUND and bases is not None
        for item, base in bases.items():
            assert 0 <= base <= planted.capacity - placer.extents[item]
            for other, low, high in conflicts.of_item[item]:
                assert not low < base - bases[other] < high


@pytest.mark.parametrize("holes", [0.0, 0.1, 0.3])
def test_a_wide_beam_finds_what_was_planted(holes: float) -> None:
    for seed in range(12):
        check_planted(seed, holes)


@pytest.mark.slow
@pytest.mark.parametrize("holes", [0.0, 0.05, 0.1, 0.2, 0.3])
def test_a_wide_beam_finds_many(holes: float) -> None:
    for seed in range(12, 400):
        check_planted(seed, holes)
