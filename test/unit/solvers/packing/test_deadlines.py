"""Packing when there is no time: what always comes to its end, and how late the rest is."""

from itertools import combinations, product
from random import Random
from time import monotonic

import pytest

from braid.solvers.deadline import NEVER, Deadline, OutOfTime
from braid.solvers.packing import Buffer, pack
from braid.solvers.packing.bounds import check_fixed
from braid.solvers.packing.conflicts import find_conflicts
from braid.solvers.packing.first_fit import first_fit
from braid.solvers.packing.placement import Placer
from braid.solvers.packing.problem import Item, gather_items


def random_items(random: Random, *, fixed: float = 0.0) -> list[Item]:
    buffers: list[Buffer] = []
    for index in range(random.randint(1, 12)):
        alignment = random.choice((1, 1, 2, 4))
        begin = random.randint(0, 8)
        more = ((begin + 6, begin + 6 + random.randint(0, 2)),) if random.random() < 0.3 else ()
        group = f"g{random.randrange(3)}" if random.random() < 0.3 else index
        base = 4 * random.randrange(4) if group == index and random.random() < fixed else None
        start = alignment * random.randrange(3) if group != index else 0
        end, size = begin + random.randint(0, 4), random.randint(0, 6)
        buffers.append(Buffer(begin, end, size, alignment, group, start, base, more))
    return gather_items(buffers)[0]


def meet(a: Item, x: int, b: Item, y: int) -> bool:
    """Whether two items overlap at bases x and y."""
    return any(
        s < f
        and e < t
        and x + p.start < y + q.start + q.size
        and y + q.start < x + p.start + p.size
        for p, q in product(a.parts, b.parts)
        for (s, t), (e, f) in product(p.lifetimes, q.lifetimes)
    )


def test_conflicts_are_those_of_all_pairs() -> None:
    random = Random(0)
    for _ in range(200):
        items = random_items(random)
        conflicts = find_conflicts(items)
        for i, j in combinations(range(len(items)), 2):
            for x, y in ((24, 24 + shift) for shift in range(-24, 25)):
                seen = any(o == j and low < x - y < high for o, low, high in conflicts.of_item[i])
                back = any(o == i and low < y - x < high for o, low, high in conflicts.of_item[j])
                assert seen == back == meet(items[i], x, items[j], y)


def test_first_fit_does_not_overlap() -> None:
    random = Random(1)
    for _ in range(500):
        items = random_items(random, fixed=0.2)
        placed = [item for item in items if item.fixed is not None]
        clash = any(meet(a, a.fixed or 0, b, b.fixed or 0) for a, b in combinations(placed, 2))
        if clash:
            with pytest.raises(ValueError, match="overlap"):
                check_fixed(items)
            continue
        check_fixed(items)
        for bases in (first_fit(items, Deadline.after(0)), first_fit(items, NEVER)):
            for item, base in zip(items, bases, strict=True):
                assert base >= 0 and base % item.alignment == 0 and item.fixed in (None, base)
            for (a, x), (b, y) in combinations(zip(items, bases, strict=True), 2):
                assert not meet(a, x, b, y)


def test_first_fit_is_that_of_the_rules() -> None:
    random = Random(2)
    for _ in range(300):
        items = random_items(random)
        order = sorted(range(len(items)), key=lambda i: (-items[i].extent, -items[i].duration, i))
        known = Placer(items, find_conflicts(items)).in_order(order)
        assert first_fit(items, NEVER) == [known[i] for i in range(len(items))]


def many(count: int) -> list[Buffer]:
    """Buffers of which most meet."""
    random = Random(count)
    begins = [random.randrange(count) for _ in range(count)]
    return [Buffer(b, b + random.randint(1, count), random.randint(1, 99)) for b in begins]


def apart(buffers: list[Buffer], offsets: tuple[int, ...]) -> bool:
    """Whether no two overlap that are live together."""
    live: list[tuple[int, int]] = []
    changes = [
        (time, begins, offset, offset + buffer.size)
        for buffer, offset in zip(buffers, offsets, strict=True)
        for time, begins in ((buffer.lower, True), (buffer.upper, False))
    ]
    for _, begins, low, high in sorted(changes):
        if not begins:
            live.remove((low, high))
        elif any(a < high and low < b for a, b in live):
            return False
        else:
            live.append((low, high))
    return True


def test_finding_conflicts_ends() -> None:
    items = gather_items(many(2000))[0]
    with pytest.raises(OutOfTime):
        find_conflicts(items, Deadline.after(0))
    assert len(find_conflicts(items, NEVER).components()) == 1


@pytest.mark.parametrize("limit", [0.0, 0.5])
def test_limits_hold_for_many_buffers(limit: float) -> None:
    buffers = many(2500)
    begin = monotonic()
    packing = pack(buffers, time_limit=limit)
    assert monotonic() - begin < 1.05 * limit + 2.0, "twice the time that is allowed: others run"
    assert apart(buffers, packing.offsets)
    assert packing.lower_bound <= packing.arena_size


def test_too_many_pairs_are_not_listed() -> None:
    """Of 4,000 buffers that are all live at once there are 8 million pairs."""
    buffers = [Buffer(index, 4000, 1) for index in range(4000)]
    packing = pack(buffers, time_limit=2)
    assert packing.arena_size == packing.lower_bound == 4000
