"""Depths of channels, against an event simulator that knows nothing of how they were found."""

from collections.abc import Callable, Sequence
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.solvers.partition.channels import Channel, Depths, Pipeline, channel_depths


class Deadlock(Exception):
    """Nothing can begin, and not everything has ended."""


def play(
    pipeline: Pipeline, depths: Sequence[int], count: int, time: Callable[[int, int], float]
) -> list[float]:
    """When each of `count` requests has passed all stages, event by event.

    A slot is an object: taken when its writer begins, given back when its last reader has ended.
    Workers that could do several things do that of the oldest request.
    """
    stages = range(len(pipeline.times))
    free = list(depths)
    left: dict[tuple[int, int], int] = {}  # readers to come of a channel's slot for a request
    begun = [0] * len(stages)
    ended: list[set[int]] = [set() for _ in stages]  # requests, which may overtake each other
    running: dict[int, tuple[float, int, int]] = {}  # by worker: when it ends, stage, request
    workers = {worker for stage in stages for worker in pipeline.workers_of(stage)}
    results: list[float] = []
    now = 0.0
    while len(results) < count:
        for worker in workers - running.keys():
            able: list[tuple[int, int]] = []
            for stage in stages:
                request = begun[stage]
                if worker not in pipeline.workers_of(stage) or request == count:
                    continue
                own = [k for k, c in enumerate(pipeline.channels) if c.source == stage]
                reads = [c.source for c in pipeline.channels if stage in c.readers]
                if all(request in ended[s] for s in reads) and all(free[k] for k in own):
                    able.append((request, stage))
            if able:
                request, stage = min(able)
                begun[stage] += 1
                for k, channel in enumerate(pipeline.channels):
                    if channel.source == stage:
                        free[k] -= 1
                        left[k, request] = len(channel.readers)
                running[worker] = now + time(stage, request), stage, request
        if not running:
            raise Deadlock
        worker = min(running, key=lambda w: running[w])
        now, stage, request = running.pop(worker)
        ended[stage].add(request)
        for k, channel in enumerate(pipeline.channels):
            if stage in channel.readers:
                left[k, request] -= 1
                free[k] += left[k, request] == 0
        while len(results) < count and all(len(results) in each for each in ended):
            results.append(now)
    return results


def interval(pipeline: Pipeline, depths: Sequence[int], count: int = 240) -> float:
    """Of the results in the long run, at the times of the pipeline."""
    results = play(pipeline, depths, count, lambda stage, _: pipeline.times[stage])
    return (results[-1] - results[count // 2 - 1]) / (count - count // 2)


def random_pipeline(random: Random, *, shared: bool) -> Pipeline:
    """Stages of which each but the first reads one before it, with skip paths."""
    count = random.randint(2, 7)
    times = [random.choice([0, 1, 2, 3, 5, 8, 13, 20]) for _ in range(count)]
    times[random.randrange(count)] += 7
    readers: dict[int, set[int]] = {}
    for stage in range(1, count):
        for _ in range(random.choice([1, 1, 2])):
            readers.setdefault(random.randrange(stage), set()).add(stage)
    channels: list[Channel] = []
    for source, own in readers.items():
        together = random.random() < 0.5
        for group in [own] if together else [{reader} for reader in own]:
            channels.append(Channel(source, tuple(sorted(group)), random.randint(1, 9)))
    workers = [random.randrange(3) for _ in range(count)] if shared else list(range(count))
    return Pipeline(times, workers, channels)


def test_a_chain_of_equal_stages_is_double_buffered() -> None:
    chain = Pipeline([5, 5, 5], [0, 1, 2], [Channel(0, (1,), 1), Channel(1, (2,), 1)])
    assert channel_depths(chain).of == (2, 2)


def test_a_skip_path_has_room_for_what_passes_beside_it() -> None:
    channels = [Channel(i, (i + 1,), 1) for i in range(4)] + [Channel(0, (4,), 1)]
    found = channel_depths(Pipeline([5] * 5, range(5), channels))
    assert found.of == (2, 2, 2, 2, 5)
    # Stages with time to spare need no second slot.
    found = channel_depths(
        Pipeline([1, 9, 1], range(3), [Channel(0, (1,), 1), Channel(1, (2,), 1)])
    )
    assert sum(found.of) == 4 and found.interval == 9


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1 << 30))
def test_results_come_as_fast_as_the_slowest_stage(seed: int) -> None:
    """And no slower; with one slot less in a channel that is tight they come slower."""
    pipeline = random_pipeline(Random(seed), shared=False)
    found = channel_depths(pipeline)
    assert found.is_least and found.interval == pipeline.bound == max(pipeline.times)
    assert interval(pipeline, found.of) == pytest.approx(pipeline.bound)
    for k, depth in enumerate(found.of):
        less = [d - (i == k) for i, d in enumerate(found.of)]
        if depth > 1:
            assert interval(pipeline, less) > pipeline.bound * 1.001


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1 << 30))
def test_no_fewer_bytes_do(seed: int) -> None:
    """Against all depths that take less."""
    random = Random(seed)
    pipeline = random_pipeline(random, shared=False)
    if len(pipeline.channels) > 4:
        return
    found = channel_depths(pipeline)

    def size(depths: Sequence[int]) -> int:
        return sum(c.bytes * d for c, d in zip(pipeline.channels, depths, strict=True))

    for depths in product(*(range(1, depth + 2) for depth in found.of)):
        if size(depths) < size(found.of):
            assert interval(pipeline, depths) > pipeline.bound * 1.0001


def in_turn(random: Random) -> Pipeline:
    """Stages on workers of their own, some of them on two or three that take turns."""
    pipeline = random_pipeline(random, shared=False)
    count, turns = len(pipeline.times), dict[int, list[int]]()
    for stage in range(count):
        more = random.choice((0, 0, 1, 2))
        turns[stage] = [100 + 2 * stage + k for k in range(more)]
    return Pipeline(pipeline.times, pipeline.workers, pipeline.channels, turns)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1 << 30))
def test_workers_that_take_turns_share_a_stage(seed: int) -> None:
    pipeline = in_turn(Random(seed))
    found = channel_depths(pipeline)
    parts = [-(-t // len(pipeline.workers_of(s))) for s, t in enumerate(pipeline.times)]
    assert found.interval == pipeline.bound == max(parts)
    assert interval(pipeline, found.of) <= pipeline.bound * 1.01


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1 << 30))
def test_workers_that_take_turns_come_to_no_halt(seed: int) -> None:
    random = Random(seed)
    pipeline = in_turn(random)
    depths = [random.randint(1, 3) for _ in pipeline.channels]
    assert len(play(pipeline, depths, 40, lambda *_: random.choice([0, 0.1, 1, 20]))) == 40


def test_a_worker_with_a_stage_of_its_own_leaves_the_shared_one_to_others() -> None:
    """The second runs on both; the first worker alone has the first."""
    channels = [Channel(0, (1,), 1)]
    pipeline = Pipeline([6, 6], [0, 0], channels, {1: [1]})
    assert pipeline.bound == 6
    found = channel_depths(pipeline)
    assert interval(pipeline, found.of) == pytest.approx(found.interval, rel=0.02)


def test_workers_with_several_stages_do_not_wait_for_room() -> None:
    """At most a few per cent of pipelines, whose stages do not fit together, are slower."""
    random, slower, worst = Random(1), 0, 1.0
    for _ in range(12):
        pipeline = random_pipeline(random, shared=True)
        found = channel_depths(pipeline)
        reached = interval(pipeline, found.of, 600)
        assert reached <= max(found.interval, pipeline.bound) * 1.02
        generous = interval(pipeline, [depth + 12 for depth in found.of], 600)
        slower += reached > generous * 1.01
        worst = max(worst, reached / generous)
    assert slower <= 1 and worst < 1.35


def test_random_delays_never_end_in_deadlock() -> None:
    """In 1,000 pipelines with workers of their own and shared ones, also with single slots."""
    random = Random(7)
    for number in range(1000):
        pipeline = random_pipeline(random, shared=number % 2 == 1)
        found = Depths((1,) * len(pipeline.channels), (), 0, False)
        if number % 16 < 2:
            found = channel_depths(pipeline, time_limit=0.5)
        results = play(pipeline, found.of, 12, lambda *_: random.expovariate(1.0))
        assert results == sorted(results)
