"""Compute when iterations begin: the earliest times that beats and places in channels allow.

Times are longest paths (max-plus algebra): all iterations of a process are one prefix maximum, so
that a sweep over a network takes as long as numpy takes for its beats. With bounded channels,
backward and forward sweeps alternate over the processes whose predecessors became later, until none
is left. Times only grow, so this reaches the least solution.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from braid.solvers.streams.network import Channel, Integers, Network, Process

Numbers = Integers | slice
"""The iterations of a process that read or write; a slice if these are all iterations."""
Begins = list[Integers]
"""The cycles in which iterations that read or write begin, for each process."""

_SWEEPS = 200
"""Over a network, until the times of images that follow each other are the same."""


@dataclass(frozen=True)
class Times:
    """Cycles in which the reading and the writing iterations of each process begin."""

    reads: tuple[Integers, ...]
    writes: tuple[Integers, ...]

    def cycles(self, network: Network) -> int:
        """Return the cycles from the first iteration to the end of the last write or read."""
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
        """Return when places in a channel are taken, and when they are freed, by its beats."""
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
        first, begin = process.begin
        self.when = _union([reads, writes, np.full(int(begin > 0), first)])
        self.reads = self._numbers(reads)
        self.writes = self._numbers(writes)
        self.first_reads = self._numbers(reads[:: max(process.reads.size, 1)])
        self.last_writes = self._numbers(
            writes[process.writes.size - 1 :: max(process.writes.size, 1)]
        )
        # Cycles that each is later than iterations without waits.
        self.slack = np.zeros_like(self.when)
        if begin:
            at = np.searchsorted(self.when, first)
            self.slack[at] = max(0, begin - first)

    def _numbers(self, iterations: Integers) -> Numbers:
        """Return the positions of these iterations among all that read or write."""
        if iterations.size == self.when.size:
            return slice(0, None)
        return np.searchsorted(self.when, iterations)

    def times(self, waits: Sequence[tuple[Numbers, Integers]]) -> Integers:
        """Return the earliest begins, where the iterations of these numbers wait for these
        cycles.
        """
        slack = self.slack.copy()
        for numbers, cycles in waits:
            slack[numbers] = np.maximum(slack[numbers], cycles - self.when[numbers])
        # Iterations in between take a cycle each.
        np.maximum.accumulate(slack, out=slack)
        slack += self.when
        return slack


def _union(sorted_numbers: Sequence[Integers]) -> Integers:
    """Return the union of ascending numbers, which a stable sort merges."""
    numbers = np.sort(np.concatenate(sorted_numbers), kind="stable")
    is_new = np.ones(numbers.size, bool)
    is_new[1:] = numbers[1:] != numbers[:-1]
    return numbers[is_new]


class Timing:
    """The earliest times of a network for this many images one after the other.

    Begins are those of all iterations of each process that read or write.
    """

    def __init__(self, network: Network, images: int) -> None:
        self.network, self.images = network, images
        self.events = [_Events(process, images) for process in network.processes]
        self.into: list[list[int]] = [[] for _ in network.processes]
        self.outputs: list[list[int]] = [[] for _ in network.processes]
        for index, channel in enumerate(network.channels):
            self.into[channel.reader].append(index)
            self.outputs[channel.writer].append(index)
        self.most = _most(network, images)

    def unbounded(self) -> Begins:
        """Return where channels have all places."""
        begins: Begins = []
        for number, events in enumerate(self.events):
            begins.append(events.times(self._arrivals(number, begins)))
        return begins

    def bounded(
        self,
        before: Begins,
        depths: Sequence[int],
        *,
        lowered: Sequence[int] | None = None,
        deadlines: Begins | None = None,
    ) -> Begins | None:
        """Return the channels with more depth than needed: `depths`, of which none is more than
        with the begins `before`.

        With fewer slots everything is at least as late as before, so only processes that wait for
        later ones are recomputed: at first the writers of the channels `lowered`, or all. The
        result is None if processes deadlock or one begins after its deadline.
        """
        channels = range(len(depths)) if lowered is None else lowered
        begins = list(before)
        left = {self.network.channels[index].writer for index in channels}
        numbers = range(len(self.events))
        while left:
            # A writer waits for the reader that frees its slot, and a reader for the writer that
            # fills it.
            for order in (reversed(numbers), numbers):
                for number in order:
                    if number not in left:
                        continue
                    left.remove(number)
                    waits = self._arrivals(number, begins) + self._places(number, begins, depths)
                    times = self.events[number].times(waits)
                    if np.array_equal(times, begins[number]):
                        continue
                    if times[-1] > self.most:
                        return None
                    if deadlines is not None and bool((times > deadlines[number]).any()):
                        return None
                    begins[number] = times
                    left |= self._neighbours(number)
        return begins

    def goes_on(self, depths: Sequence[int]) -> bool:
        """Return whether images follow each other for ever at the rate of the slowest process.

        They do if the dependences within one image, and those on images this many cycles apart,
        contain no positive cycle. That is not found where times still change after `_SWEEPS`.
        """
        assert self.images == 1, "others have the same times"
        interval = max(process.iterations for process in self.network.processes)
        begins = self._apart(self.unbounded(), interval)
        for _ in range(_SWEEPS):
            before = list(begins)
            for order in (reversed(range(len(begins))), range(len(begins))):
                for number in order:
                    waits = self._arrivals(number, begins)
                    waits += self._places_apart(number, begins, depths, interval)
                    begins[number] = self.events[number].times(waits)
                    begins = self._apart(begins, interval, [number])
            if all(map(np.array_equal, begins, before)):
                return True
        return False

    def _apart(self, begins: Begins, interval: int, numbers: Sequence[int] | None = None) -> Begins:
        """Return where an image's first iteration begins after the last one of the image
        before.
        """
        found = list(begins)
        for number in range(len(begins)) if numbers is None else numbers:
            when, spare = self.events[number].when, interval
            spare -= self.network.processes[number].iterations
            found[number] = np.maximum(begins[number], when + begins[number][-1] - when[-1] - spare)
        return found

    def deadlines(self, cycles: int) -> Begins:
        """Return the latest begins with which all ends within this many cycles, whatever the depths
        are.
        """
        found = [np.full_like(events.when, cycles - 1) for events in self.events]
        for number in reversed(range(len(self.events))):
            events, latency = self.events[number], self.network.processes[number].latency
            own = found[number]
            own[events.writes] -= latency
            for index in self.outputs[number]:
                reader = self.network.channels[index].reader
                needed = found[reader][self.events[reader].reads] - latency - 1
                own[events.writes] = np.minimum(own[events.writes], needed)
            slack = np.minimum.accumulate((own - events.when)[::-1])[::-1]
            found[number] = slack + events.when
        return found

    def times(self, begins: Begins) -> Times:
        """Return the times of reads and writes."""
        pairs = list(zip(begins, self.events, strict=True))
        return Times(
            tuple(one[events.reads] for one, events in pairs),
            tuple(one[events.writes] for one, events in pairs),
        )

    def _arrivals(self, number: int, begins: Begins) -> list[tuple[Numbers, Integers]]:
        """Return when beats are there that a process reads."""
        found: list[tuple[Numbers, Integers]] = []
        for index in self.into[number]:
            writer = self.network.channels[index].writer
            written = begins[writer][self.events[writer].writes]
            late = self.network.processes[writer].latency + 1
            found.append((self.events[number].reads, written + late))
        return found

    def _outputs_with(
        self, number: int, begins: Begins, depths: Sequence[int]
    ) -> Iterator[tuple[Numbers, Integers, int]]:
        """Return, for each channel that a process writes, the events that take and free slots, and
        the depth.
        """
        own = self.events[number]
        for index in self.outputs[number]:
            channel = self.network.channels[index]
            other = self.events[channel.reader]
            taken = own.first_reads if channel.is_memory else own.writes
            freed = begins[channel.reader][other.last_writes if channel.is_memory else other.reads]
            yield taken, freed, depths[index]

    def _places(
        self, number: int, begins: Begins, depths: Sequence[int]
    ) -> list[tuple[Numbers, Integers]]:
        """Return when places are free that a process writes: place i + depth is place i
        once more.
        """
        found: list[tuple[Numbers, Integers]] = []
        for taken, freed, depth in self._outputs_with(number, begins, depths):
            again = slice(depth, None) if isinstance(taken, slice) else taken[depth:]
            found.append((again, freed[: max(0, freed.size - depth)] + 1))
        return found

    def _places_apart(
        self, number: int, begins: Begins, depths: Sequence[int], interval: int
    ) -> list[tuple[Numbers, Integers]]:
        """Return positions as `_places` does, also for later images, with the times of this one."""
        found: list[tuple[Numbers, Integers]] = []
        for taken, freed, depth in self._outputs_with(number, begins, depths):
            again = np.arange(freed.size) + depth
            later = again // freed.size * interval
            cycles = np.empty_like(freed)
            cycles[again % freed.size] = freed + 1 - later
            found.append((taken, cycles))
        return found

    def _neighbours(self, number: int) -> set[int]:
        channels = self.network.channels
        writers = {channels[index].writer for index in self.into[number]}
        return writers | {channels[index].reader for index in self.outputs[number]}


def earliest(
    network: Network,
    images: int,
    depths: Sequence[int] | None = None,
) -> Times | None:
    """Return times for this many images one after the other; channels are unbounded without
    `depths`.

    The result is None if they deadlock.
    """
    timing = Timing(network, images)
    begins = timing.unbounded()
    if depths is not None:
        bounded = timing.bounded(begins, depths)
        if bounded is None:
            return None
        begins = bounded
    return timing.times(begins)


def _most(network: Network, images: int) -> int:
    """Return an upper bound of cycles: one iteration at a time in the whole network."""
    return sum(
        (process.iterations + process.reads.size) * images * (process.latency + 3)
        for process in network.processes
    )
