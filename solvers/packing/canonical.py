"""Packing below a ceiling by depth-first search, from the bottom up.

Of the packings that fit, consider one whose bases have the least sum: each item lies at 0, at its
fixed offset, or on top of another item, and does not fit any lower. Placing its items by ascending
base puts each at the lowest base above those placed before. So the search (in C) branches on which
item comes next, at its lowest base, in ascending order of bases. A branch ends where

- an item does not fit below the ceiling any more,
- the items of a moment in time, each above its lowest base, do not: they are jobs with release
  times on one machine,
- nothing that is left can lie where an item, passed over by the search, would have fitted, or
- the next item would lie above one that still fits below it.

An item with no other item above it needs no alternatives, and items that are never live together
are searched separately. The way of branching and the bounds of moments are those of M. Moffitt,
"MiniMalloc: A lightweight memory allocator for hardware-accelerated machine learning" (ASPLOS
2023).

Which item is tried first decides how long it takes, so the search is begun again and again, with
other orders and for longer, and by turns with beams. Beams place an item at the section with the
fewest candidates, and keep the partial packings with the smoothest skyline, like the best
heuristics for packings without waste. The weight of each step is random, so that beams differ (E.
Burke, G. Kendall, G. Whitwell, "A new placement heuristic for the orthogonal stock-cutting
problem", Operations Research 2004). Between two full moments, the bytes below the lowest item that
lives at both are filled, at the one by items that end then, at the other by items that begin: it
lies no lower than the first level that sums of their sizes have in common. A beam that fails starts
again, wider, where few partial packings were left.

Where all moments are full, beams from the first moment to the last, or back, find more: beginning
items replace ending ones in blocks of equal sums of adjacent items, and if sizes differ much few
blocks are possible. All orders that are left are kept, as a PQ-tree (see `packing_boundaries.c`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from random import Random

from braid.solvers.deadline import Deadline
from braid.solvers.packing.heuristics import orders
from braid.solvers.packing.native import FOUND, NONE, NativePacking
from braid.solvers.packing.placement import Placer

_NODES = 2
"""Nodes of the first search, per item; half as many more in each round."""
_NOISY = 4
"""Orders with noise in each round."""
_WIDTH = 16
"""Width of the first beams; twice as wide in each round, up to `_WIDEST`."""
_WIDEST = 1024
_WASTES = (3, 9, 18)
"""The costs of empty space in the beams of a round: a step of the skyline costs 1 to 11."""
_BEAMS = 3
"""Beams of each waste in a round."""
_FILLING = 32
"""Width of the first beams where no space is left over; twice as wide in each round."""
_FILLING_WIDEST = 8192
_FREEDOMS = (0.3, 0.0, 1.0)
"""Weights of the number of orders that are left, in the costs of beams."""

Attempt = Callable[[NativePacking, float], tuple[int, dict[int, int] | None]]


def search(
    placer: Placer, members: Sequence[int], ceiling: int, deadline: Deadline, seed: int
) -> tuple[dict[int, int] | None, bool]:
    """Return the bases of `members` that end at or below `ceiling`, and whether none exist.

    Ends at `deadline`. Where groups of buffers are packed, the search is
    not complete and proves nothing.
    """
    native = NativePacking(placer, members, ceiling)
    return _try(native, _attempts(placer, members, seed), deadline)


def fill(
    placer: Placer, members: Sequence[int], ceiling: int, deadline: Deadline, seed: int
) -> dict[int, int] | None:
    """Return the bases of `members` where a few narrow beams fill all below `ceiling` with them."""
    native = NativePacking(placer, members, ceiling)
    return _try(native, _fillings(_FILLING, Random(seed)), deadline)[0]


def _try(
    native: NativePacking, attempts: Iterable[Attempt], deadline: Deadline
) -> tuple[dict[int, int] | None, bool]:
    """Return what `search` does, by the first of `attempts` that ends it."""
    for attempt in attempts:
        left = deadline.remaining
        if left <= 0:
            break
        ended, bases = attempt(native, left)
        if ended == FOUND:
            return bases, False
        if ended == NONE:
            return None, native.flat
    return None, False


def _attempts(placer: Placer, members: Sequence[int], seed: int) -> Iterator[Attempt]:
    """Yield searches without end, by trees and by beams."""
    random, fillers = Random(seed), Random(seed)
    known = orders(placer, members)
    nodes, width, filling = _NODES * len(members), _WIDTH, _FILLING
    while True:
        yield from _fillings(filling, fillers)
        for order in (*known, *(_noisy(random.choice(known), random) for _ in range(_NOISY))):
            yield partial(NativePacking.search, order=order, nodes=nodes)
        for waste in _WASTES * _BEAMS:
            start = random.randrange(1, 1 << 63)
            yield partial(NativePacking.search_by_beam, width=width, waste=waste, seed=start)
        nodes = nodes * 3 // 2
        width = min(2 * width, _WIDEST)
        filling = min(2 * filling, _FILLING_WIDEST)


def _fillings(width: int, random: Random) -> Iterator[Attempt]:
    """Yield beams that find packings without empty space, and end at once where there is some."""
    for freedom in _FREEDOMS:
        for backwards in (False, True):
            start = random.randrange(1, 1 << 63)
            yield partial(
                NativePacking.search_by_boundaries,
                width=width,
                backwards=backwards,
                freedom=freedom,
                seed=start,
            )


def _noisy(order: Sequence[int], random: Random) -> list[int]:
    spread = random.choice((2, 5, 10, 0.3 * len(order)))
    rank = {item: place + random.gauss(0, spread) for place, item in enumerate(order)}
    return sorted(order, key=rank.__getitem__)
