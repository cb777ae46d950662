"""Cycles of a design: schedules of its nests, then the times of all tokens."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from braid.solvers.hls.events import Fifo, Integers, accesses_of
from braid.solvers.hls.nests import MEMORY, Design, Process
from braid.solvers.hls.resources import Resources, resources
from braid.solvers.hls.schedule import Operators, Schedule, schedule
from braid.solvers.hls.timing import Clocked, Ends, Fifos, Tokens, ends_of

Side = tuple[Fifo, bool]
"""A FIFO, and whether it is written."""


@dataclass(frozen=True)
class Estimate:
    """Schedules of each process's nests, the begin and end of processes, and the total resources.

    `cycles` are until the last process has ended; `least` is what no depths of FIFOs can better:
    the longest chain of processes that wait for each other's arrays, if no FIFO is waited for.
    """

    schedules: tuple[tuple[Schedule, ...], ...]
    ends: Ends
    cycles: int
    least: int
    resources: Resources


def estimate(design: Design, operators: Operators) -> Estimate:
    """See the module; raises `timing.Deadlock` where FIFOs are too small."""
    schedules = tuple(
        tuple(schedule(nest, design.arrays, operators) for nest in process.nests)
        for process in design.processes
    )
    plans = [_ticks(one, plan) for one, plan in zip(design.processes, schedules, strict=True)]
    numbers, depths = _classes(design, [tokens for _, tokens in plans])
    after = _after(design)
    clocked = [
        Clocked(process.name, length, _tokens(tokens, numbers), waits, operators.begin)
        for process, (length, tokens), waits in zip(design.processes, plans, after, strict=True)
    ]
    ends = ends_of(clocked, Fifos(depths))
    reached: list[int] = []
    for one in clocked:
        first = max((reached[p] + one.delay for p in one.after), default=0)
        reached.append(first + one.length)
    return Estimate(
        schedules,
        ends,
        ends.cycles + operators.region,
        max(reached, default=0) + operators.region,
        resources(design, schedules, operators),
    )


def _ticks(process: Process, plan: tuple[Schedule, ...]) -> tuple[int, dict[Side, Integers]]:
    """Return the cycles of a process that never waits, and in which of them it uses each FIFO."""
    base = 0
    parts: dict[Side, list[Integers]] = {}
    for nest, one in zip(process.nests, plan, strict=True):
        for access in accesses_of(nest):
            ticks = base + access.iterations * one.interval + one.starts[access.op]
            side = access.fifo, nest.body[access.op].kind == "write"
            parts.setdefault(side, []).append(ticks)
        base += (nest.iterations - 1) * one.interval + one.depth + 1
    return base, {
        side: many[0] if len(many) == 1 else np.sort(np.concatenate(many))
        for side, many in parts.items()
    }


def _classes(
    design: Design, sides: list[dict[Side, Integers]]
) -> tuple[dict[Fifo, int], list[int]]:
    """Return a number for each FIFO; those that the same processes use at the same ticks
    share one.
    """
    users: dict[Fifo, list[tuple[int, bool, bytes]]] = {}
    for number, own in enumerate(sides):
        for (fifo, writes), ticks in own.items():
            users.setdefault(fifo, []).append((number, writes, ticks.tobytes()))
    classes: dict[tuple[int, tuple[tuple[int, bool, bytes], ...]], int] = {}
    depths: list[int] = []
    numbers: dict[Fifo, int] = {}
    for fifo, uses in users.items():
        depth = design.streams[fifo[0]].depth
        numbers[fifo] = classes.setdefault((depth, tuple(uses)), len(depths))
        if numbers[fifo] == len(depths):
            depths.append(depth)
    return numbers, depths


def _tokens(sides: Mapping[Side, Integers], numbers: Mapping[Fifo, int]) -> tuple[Tokens, ...]:
    unique = {(numbers[fifo], writes): ticks for (fifo, writes), ticks in sides.items()}
    return tuple(Tokens(number, writes, ticks) for (number, writes), ticks in unique.items())


def _after(design: Design) -> list[tuple[int, ...]]:
    """Return for each process the earlier ones for which it waits, since they store to an array
    that it uses.
    """
    waits: list[tuple[int, ...]] = []
    writers: dict[str, set[int]] = {}
    for number, process in enumerate(design.processes):
        ops = [op for nest in process.nests for op in nest.body if op.kind in MEMORY]
        waits.append(tuple(sorted({w for op in ops for w in writers.get(op.name, ())})))
        for op in ops:
            if op.kind == "store":
                writers.setdefault(op.name, set()).add(number)
    return waits
