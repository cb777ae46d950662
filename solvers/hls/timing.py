"""Compute when pipelines that stall on FIFOs end.

The times of every token are exact, and no cycles are simulated.

A pipeline that waits for a token stops as a whole (Vitis's default, `stp`). So a process has
its own clock, which stops while it waits: its reads and writes happen at fixed ticks of this clock.
A tick's time is its number plus the greatest delay so far, which is one prefix maximum (longest
path, max-plus algebra). Full FIFOs delay writers; sweeps are repeated until nothing changes, and
each makes times later only, so that the least solution is reached.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
NEVER = np.int64(-(1 << 60))


class Deadlock(Exception):
    """No process can go on; says which FIFOs are waited for."""


@dataclass(frozen=True)
class Tokens:
    """The reads or writes of FIFO number `fifo` by a process, one at each of `ticks`, ascending."""

    fifo: int
    writes: bool
    ticks: Integers


@dataclass(frozen=True)
class Clocked:
    """A process of `length` ticks; it begins `delay` cycles after those of `after` have ended."""

    name: str
    length: int
    tokens: tuple[Tokens, ...]
    after: tuple[int, ...] = ()
    delay: int = 0


@dataclass(frozen=True)
class Fifos:
    """Places of each FIFO, and cycles from a write until its token can be read, and back."""

    depths: Sequence[int]
    forward: int = 1
    backward: int = 1


@dataclass(frozen=True)
class Ends:
    """Cycle in which each process begins and ends, and how long it stood still in between."""

    begins: tuple[int, ...]
    ends: tuple[int, ...]
    stalls: tuple[int, ...]

    @property
    def cycles(self) -> int:
        """Until all have ended."""
        return max(self.ends, default=0)


class _Process:
    def __init__(self, given: Clocked) -> None:
        self.given = given
        ticks = [one.ticks for one in given.tokens]
        every = np.concatenate(ticks) if ticks else np.empty(0, np.int64)
        self.order = np.argsort(every, kind="stable")
        self.ticks = every[self.order]
        # All events of one tick happen in one cycle.
        self.together = np.searchsorted(self.ticks, self.ticks, side="right") - 1
        edges = np.cumsum([0, *(len(one) for one in ticks)])
        self.parts = [slice(int(a), int(b)) for a, b in pairwise(edges)]
        self.bound = np.full(every.shape, NEVER, np.int64)
        self.times = every.copy()
        self.begin = 0
        self.end = given.length

    def run(self, begin: int) -> None:
        """Time from bounds."""
        delays = np.maximum.accumulate(
            np.maximum(self.bound[self.order] - self.ticks, np.int64(begin))
        )[self.together]
        self.times[self.order] = self.ticks + delays
        last = int(delays[-1]) if delays.size else begin
        self.begin, self.end = begin, self.given.length + last


def ends_of(processes: Sequence[Clocked], fifos: Fifos) -> Ends:
    """Return the earliest times; `processes` come in an order in which writers precede readers.

    Raises `Deadlock` where FIFOs are too small for any time, or tokens are read that none writes.
    """
    states = [_Process(one) for one in processes]
    writers = _sides(processes, True)
    readers = _sides(processes, False)
    _check(processes, writers, readers)
    feedback = any(
        len(processes[p].tokens[at].ticks) > fifos.depths[fifo] for fifo, (p, at) in writers.items()
    )
    # Without deadlock nothing ends later than if all ran one after the other.
    most = sum(one.length + one.delay for one in processes) + sum(
        len(token.ticks) * (fifos.forward + fifos.backward)
        for one in processes
        for token in one.tokens
    )
    while True:
        before = [state.end for state in states]
        changed = _sweep(states, writers, readers, fifos)
        if not feedback or not changed:
            break
        if max(state.end for state in states) > most:
            pairs = zip(before, states, strict=True)
            late = [state.given.name for end, state in pairs if state.end != end]
            raise Deadlock(f"processes wait for each other: {', '.join(late)}")
    return Ends(
        tuple(state.begin for state in states),
        tuple(state.end for state in states),
        tuple(state.end - state.begin - state.given.length for state in states),
    )


def _sides(processes: Sequence[Clocked], writes: bool) -> dict[int, tuple[int, int]]:
    return {
        token.fifo: (number, at)
        for number, process in enumerate(processes)
        for at, token in enumerate(process.tokens)
        if token.writes == writes
    }


def _check(
    processes: Sequence[Clocked],
    writers: Mapping[int, tuple[int, int]],
    readers: Mapping[int, tuple[int, int]],
) -> None:
    for fifo, (process, at) in readers.items():
        read = len(processes[process].tokens[at].ticks)
        written = 0
        if fifo in writers:
            writer, place = writers[fifo]
            written = len(processes[writer].tokens[place].ticks)
        if read > written:
            raise Deadlock(
                f"{processes[process].name} reads {read} tokens of a FIFO that gets {written}"
            )


def _sweep(
    states: Sequence[_Process],
    writers: Mapping[int, tuple[int, int]],
    readers: Mapping[int, tuple[int, int]],
    fifos: Fifos,
) -> bool:
    changed = False
    for state in states:
        for at, token in enumerate(state.given.tokens):
            other = (readers if token.writes else writers).get(token.fifo)
            if other is None:
                continue
            times = states[other[0]].times[states[other[0]].parts[other[1]]]
            bound = state.bound[state.parts[at]]
            if token.writes:
                depth = fifos.depths[token.fifo]
                count = max(min(len(bound) - depth, len(times)), 0)
                bound[depth : depth + count] = times[:count] + fifos.backward
            else:
                bound[:] = times[: len(bound)] + fifos.forward
        begin = max((states[one].end for one in state.given.after), default=None)
        old = state.end, state.times.sum()
        state.run(0 if begin is None else begin + state.given.delay)
        changed = changed or (state.end, state.times.sum()) != old
    return changed
