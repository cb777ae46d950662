"""Packing without looking at pairs: every item on top of all that is below it.

It leaves room empty that other rules fill, but always ends soon: what there is when no time is left
for anything else.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from braid.solvers.packing.problem import Item


def stack(items: Sequence[Item]) -> list[int]:
    """Return bases without overlaps, what lives longest lowest, fixed items where they are."""
    times = sorted(
        {t for item in items for part in item.parts for own in part.lifetimes for t in own}
    )
    section = {time: place for place, time in enumerate(times)}
    top = np.zeros(max(len(times), 1), np.int64)

    def stretches(item: Item) -> Iterator[tuple[slice, int, int]]:
        """When bytes of the item are taken, from where and to where, from its base."""
        for part in item.parts:
            for begin, end in part.lifetimes:
                yield slice(section[begin], section[end]), part.start, part.start + part.size

    def lay(item: Item, base: int) -> None:
        for when, _, end in stretches(item):
            np.maximum(top[when], base + end, out=top[when])

    bases = [0] * len(items)
    free: list[int] = []
    for index, item in enumerate(items):
        if item.fixed is None:
            free.append(index)
        else:
            bases[index] = item.fixed
            lay(item, item.fixed)
    for index in sorted(free, key=lambda i: (-items[i].duration, -items[i].extent, i)):
        item = items[index]
        lowest = max((int(top[when].max()) - low for when, low, _ in stretches(item)), default=0)
        bases[index] = -(-max(lowest, 0) // item.alignment) * item.alignment
        lay(item, bases[index])
    return bases
