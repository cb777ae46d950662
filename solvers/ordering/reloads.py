"""What must be loaded between the last of some ops and one that waits for all of them.

Values that an op reads, or what they are made from, exist once the last op of a set has run; a
value on the way from each of these ops to the reader is then still needed. What does not fit
beside that last op's other operands is not on the chip, so that it is loaded before the reader
starts, whatever was stored when. This is the argument of J. Hong and H. Kung, "I/O complexity:
the red-blue pebble game", STOC 1981, for the one cut of an order behind a set of ops.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from braid.solvers.ordering.job_graph import JobGraph
from braid.solvers.ordering.traffic import Traffic

MAX_SUMS = 4096
"""Sums of sizes that are listed to find the most that fits; with more, all room counts as used."""

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class _Need:
    """What an op needs of what exists behind ops of one unit.

    `loaded` are the sizes of operands that no op makes. For each job in `made` there are the
    sizes of values of which each, or a larger one, is needed once the job is done. All of these
    are among `values`.
    """

    loaded: Sequence[int]
    made: Mapping[int, Sequence[int]]
    values: frozenset[int]


@dataclass(frozen=True)
class Reloads:
    """What must be loaded before jobs of one problem."""

    jobs: JobGraph
    traffic: Traffic

    def operands(self, job: int) -> tuple[int, ...]:
        """The values that the op of `job` reads, none if it is no op with one waiting stage."""
        op = self._op_of.get(job)
        return self.traffic.reads.get(op, ()) if op is not None else ()

    def waits(self, job: int, found: Indices) -> Floats | None:
        """The seconds between the last of the first of `found`, ancestors on one unit, and `job`.

        One bound for the first alone, one for the first two, and so on; None if all are 0.
        """
        need = self._need(job, self.jobs.units[int(found[0])])
        sizes = [*need.loaded, *(size for own in need.made.values() for size in own)]
        if not need.made or sum(sizes) <= self.traffic.capacity - self._held[found].max():
            return None
        room = np.maximum.accumulate(self._room(need.values)[found])
        amounts = np.zeros(len(self.jobs), np.int64)
        for other, own in need.made.items():
            amounts[other] = sum(own)
        volume = np.cumsum(amounts[found]) + sum(need.loaded)
        missing = np.zeros(len(found))
        excess: dict[tuple[int, int], int] = {}
        for place in np.flatnonzero(volume > room):
            case = int(volume[place]), int(room[place])
            if case not in excess:
                makers = found[: place + 1][amounts[found[: place + 1]] > 0]
                sizes = [size for other in makers for size in need.made[int(other)]]
                excess[case] = _excess([*need.loaded, *sizes], case[1])
            missing[place] = excess[case]
        return missing * self._rate(need.values) if missing.any() else None

    @cached_property
    def _op_of(self) -> dict[int, int]:
        return {job: op for op, job in self.jobs.ops.items()}

    def _rate(self, values: Iterable[int]) -> float:
        """The least seconds that loading a byte of `values` takes."""
        own = (self.traffic.values[v] for v in values)
        return min((value.load / value.size for value in own if value.size), default=0.0)

    @cached_property
    def _held(self) -> NDArray[np.int64]:
        """Bytes on the chip while each job runs, whether or not a result lies over an operand."""
        held = np.zeros(len(self.jobs), np.int64)
        for op, job in self.jobs.ops.items():
            made = () if op in self.traffic.over else self.traffic.makes.get(op, ())
            used = (*self.traffic.reads.get(op, ()), *made)
            held[job] = sum(self.traffic.values[v].size for v in used)
        return held

    def _room(self, values: frozenset[int]) -> NDArray[np.int64]:
        """Bytes for `values` at the end of each job: what it holds of others has room as well."""
        others = self._held.copy()
        for v in values:
            value = self.traffic.values[v]
            for op in (value.producer, *value.consumers):
                if op in self.jobs.ops:
                    others[self.jobs.ops[op]] -= value.size
        return self.traffic.capacity - np.maximum(others, 0)

    def _need(self, job: int, unit: int) -> _Need:
        """Follows each operand back to an op of `unit`, along values of no other operand."""
        values, loaded, made = set[int](), list[int](), dict[int, list[int]]()
        for v in self.operands(job):
            if v in values:
                continue
            values.add(v)
            value = self.traffic.values[v]
            if value.producer is None:
                loaded.append(value.size)
                continue
            least, maker = value.size, value.producer
            while self._unit(maker) != unit:
                further = [
                    (value.size, w, value.producer)
                    for w in self.traffic.reads.get(maker, ())
                    if w not in values and (value := self.traffic.values[w]).producer is not None
                ]
                if not further:
                    break
                size, largest, maker = max(further)
                values.add(largest)
                least = min(least, size)
            else:
                made.setdefault(self.jobs.ops[maker], []).append(least)
        return _Need(loaded, made, frozenset(values))

    def _unit(self, op: int) -> int | None:
        return self.jobs.units[self.jobs.ops[op]] if op in self.jobs.ops else None


def _excess(sizes: Sequence[int], room: int) -> int:
    """The least bytes of `sizes`, each as a whole, that do not fit."""
    total = sum(sizes)
    if total <= room:
        return 0
    sums = {0}
    for size in sizes:
        sums |= {fitting + size for fitting in sums if fitting + size <= room}
        if len(sums) > MAX_SUMS:
            return total - room
    return total - max(sums)
