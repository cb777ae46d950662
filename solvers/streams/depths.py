"""The fewest places in channels with which nothing ends later than with unbounded ones.

A schedule in which each channel holds at most this many beats can be run with channels of these
depths. Running each iteration as early as they allow gives the least solution of a monotone system,
so nothing is later than in that schedule, whatever sources and sinks do beyond it: with them, the
last beat leaves in the cycle in which it leaves with unbounded channels.

The schedule that is taken begins each iteration as late as its readers allow: what comes before the
slowest process waits at the source and not in channels.
"""

from dataclasses import dataclass, replace

import numpy as np

from braid.solvers.streams.network import SOURCE, Integers, Network
from braid.solvers.streams.timing import Begins, Times, Timing

IMAGES = 2
"""The second token arrives before the first has left. With more in between, more are looked at."""

_MOST_EVENTS = 1 << 24
"""Reads and writes of all images that are looked at."""


@dataclass(frozen=True)
class Depths:
    """A depth for each channel, and cycles of `images` with them and without bounds.

    `fewest` says whether each depth was proven minimal: with one slot less, the images end later.
    `goes_on` says whether all images after them were shown to come at the rate of the slowest
    process too.
    """

    depths: tuple[int, ...]
    cycles: int
    unbounded_cycles: int
    fewest: bool
    images: int
    goes_on: bool


def fewest_depths(network: Network, *, trials: int = 200) -> Depths:
    """See the module; each depth is then lowered while the end stays, in at most `trials`.

    If images are short compared with the network's latency or its initial waits, many of them end
    before a channel is full. So there are twice as many until the rate stays.
    """
    one = Timing(network, 1)
    events = sum(own.when.size for own in one.events)
    images = IMAGES
    while True:
        found = _of_images(network, images, trials)
        if one.goes_on(found.depths):
            return replace(found, goes_on=True)
        images *= 2
        if images * events > _MOST_EVENTS:
            return found


def _of_images(network: Network, images: int, trials: int) -> Depths:
    timing = Timing(network, images)
    begins = timing.unbounded()
    unbounded = timing.times(begins)
    end = unbounded.cycles(network)
    deadlines = timing.deadlines(end)
    latest = _held(network, _latest(network, unbounded))
    depths = [min(one, other) for one, other in zip(_held(network, unbounded), latest, strict=True)]
    made = timing.bounded(begins, depths, deadlines=deadlines)
    if made is None:
        # Each of the two schedules can be run; not always what is less of both.
        depths = latest
        made = timing.bounded(begins, depths, deadlines=deadlines)
    assert made is not None, "a schedule can be run with the places that it needs"
    made, fewest = _lower(timing, made, depths, deadlines, trials)
    assert timing.times(made).cycles(network) == end, "depths were lowered while the end stayed"
    return Depths(tuple(depths), end, end, fewest, images, goes_on=False)


def _held(network: Network, times: Times) -> list[int]:
    """Return the most beats in each channel: a place is taken from a write's begin until after a
    read.
    """
    held: list[int] = []
    for channel in network.channels:
        takes, frees = times.places(network, channel)
        # Just after place i is taken, i + 1 places are, less those that were freed before.
        freed = np.searchsorted(frees, takes, side="left")
        held.append(int(np.max(np.arange(1, takes.size + 1) - freed)))
    return held


def _latest(network: Network, times: Times) -> Times:
    """Return begins as late as possible with the same last reads of what nothing reads from."""
    reads: list[Integers] = list(times.reads)
    writes: list[Integers] = list(times.writes)
    for number in reversed(range(len(network.processes))):
        process = network.processes[number]
        written = [channel for channel in network.channels if channel.writer == number]
        if not written:
            continue
        needed = np.minimum.reduce([reads[channel.reader] for channel in written])
        ends = needed - process.latency - 1
        images = ends.size // process.writes.size
        starts = np.arange(images, dtype=np.int64)[:, None] * process.iterations
        at_writes = (starts + process.writes[None, :]).ravel()
        slack = np.minimum.accumulate((ends - at_writes)[::-1])[::-1]
        writes[number] = slack + at_writes
        if process.name != SOURCE:
            at_reads = (starts + process.reads[None, :]).ravel()
            # The last reads have no writer to wait for: they are as early as before.
            later = np.searchsorted(at_writes, at_reads)
            last = slack.size - 1
            late = slack[np.minimum(later, last)] + at_reads
            reads[number] = np.where(later > last, np.maximum(late, times.reads[number]), late)
    return Times(tuple(reads), tuple(writes))


def _lower(
    timing: Timing, begins: Begins, depths: list[int], deadlines: Begins, trials: int
) -> tuple[Begins, bool]:
    """Lower depths in place, the widest channels first; return whether lowering any further ends
    later.
    """
    channels = timing.network.channels
    order = sorted(range(len(depths)), key=lambda one: -depths[one] * channels[one].bits)
    for index in order:
        given = depths[index]
        low, high = 0, given
        while high - low > 1:
            if trials == 0:
                return begins, False
            trials -= 1
            # Most slots are needed, so one slot less is tried first.
            middle = given - 1 if high == given else (low + high) // 2
            depths[index] = middle
            made = timing.bounded(begins, depths, lowered=[index], deadlines=deadlines)
            if made is None:
                low = middle
            else:
                begins, high = made, middle
            depths[index] = high
    return begins, True
