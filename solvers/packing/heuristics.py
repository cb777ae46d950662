"""Fast packings: several orders of placement, then reordering of what came out on top."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from random import Random

from braid.solvers.deadline import Deadline, OutOfTime
from braid.solvers.packing.placement import Bases, Placer


def orders(placer: Placer, members: Sequence[int]) -> list[list[int]]:
    """Return orders by size, by bytes x time, by duration, by pressure, by begin and by end."""
    items = placer.items
    extent, conflicts = placer.extents, placer.conflicts
    duration = {i: items[i].duration for i in members}
    begin = {i: min((p.lifetimes[0][0] for p in items[i].parts), default=0) for i in members}
    end = {i: max((p.lifetimes[-1][1] for p in items[i].parts), default=0) for i in members}
    pressure = {i: extent[i] + sum(extent[j] for j, _, _ in conflicts[i]) for i in members}
    return [
        sorted(members, key=lambda i: (-extent[i], -duration[i], begin[i])),
        sorted(members, key=lambda i: (-extent[i] * duration[i], begin[i])),
        sorted(members, key=lambda i: (-duration[i], -extent[i], begin[i])),
        sorted(members, key=lambda i: (-pressure[i], -extent[i], begin[i])),
        sorted(members, key=lambda i: (begin[i], -extent[i])),
        sorted(members, key=lambda i: (-end[i], -extent[i])),
    ]


def greedy_packings(
    placer: Placer, members: Sequence[int], deadline: Deadline
) -> Iterator[dict[int, int]]:
    """Yield the bases by each rule of placement. Raises OutOfTime at `deadline`."""
    candidates = orders(placer, members)
    for order in candidates:
        yield placer.in_order(order, deadline=deadline)
    for order in candidates[:2]:
        yield placer.in_order(order, tight=True, deadline=deadline)
    for order in candidates[:3]:
        rank = {item: float(at) for at, item in enumerate(order)}
        yield placer.lowest_first(members, rank, deadline)


def greedy(
    placer: Placer, members: Sequence[int], target: int, deadline: Deadline
) -> dict[int, int] | None:
    """Return the lowest greedy packing of `members`, the first that ends at or below `target`.

    At `deadline` the lowest so far, None where not even one rule has come to its end.
    """
    best: dict[int, int] | None = None
    best_height = -1
    with suppress(OutOfTime):
        for bases in greedy_packings(placer, members, deadline):
            height = placer.height(bases, members)
            if best is None or height < best_height:
                best, best_height = bases, height
            if best_height <= target:
                break
    return best


def promote(
    placer: Placer,
    members: Sequence[int],
    start: Bases,
    target: int,
    deadline: Deadline,
    seed: int,
) -> Bases:
    """Improve `start` by placing what ends above the target earlier, and again.

    "Squeaky wheel" optimization (Joslin and Clements, JAIR 1999). Stops at `target`, at
    `deadline` or after a number of rounds that does not depend on the clock.
    """
    random = Random(seed)
    count = len(members)
    best, best_height = start, placer.height(start, members)
    order = sorted(members, key=lambda i: (start[i], -placer.extents[i]))
    position = {item: float(place) for place, item in enumerate(order)}
    best_position = dict(position)
    for _ in range(max(20, min(10 * count, 40_000 // count))):
        if best_height <= target:
            break
        order = sorted(members, key=position.__getitem__)
        try:
            bases = placer.in_order(order, deadline=deadline)
        except OutOfTime:
            break
        height = placer.height(bases, members)
        if height < best_height:
            best, best_height, best_position = bases, height, dict(position)
        elif random.random() < 0.05:
            position = dict(best_position)
            continue
        for place, item in enumerate(order):
            position[item] = place + random.random()
        for item in order:
            if bases[item] + placer.extents[item] > best_height - 1:
                position[item] -= random.random() * count / 2
    return best
