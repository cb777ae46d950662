"""Beams of packing: what they infer rules out no packing, so that one wide enough finds each."""

import pytest

from benchmarks.generators.planted_packings import BYTES, TICKS, planted_packing
from braid.solvers.packing.conflicts import Conflicts, find_conflicts
from braid.solvers.packing.native import CUT, FOUND, NativePacking
from braid.solvers.packing.placement import Placer
from braid.solvers.packing.problem import gather_items


def check_bases(placer: Placer, conflicts: Conflicts, bases: dict[int, int], capacity: int) -> None:
    for item, base in bases.items():
        assert 0 <= base <= capacity - placer.extents[item]
        for other, low, high in conflicts.of_item[item]:
            assert not low < base - bases[other] < high


def check_planted(seed: int, holes: float) -> None:
    planted = planted_packing(10 + seed % 25, seed, guillotine=seed % 3 == 0, holes=holes)
    items, _ = gather_items(planted.buffers)
    conflicts = find_conflicts(items)
    placer = Placer(items, conflicts)
    for members in conflicts.components():
        packing = NativePacking(placer, members, planted.capacity)
        ended, bases = packing.search_by_beam(30, width=3000, waste=3, seed=1)
        assert ended == FOUND and bases is not None
        check_bases(placer, conflicts, bases, planted.capacity)


@pytest.mark.parametrize("holes", [0.0, 0.1, 0.3])
def test_a_wide_beam_finds_what_was_planted(holes: float) -> None:
    for seed in range(12):
        check_planted(seed, holes)


@pytest.mark.slow
@pytest.mark.parametrize("holes", [0.0, 0.05, 0.1, 0.2, 0.3])
def test_a_wide_beam_finds_many(holes: float) -> None:
    for seed in range(12, 400):
        check_planted(seed, holes)


def check_filled(count: int, seed: int, *, units: int) -> None:
    """Few units of bytes and of time make many sizes equal."""
    planted = planted_packing(
        count, seed, guillotine=seed % 3 == 0, capacity=units * BYTES, horizon=units * TICKS
    )
    items, _ = gather_items(planted.buffers)
    conflicts = find_conflicts(items)
    placer = Placer(items, conflicts)
    for members in conflicts.components():
        if len(members) < 2:
            continue
        packing = NativePacking(placer, members, planted.capacity)
        for backwards in (False, True):
            ended, bases = packing.search_by_boundaries(
                30, width=2000, backwards=backwards, freedom=seed % 4 / 3, seed=seed
            )
            assert ended == FOUND and bases is not None
            check_bases(placer, conflicts, bases, planted.capacity)
        roomy = NativePacking(placer, members, planted.capacity + BYTES)
        ended, _ = roomy.search_by_boundaries(30, width=9, backwards=False, freedom=0, seed=seed)
        assert ended == CUT


@pytest.mark.parametrize("units", [8, 30, 256])
def test_what_fills_the_arena_is_found_from_moment_to_moment(units: int) -> None:
    for seed in range(60):
        check_filled(min(4 + seed, units), seed, units=units)


@pytest.mark.slow
@pytest.mark.parametrize("units", [8, 30, 256])
def test_much_that_fills_the_arena_is_found(units: int) -> None:
    for seed in range(60, 3400):
        check_filled(min(4 + seed % 60, units), seed, units=units)
