"""Compute the slots that the channels of a pipeline need, so that no stage waits for a slot.

A stage works on one request at a time, in order, and holds a slot of each channel that it writes
from its begin until the last reader of that slot has ended. Then the stage can reuse it for the
request that many later. That is a marked graph (F. Commoner et al., "Marked Directed Graphs",
1971): data are edges without tokens, free slots an edge back with as many tokens as there are
slots, and the interval between results is the largest ratio of time to tokens over its circuits.
Fewest bytes in slots at a given interval T is an integer program over when stages begin (R.
Govindarajan, G. Gao and P. Desai, "Minimizing Buffer Requirements under Rate-Optimal Schedule in
Regular Dataflow Networks", 2002):

    start(reader) >= start(source) + time(source)
    start(source) + T * depth >= start(reader) + time(reader)

T is the load of the busiest worker; no depths make results come faster. Stages of one worker
exclude each other, so their times modulo T must not overlap. A stage with several workers may work
on as many requests at once; any free worker begins the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import combinations

_FEW = 64
"""Requests that a simulation of shared workers passes before and while it measures."""
_ROUNDS = 8
"""The most times that all depths grow by one where workers that are shared still wait."""
_NEAR = 1.001
"""Two intervals are the same within this factor."""


@dataclass(frozen=True)
class Channel:
    """Slots of this many bytes that stage `source` writes and `readers`, after it, read."""

    source: int
    readers: tuple[int, ...]
    bytes: int


@dataclass(frozen=True)
class Pipeline:
    """Stages in topological order: the time that each takes, and the worker that runs it.

    Times are whole numbers, such as nanoseconds. A worker runs one stage at a time: among those
    that could run, the one with the oldest request. `turns` are, by stage, further workers that run
    it.
    """

    times: Sequence[int]
    workers: Sequence[int]
    channels: Sequence[Channel]
    turns: Mapping[int, Sequence[int]] = field(default_factory=dict[int, Sequence[int]])

    def workers_of(self, stage: int) -> frozenset[int]:
        """Return all workers of a stage."""
        return frozenset((self.workers[stage], *self.turns.get(stage, ())))

    @property
    def bound(self) -> int:
        """Results cannot come faster than at this interval: the load of the busiest workers.

        That is the work that only some can do, shared evenly by these.
        """
        own = [self.workers_of(stage) for stage in range(len(self.times))]
        totals = [
            (sum(time for time, each in zip(self.times, own, strict=True) if each <= some), some)
            for some in set(own)
        ]
        return max((-(-total // len(some)) for total, some in totals), default=0)

    @property
    def shares_workers(self) -> bool:
        """Return whether a worker has several stages that take time."""
        busy = [w for s, time in enumerate(self.times) if time for w in self.workers_of(s)]
        return len(busy) > len(set(busy))


@dataclass(frozen=True)
class Depths:
    """Slots of each channel, with which results come at `interval`.

    They are the fewest bytes for that where `is_least`. `starts` are those of the stages for the
    first request, in a schedule that repeats after each interval.
    """

    of: tuple[int, ...]
    starts: tuple[int, ...]
    interval: int
    is_least: bool


def channel_depths(pipeline: Pipeline, *, time_limit: float = 2.0) -> Depths:
    """Return the fewest bytes of slots with which results come as fast as any depths allow."""
    bound = max(pipeline.bound, 1)
    first = _one_by_one(pipeline)
    found = _solve(pipeline, bound, first, time_limit)
    if found is None:
        # The stages of some worker do not fit side by side into the interval, or not in time.
        interval, starts = first
        found = Depths(_depths(pipeline, starts, interval), tuple(starts), interval, False)
    return _grown(pipeline, found) if pipeline.shares_workers else found


def _depths(pipeline: Pipeline, starts: Sequence[int], interval: int) -> tuple[int, ...]:
    """Return the least depths for a schedule."""
    ends = [start + time for start, time in zip(starts, pipeline.times, strict=True)]
    return tuple(
        max([1, *(-(-(ends[r] - starts[c.source]) // interval) for r in c.readers)])
        for c in pipeline.channels
    )


def _one_by_one(pipeline: Pipeline) -> tuple[int, list[int]]:
    """Return a schedule in which stages begin as early as their data, and their worker, let them.

    Its interval is the bound where that fits, and else long enough for workers that never wait.
    """
    bound = max(pipeline.bound, 1)
    starts: list[int] = []
    ready = [0] * len(pipeline.times)
    free: dict[int, int] = {}
    chosen: list[int] = []
    for stage, time in enumerate(pipeline.times):
        worker = min(pipeline.workers_of(stage), key=lambda w: (free.get(w, 0), w))
        chosen.append(worker)
        start = max(ready[stage], free.get(worker, 0))
        starts.append(start)
        free[worker] = start + time
        for channel in pipeline.channels:
            for reader in channel.readers if channel.source == stage else ():
                ready[reader] = max(ready[reader], start + time)
    first: dict[int, int] = {}
    for start, worker in zip(starts, chosen, strict=True):
        first.setdefault(worker, start)
    return max(bound, *(free[worker] - first[worker] for worker in free)), starts


def _solve(
    pipeline: Pipeline, interval: int, first: tuple[int, list[int]], time_limit: float
) -> Depths | None:
    """Return the integer program; None where there is no schedule, or none was found in time."""
    from ortools.sat.python import cp_model  # it takes longer to load than most models to compile

    times, model = pipeline.times, cp_model.CpModel()
    horizon = sum(times) + interval * (len(times) + 1)
    starts = [model.new_int_var(0, horizon, "") for _ in times]
    most = horizon // interval + 2
    depths = [model.new_int_var(1, most, "") for _ in pipeline.channels]
    for channel, depth in zip(pipeline.channels, depths, strict=True):
        source = starts[channel.source]
        for reader in channel.readers:
            model.add(starts[reader] >= source + times[channel.source])
            model.add(source + interval * depth >= starts[reader] + times[reader])
        model.add(interval * depth >= times[channel.source])
    for one, other in combinations(range(len(times)), 2):
        alone = not pipeline.turns.get(one) and not pipeline.turns.get(other)
        same = alone and pipeline.workers[one] == pipeline.workers[other]
        if same and times[one] and times[other]:
            turns = model.new_int_var(-most, most, "")
            apart = starts[other] - starts[one] - interval * turns
            model.add(apart >= times[one])
            model.add(apart <= interval - times[other])
    if first[0] == interval:
        for variable, start in zip(starts, first[1], strict=True):
            model.add_hint(variable, start)
        for variable, depth in zip(depths, _depths(pipeline, first[1], interval), strict=True):
            model.add_hint(variable, depth)
    weights = [max(channel.bytes, 1) for channel in pipeline.channels]
    model.minimize(sum(w * d for w, d in zip(weights, depths, strict=True)))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = time_limit
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return Depths(
        tuple(solver.value(depth) for depth in depths),
        tuple(solver.value(start) for start in starts),
        interval,
        status == cp_model.OPTIMAL,
    )


def _grown(pipeline: Pipeline, found: Depths) -> Depths:
    """Return `found` with the additional slots that let shared workers never wait.

    They take what is there, oldest first, and not by the schedule: how fast that is, is simulated.
    """
    best, depths = found, list(found.of)
    reached = simulated_interval(pipeline, depths)
    for _ in range(_ROUNDS):
        if reached <= max(pipeline.bound, 1) * _NEAR:
            break
        depths = [depth + 1 for depth in depths]
        now = simulated_interval(pipeline, depths)
        if now * _NEAR < reached:
            best, reached = Depths(tuple(depths), found.starts, round(now), False), now
    return Depths(best.of, best.starts, max(round(reached), pipeline.bound), best.is_least)


def simulated_interval(pipeline: Pipeline, depths: Sequence[int]) -> float:
    """Return the mean interval between results, by playing the pipeline for some requests."""
    stages = range(len(pipeline.times))
    sources: list[list[int]] = [[] for _ in stages]
    slots: list[list[tuple[int, int]]] = [[] for _ in stages]  # reader, depth
    for channel, depth in zip(pipeline.channels, depths, strict=True):
        for reader in channel.readers:
            sources[reader].append(channel.source)
            slots[channel.source].append((reader, depth))
    total = _FEW * (2 + max(depths, default=1))
    done, begun = [0] * len(stages), [0] * len(stages)
    workers = [pipeline.workers_of(stage) for stage in stages]
    idle = {worker for each in workers for worker in each}
    events: list[tuple[int, int, int]] = []
    now, finished, half = 0, 0, 0

    def can_begin(stage: int) -> bool:
        request = begun[stage]
        return (
            request < total
            and all(done[source] > request for source in sources[stage])
            and all(done[reader] > request - depth for reader, depth in slots[stage])
        )

    while finished < total:
        for worker in sorted(idle):
            own = [s for s in stages if worker in workers[s] and can_begin(s)]
            if own:
                stage = min(own, key=lambda s: (begun[s], s))
                heappush(events, (now + pipeline.times[stage], stage, worker))
                begun[stage] += 1
                idle.discard(worker)
        now, stage, worker = heappop(events)
        done[stage] += 1
        idle.add(worker)
        if min(done) > finished:
            finished = min(done)
            half = now if finished <= total // 2 else half
    return (now - half) / (total - total // 2)
