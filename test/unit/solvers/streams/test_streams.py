"""Times and depths of streams against a simulation that steps through every cycle."""

import time

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from braid.solvers.streams import (
    Channel,
    Network,
    Process,
    earliest,
    fewest_depths,
    fill_levels,
)
from braid.solvers.streams.network import sink, source


def stepped(
    network: Network,
    images: int,
    depths: list[int],
    most: int,
    levels: list[list[int]] | None = None,
) -> int | None:
    """Cycles by stepping; None where it has not ended after `most`. Shares nothing but the data.

    Places that are taken in each cycle, by channel, are added to `levels`.
    """
    processes = network.processes
    iteration = [0] * len(processes)
    reserved = [0] * len(network.channels)
    ready: list[list[int]] = [[] for _ in network.channels]
    end = 0
    for cycle in range(most):
        freed: list[int] = []
        taken: list[int] = []
        for number, process in enumerate(processes):
            if iteration[number] == images * process.iterations:
                continue
            at = iteration[number] % process.iterations
            reads, writes = at in process.reads, at in process.writes
            first, last = at in process.reads[:1], at in process.writes[-1:]
            into = [i for i, one in enumerate(network.channels) if one.reader == number]
            out = [i for i, one in enumerate(network.channels) if one.writer == number]
            if reads and not all(ready[i] and ready[i][0] <= cycle for i in into):
                continue
            if writes and not all(
                reserved[i] < depths[i] for i in out if not network.channels[i].is_memory
            ):
                continue
            images_out = [i for i in out if network.channels[i].is_memory]
            if first and not all(reserved[i] < depths[i] for i in images_out):
                continue
            iteration[number] += 1
            taken += images_out if first else []
            freed += [i for i in into if last and network.channels[i].is_memory]
            if reads:
                freed += [i for i in into if not network.channels[i].is_memory]
                end = max(end, cycle)
                for i in into:
                    ready[i].pop(0)
            if writes:
                taken += [i for i in out if i not in images_out]
                end = max(end, cycle + process.latency)
                for i in out:
                    ready[i].append(cycle + process.latency + 1)
        if levels is not None:
            levels.append([one + taken.count(i) for i, one in enumerate(reserved)])
        for i in freed:
            reserved[i] -= 1
        for i in taken:
            reserved[i] += 1
        done = zip(iteration, processes, strict=True)
        if all(count == images * process.iterations for count, process in done):
            return end + 1
    return None


def process(rng: np.random.Generator, reads: int) -> Process:
    iterations = reads + int(rng.integers(0, 12))
    read = np.sort(rng.choice(iterations, reads, replace=False))
    writes = int(rng.integers(1, iterations + 1))
    write = np.sort(rng.choice(iterations, writes, replace=False))
    return Process("p", iterations, read, write, int(rng.integers(1, 6)))


def reordered(rng: np.random.Generator, reads: int) -> list[Process]:
    """Return processes that fill a memory with an image, and emit it in beats of other sizes."""
    every, passes = np.arange(reads), int(rng.integers(1, 4))
    writes = (np.arange(int(rng.integers(1, 9))) + 1) * passes - 1
    fill = Process("fill", reads, every, np.array([reads - 1]), 0)
    return [fill, Process("drain", int(writes[-1]) + 1, np.array([0]), writes, 2)]


def chain(seed: int) -> Network:
    """Return a chain, and a second channel around one that writes as often as it reads."""
    rng = np.random.default_rng(seed)
    processes = [source(int(rng.integers(3, 9)))]
    memories: list[int] = []
    for _ in range(int(rng.integers(1, 4))):
        given = processes[-1].writes.size
        if rng.integers(3) == 0:
            memories.append(len(processes))
            processes += reordered(rng, given)
        else:
            processes.append(process(rng, given))
    last = processes[-1].writes.size
    late = np.arange(last) + int(rng.integers(0, 5))
    around = Process("around", int(late[-1]) + 1, np.arange(last), late, 3)
    join = Process("join", last, np.arange(last), np.arange(last), 2)
    processes += [around, join, sink(last)]
    count = len(processes)
    channels = [Channel(i, i + 1, is_memory=i in memories) for i in range(count - 1)]
    channels.append(Channel(count - 4, count - 2, bits=8))
    return Network(tuple(processes), tuple(channels))


@given(st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_times_are_those_of_stepping(seed: int) -> None:
    network = chain(seed)
    unbounded = earliest(network, 2)
    assert unbounded is not None
    cycles = unbounded.cycles(network)
    assert stepped(network, 2, [10_000] * len(network.channels), 5000) == cycles
    rng = np.random.default_rng(seed)
    depths = [int(depth) for depth in rng.integers(1, 9, len(network.channels))]
    for images in (2, 4):
        bounded = earliest(network, images, depths)
        found = None if bounded is None else bounded.cycles(network)
        assert stepped(network, images, depths, 5000) == found


@given(st.integers(0, 10_000))
@example(279)
@settings(max_examples=40, deadline=None)
def test_fill_levels_are_those_of_stepping(seed: int) -> None:
    network = chain(seed)
    found = fewest_depths(network)
    depths = list(found.depths)
    times = earliest(network, found.images, depths)
    assert times is not None
    expected: list[list[int]] = []
    stepped(network, found.images, depths, 50_000, expected)
    levels = np.array(fill_levels(network, times)).T
    # Iterations that neither read nor write may follow, and last places be freed.
    common = min(len(levels), len(expected))
    np.testing.assert_array_equal(levels[:common], expected[:common])
    assert not levels[common:].any() and not np.any(expected[common:])
    np.testing.assert_array_equal(levels.max(0), depths)


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_depths_lose_nothing_and_each_is_needed(seed: int) -> None:
    network = chain(seed)
    found = fewest_depths(network)
    assert found.fewest
    depths = list(found.depths)
    images = found.images
    assert stepped(network, images, depths, 50_000) == found.unbounded_cycles == found.cycles
    for index, depth in enumerate(depths):
        if depth > 1:
            less = [*depths[:index], depth - 1, *depths[index + 1 :]]
            slower = stepped(network, images, less, 50_000)
            assert slower is None or slower > found.cycles


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_images_go_on_at_the_rate_of_the_slowest_process(seed: int) -> None:
    network = chain(seed)
    found = fewest_depths(network)
    assert found.goes_on
    depths = list(found.depths)
    few, many = (stepped(network, images, depths, 50_000) for images in (20, 40))
    assert few is not None and many is not None
    assert many - few == 20 * max(process.iterations for process in network.processes)


@pytest.mark.parametrize("begin", [0, 300])
def test_a_channel_around_many_images_holds_them_all(begin: int) -> None:
    """Behind four memories; what waits for weights at first hides what others wait for."""
    beats = np.arange(4)
    fill = Process("fill", 4, beats, beats[-1:], 0)
    drain = Process("drain", 4, beats[:1], beats, 2)
    slow = Process("slow", 4, beats, beats, 2, (0, begin))
    processes = [source(4), *[fill, drain] * 4, Process("join", 4, beats, beats, 2), slow, sink(4)]
    channels = [Channel(i, i + 1, is_memory=i in (1, 3, 5, 7)) for i in range(11)]
    network = Network(tuple(processes), (*channels, Channel(0, 9)))
    found = fewest_depths(network)
    assert found.fewest and found.goes_on and found.depths[-1] > 16
    few, many = (earliest(network, images, found.depths) for images in (100, 200))
    assert few is not None and many is not None
    assert many.cycles(network) - few.cycles(network) == 400


@pytest.mark.parametrize("size", [56, 224])
def test_fifty_layers_with_branches_take_seconds(size: int) -> None:
    """3x3 windows on images of so many rows, a channel around each two of them."""
    reads = np.arange(size * size)
    window = Process("window", size * size + size + 1, reads, reads + size + 1, 20)
    join = Process("join", size * size, reads, reads, 5)
    processes = [source(size * size)]
    channels: list[Channel] = []
    for _ in range(17):
        start = len(processes) - 1
        for _ in range(2):
            channels.append(Channel(len(processes) - 1, len(processes), 128))
            processes.append(window)
        channels += [Channel(len(processes) - 1, len(processes), 128)]
        channels += [Channel(start, len(processes), 128)]
        processes.append(join)
    channels.append(Channel(len(processes) - 1, len(processes), 128))
    processes.append(sink(size * size))
    began = time.process_time()
    found = fewest_depths(Network(tuple(processes), tuple(channels)))
    seconds = time.process_time() - began
    assert found.cycles == found.unbounded_cycles and found.fewest and found.goes_on
    assert seconds < 10, f"{seconds:.1f} s"
