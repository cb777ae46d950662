"""Packings against enumeration of all bases: groups, alignments, fixed offsets, lifetimes."""

from itertools import product
from random import Random

import pytest

from benchmarks.generators.planted_packings import planted_packing
from braid.solvers.packing import Buffer, Packing, pack


def live_together(a: Buffer, b: Buffer) -> bool:
    times = ((a.lower, a.upper), *a.more_lifetimes), ((b.lower, b.upper), *b.more_lifetimes)
    return any(max(s, e) < min(t, f) for (s, t), (e, f) in product(*times))


def valid(buffers: list[Buffer], offsets: tuple[int, ...], size: int) -> bool:
    """Whether every constraint holds, by the definition."""
    bases: dict[int | str, int] = {}
    for buffer, offset in zip(buffers, offsets, strict=True):
        if offset < 0 or offset % buffer.alignment or buffer.fixed_offset not in (None, offset):
            return False
        is_live = any(s < t for s, t in ((buffer.lower, buffer.upper), *buffer.more_lifetimes))
        if is_live and buffer.size and offset + buffer.size > size:
            return False
        if buffer.group is not None:
            base = offset - buffer.group_offset
            if bases.setdefault(buffer.group, base) != base:
                return False
    for i, j in product(range(len(buffers)), repeat=2):
        a, b = buffers[i], buffers[j]
        if i < j and (a.group is None or a.group != b.group) and live_together(a, b):
            low, high = offsets[i], offsets[j]
            if a.size and b.size and low < high + b.size and high < low + a.size:
                return False
    return True


def fits(buffers: list[Buffer], size: int) -> bool:
    """Whether any offsets within `size` are valid: all bases, one item after the other."""
    offsets: list[int] = []
    bases: dict[int | str, int] = {}

    def extend() -> bool:
        index = len(offsets)
        if index == len(buffers):
            return True
        buffer = buffers[index]
        known = bases.get(buffer.group) if buffer.group is not None else None
        for base in range(size + 1) if known is None else [known]:
            offsets.append(base + (buffer.group_offset if buffer.group is not None else 0))
            if buffer.group is not None and known is None:
                bases[buffer.group] = base
            if valid(buffers[: index + 1], tuple(offsets), size) and extend():
                return True
            offsets.pop()
            if buffer.group is not None and known is None:
                del bases[buffer.group]
        return False

    return extend()


def random_buffers(seed: int) -> list[Buffer]:
    random = Random(seed)
    grouped, fixed = random.random() < 0.4, random.random() < 0.3
    buffers: list[Buffer] = []
    for index in range(random.randint(1, 5)):
        alignment = random.choice((1, 1, 1, 2, 4))
        group = random.randrange(2) if grouped and random.random() < 0.6 else None
        begin = random.randint(0, 7)
        more = ((begin + 5, begin + 5 + random.randint(0, 2)),) if random.random() < 0.2 else ()
        buffers.append(
            Buffer(
                begin,
                begin + random.randint(0, 4),
                random.randint(0, 6),
                alignment,
                group,
                alignment * random.randrange(3) if group is not None else 0,
                alignment * random.randrange(3) if fixed and not index and group is None else None,
                more,
            )
        )
    return buffers


def check(seed: int) -> None:
    buffers = random_buffers(seed)
    packing = pack(buffers, time_limit=10, seed=seed)
    assert valid(buffers, packing.offsets, packing.arena_size)
    assert packing.lower_bound <= packing.arena_size
    assert not packing.arena_size or not fits(buffers, packing.arena_size - 1)
    assert packing.proven or any(buffer.group is not None for buffer in buffers)


def test_equals_enumeration() -> None:
    for seed in range(300):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_ten_thousand(block: int) -> None:
    for seed in range(1000 * block, 1000 * (block + 1)):
        check(seed)


def check_planted(count: int, seed: int, time_limit: float, *, guillotine: bool = False) -> Packing:
    planted = planted_packing(count, seed, guillotine=guillotine)
    buffers = list(planted.buffers)
    assert valid(buffers, planted.offsets, planted.capacity)
    packing = pack(buffers, capacity=planted.capacity, time_limit=time_limit)
    assert packing.arena_size == planted.capacity, "a rectangle without waste holds no less"
    assert valid(buffers, packing.offsets, packing.arena_size)
    return packing


@pytest.mark.parametrize("seed", range(6))
def test_a_planted_packing_is_found(seed: int) -> None:
    assert check_planted(60 + 12 * seed, seed, 30, guillotine=seed % 2 == 0).proven


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_a_large_planted_packing_is_found(seed: int) -> None:
    check_planted(300 + 50 * seed, seed, 60)
