"""Addresses for the buffers of a stream; buffers share memory only if syncs separate them.

The memory of a buffer goes to another one only if all that use the first have ended before the
second is filled, whatever instructions take. The stream waits for as many bytes to be free, not for
bytes in one piece, so there may be enough free bytes for a buffer and yet not in one piece. Where
first fit finds none, addresses are searched (`solvers/packing`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from braid.solvers.packing import Buffer, pack
from braid.solvers.packing.moments import moments
from braid.targets.simulator.happens_before import HappensBefore
from braid.targets.simulator.instructions import Stream

ALIGNMENTS = (64, 1)
"""Alignments in bytes, tried until all buffers fit: 64 are a line of the host's caches."""
SEARCH_SECONDS = 1.0
"""The seconds of the search, where first fit fails."""
ROUNDS = 50
"""The most attempts with an order; buffers that did not fit go first in the next attempt."""


@dataclass(frozen=True)
class Placed:
    """An address for each buffer; `homeless` is the number of those that do not fit, and
    have -1.
    """

    addresses: tuple[int, ...]
    homeless: int


def place_buffers(stream: Stream, capacity: int) -> Placed:
    """Return the addresses below `capacity` for the buffers of `stream`.

    Tried are the order in which they are filled and that by size, each again and again with those
    that did not fit before the others; then they are searched. If that fails too, those stay that
    leave the fewest buffers without an address.
    """
    sizes = [buffer.size for buffer in stream.buffers]
    together = _together(stream)
    filled = sorted(range(len(sizes)), key=lambda b: (stream.buffers[b].first, b))
    largest = sorted(filled, key=lambda b: -sizes[b])
    best: Placed | None = None
    for alignment in ALIGNMENTS:
        for order in (filled, largest):
            for _ in range(ROUNDS):
                tried = _first_fit(order, sizes, together, capacity, alignment)
                if tried.homeless == 0:
                    return tried
                if best is None or tried.homeless < best.homeless:
                    best = tried
                order = sorted(order, key=lambda b: tried.addresses[b] >= 0)
    assert best is not None
    return _searched(sizes, together, capacity) or best


def _searched(sizes: Sequence[int], together: NDArray[np.bool_], capacity: int) -> Placed | None:
    """Return addresses by search: items live at the same moment are on the chip at once."""
    buffers = [
        Buffer.live_in(intervals, size)
        for intervals, size in zip(moments(together, sizes), sizes, strict=True)
    ]
    found = pack(buffers, capacity=capacity, time_limit=SEARCH_SECONDS)
    return Placed(found.offsets, 0) if found.arena_size <= capacity else None


def _together(stream: Stream) -> NDArray[np.bool_]:
    """Return which two buffers may be on the chip at once."""
    count = len(stream.buffers)
    if count == 0:
        return np.zeros((0, 0), np.bool_)
    order = HappensBefore(stream)
    ends = np.stack([order.end_of(buffer) for buffer in stream.buffers])
    begins = order.clocks[[buffer.first for buffer in stream.buffers]]
    apart = np.stack([(ends <= begin).all(axis=1) for begin in begins])
    return ~(apart | apart.T)


def _first_fit(
    order: Iterable[int],
    sizes: Sequence[int],
    together: NDArray[np.bool_],
    capacity: int,
    alignment: int,
) -> Placed:
    addresses = [-1] * len(sizes)
    homeless = 0
    for buffer in order:
        others = (int(other) for other in np.flatnonzero(together[buffer]))
        taken = sorted(
            (addresses[other], addresses[other] + sizes[other])
            for other in others
            if addresses[other] >= 0 and other != buffer
        )
        address = 0
        for begin, end in taken:
            if begin - address >= sizes[buffer]:
                break
            address = max(address, -(-end // alignment) * alignment)
        if address + sizes[buffer] <= capacity:
            addresses[buffer] = address
        else:
            homeless += 1
    return Placed(tuple(addresses), homeless)
