"""Measuring a stream of requests for `braid bench`."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from braid.runtime.device_arrays import Buffer
from braid.runtime.model import Model
from braid.runtime.state_session import StateSession


@dataclass(frozen=True)
class StageFigures:
    """A stage of a stream: runs, seconds of one, expected ones (0: unknown), part of time busy.

    For devices that take turns, it is the fraction of all of them; `device` names them.
    """

    name: str
    device: str
    runs: int
    seconds: float
    expected_seconds: float
    busy: float

    def describe(self) -> str:
        """Return one line for the stage."""
        where = f"@{self.name}" + (f" on {self.device}" if self.device else "")
        said = f", expected {1e3 * self.expected_seconds:.3f} ms" if self.expected_seconds else ""
        return f"  {where}: {1e3 * self.seconds:.3f} ms{said}, busy {self.busy:.0%}"


@dataclass(frozen=True)
class StreamFigures:
    """Requests per second of a stream, how many were under way at most, and its stages."""

    requests: int
    capacity: int
    per_second: float
    stages: tuple[StageFigures, ...]

    def describe(self) -> str:
        """Return a line for the stream and one for each stage; the busiest is the bottleneck."""
        head = (
            f"stream of {self.requests} requests, {self.capacity} under way: "
            f"{self.per_second:.2f} a second, a result each {1e3 / self.per_second:.3f} ms"
        )
        most = max((stage.busy for stage in self.stages), default=0.0)
        marks = (" (bottleneck)" * (s.busy == most and len(self.stages) > 1) for s in self.stages)
        lines = (s.describe() + mark for s, mark in zip(self.stages, marks, strict=True))
        return "\n".join([head, *lines])


def measure_stream(
    model: Model | StateSession, requests: Iterable[Sequence[Buffer]], runs: int, warmup: int
) -> StreamFigures:
    """Stream requests, of which there are enough; time passes from the last result of the warm-up.

    In a session, each request is a step that continues from the previous one.
    Behind the requests that are measured come as many as may be under way, so that the pipeline is
    full from the first to the last of them.
    """
    with model.stream([]) as stream:
        more = stream.capacity
    counted = max(1, warmup)
    taken = islice(map(tuple, requests), counted + runs + more)
    with model.stream(taken, copy=False) as stream:
        for _ in range(counted):
            next(stream)
        before = stream.stages()
        begin = time.perf_counter()
        for _ in range(runs):
            next(stream)
        took = time.perf_counter() - begin
        after = stream.stages()
    stages: list[StageFigures] = []
    for old, new in zip(before, after, strict=True):
        count, seconds = new.count - old.count, new.seconds - old.seconds
        each = seconds / count if count else 0.0
        stages.append(
            StageFigures(
                new.name,
                " and ".join((new.device, *new.replicas)),
                count,
                each,
                new.expected_seconds,
                min(1.0, seconds / took / (1 + len(new.replicas))),
            )
        )
    return StreamFigures(runs, stream.capacity, runs / took, tuple(stages))
