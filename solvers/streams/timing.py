"""When iterations begin: the earliest times that beats and places in channels allow.

Times are longest paths (max-plus algebra): all iterations of a process are one prefix maximum, so
that a sweep over a network takes as long as numpy takes for its beats. With bounded channels,
sweeps are repeated until nothing changes: each makes times later, the least solution is reached.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from braid.solvers.streams.network import Channel, Integers, Network, Process

_NEVER = np.int64(-(1 << 60))


@dataclass(frozen=True)
class Times:
    """Cycles in which the iterations that read, and those that write, of each process begin."""

    reads: tuple[Integers, ...]
    writes: tuple[Integers, ...]

    def cycles(self, network: Network) -> int:
        """From the first iteration to the end of the last write or read."""
        ends = [
            int(times[-1]) + late
            for process, reads, writes in zip(
                network.processes, self.reads, self.writes, strict=True
            )
            for times, late in ((reads, 0), (writes, process.latency))
            if times.size
        ]
        return max(ends) + 1

    def places(self, network: Network, channel: Channel) -> tuple[Integers, Integers]:
        """When places in a channel are taken, and when they are freed, by its beats."""
        if not channel.is_memory:
            return self.writes[channel.writer], self.reads[channel.reader]
        written = network.processes[channel.writer].reads.size
        read = network.processes[channel.reader].writes.size
        return self.reads[channel.writer][::written], self.writes[channel.reader][read - 1 :: read]


class _Events:
    """Iterations of a process, over several images, that read or write."""

    def __init__(self, process: Process, images: int) -> None:
        starts = np.arange(images, dtype=np.int64)[:, None] * process.iterations
        reads = (starts + process.reads[None, :]).ravel()
        writes = (starts + process.writes[None, :]).ravel()
        first, self.begin = process.begin
        self.when = np.union1d(reads, writes)
        if self.begin:
            self.when = np.union1d(self.when, [first])
        self.first = np.searchsorted(self.when, [first])[:1]
        self.reads = np.searchsorted(self.when, reads)
        self.writes = np.searchsorted(self.when, writes)
        self.first_reads = self.reads[:: max(process.reads.size, 1)]
        self.last_writes = self.writes[process.writes.size - 1 :: max(process.writes.size, 1)]

    def times(self, waits: Sequence[tuple[Integers, Integers]]) -> Integers:
        """Earliest begins, where the iterations of these numbers have to wait for these cycles."""
        bound = np.full(self.when.shape, _NEVER)
        if self.begin:
            bound[self.first] = self.begin
        for numbers, cycles in waits:
            bound[numbers] = np.maximum(bound[numbers], cycles)
        # Iterations in between take a cycle each.
        slack: Integers = np.maximum.accumulate(np.maximum(bound - self.when, 0)).astype(np.int64)
        return slack + self.when


def earliest(
    network: Network,
    images: int,
    depths: Sequence[int] | None = None,
    *,
    most_cycles: int | None = None,
) -> Times | None:
    """Times for so many images one after the other; channels are unbounded without `depths`.

    None where they wait for each other for ever, or for longer than `most_cycles`.
    """
    events = [_Events(process, images) for process in network.processes]
    limit = most_cycles or _most(network, images)
    times: list[Integers] | None = None
    while True:
        before = times
        times = _sweep(network, events, depths, before)
        if max(int(one[-1]) for one in times if one.size) > limit:
            return None
        unchanged = before is not None and all(
            np.array_equal(old, new) for old, new in zip(before, times, strict=True)
        )
        if depths is None or unchanged:
            return Times(
                tuple(one[event.reads] for one, event in zip(times, events, strict=True)),
                tuple(one[event.writes] for one, event in zip(times, events, strict=True)),
            )


def _most(network: Network, images: int) -> int:
    """More cycles than any schedule that ends: one iteration at a time in the whole network."""
    return sum(
        (process.iterations + process.reads.size) * images * (process.latency + 3)
        for process in network.processes
    )


def _sweep(
    network: Network,
    events: Sequence[_Events],
    depths: Sequence[int] | None,
    before: Sequence[Integers] | None,
) -> list[Integers]:
    """Times of all processes in their order, after the reads of the sweep before."""
    times: list[Integers] = []
    for number in range(len(network.processes)):
        waits: list[tuple[Integers, Integers]] = []
        for index, channel in enumerate(network.channels):
            if channel.reader == number:
                writer = network.processes[channel.writer]
                there = times[channel.writer][events[channel.writer].writes] + writer.latency + 1
                waits.append((events[number].reads, there))
            elif channel.writer == number and depths is not None and before is not None:
                own, other = events[number], events[channel.reader]
                frees = other.last_writes if channel.is_memory else other.reads
                freed = before[channel.reader][frees] + 1
                free = np.full(freed.shape, _NEVER)
                free[depths[index] :] = freed[: max(0, freed.size - depths[index])]
                waits.append((own.first_reads if channel.is_memory else own.writes, free))
        times.append(events[number].times(waits))
    return times
