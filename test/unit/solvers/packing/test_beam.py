"""Beams of packing: what they infer rules out no packing, so that one wide enough finds each."""

from dataclasses import replace
from random import Random

import pytest

from benchmarks.generators.planted_packings import BYTES, TICKS, planted_packing
from benchmarks.packing import overlapping
from braid.solvers.packing import Buffer, pack
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


def test_full_arenas_may_hold_empty_aligned_and_fixed_buffers() -> None:
    for seed in range(40):
        random = Random(seed)
        planted = planted_packing(2 + seed // 2, seed, capacity=12 * BYTES, horizon=12 * TICKS)
        buffers = [Buffer(0, 12 * TICKS, 0)] * (seed % 3)
        for buffer, offset in zip(planted.buffers, planted.offsets, strict=True):
            alignment = random.choice((1, 1, 64, BYTES))
            fixed = offset if random.random() < 0.03 else None
            buffers.append(replace(buffer, alignment=alignment, fixed_offset=fixed))
        packing = pack(buffers, capacity=planted.capacity, time_limit=10)
        assert packing.arena_size == planted.capacity
        assert not overlapping(buffers, packing.offsets)
        assert all(o % b.alignment == 0 for b, o in zip(buffers, packing.offsets, strict=True))


def test_what_is_empty_is_left_to_other_searches() -> None:
    items, _ = gather_items([Buffer(0, 2, 8), Buffer(0, 2, 8), Buffer(0, 1, 0)])
    placer = Placer(items, find_conflicts(items))
    packing = NativePacking(placer, range(len(items)), 16)
    assert packing.search_by_boundaries(1, width=4, backwards=False, freedom=0, seed=1)[0] == CUT


@pytest.mark.slow
@pytest.mark.parametrize("units", [8, 30, 256])
def test_much_that_fills_the_arena_is_found(units: int) -> None:
    for seed in range(60, 3400):
        check_filled(min(4 + seed % 60, units), seed, units=units)
