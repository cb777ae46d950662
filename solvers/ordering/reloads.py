"""Compute the bytes that must be loaded between the last of some ops and one that waits for all of
them.

Values that an op reads, or what they are made from, exist once the last op of a set has run; a
value on the way from each of these ops to the reader is then still needed. Values that do not fit
with that last op's other operands are not on the chip, so they must be loaded before the reader
starts, whenever they were stored. This is the argument of J. Hong and H. Kung, "I/O complexity: the
red-blue pebble game", STOC 1981, for the one cut of an order after a set of ops.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from math import inf

import numpy as np
from numpy.typing import NDArray

from braid.solvers.ordering.job_graph import JobGraph
from braid.solvers.ordering.traffic import Traffic

MAX_SUMS = 4096
"""Sums of sizes that are listed to find the most that fits; with more, all memory counts as
used.
"""

Transfer = tuple[int, float]
"""Bytes, and the seconds that it takes to load them."""

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class _Need:
    """The needed operands of an op that exist after ops of one unit.

    `loaded` are operands that no op makes. For each job in `made` there are values; each of them,
    or a value that is at least as large, is needed once the job is done. All of these are among
    `values`.
    """

    loaded: Sequence[Transfer]
    made: Mapping[int, Sequence[Transfer]]
    values: frozenset[int]


@dataclass(frozen=True)
class Reloads:
    """The loads that must come before jobs of one problem, by `units` units together."""

    jobs: JobGraph
    traffic: Traffic
    units: int = 1

    def operands(self, job: int) -> tuple[int, ...]:
        """Return the values that the op of `job` reads, none if it is not an op with one waiting
        stage.
        """
        op = self._op_of.get(job)
        return self.traffic.reads.get(op, ()) if op is not None else ()

    def waits(self, job: int, found: Indices) -> Floats | None:
        """Return the seconds between the last of the first of `found`, ancestors on one unit, and
        `job`.

        One bound for the first alone, one for the first two, and so on; None if all are 0.
        """
        need = self._need(job, self.jobs.units[int(found[0])])
        amounts = np.zeros(len(self.jobs), np.int64)
        for other, own in need.made.items():
            amounts[other] = _bytes(own)
        volume = _bytes(need.loaded) + np.cumsum(amounts[found])
        if not need.made or volume[-1] <= self.traffic.capacity - self._held[found].max():
            return None
        free = np.maximum.accumulate(self._free_bytes(need.values)[found])
        waits = np.zeros(len(found))
        known: dict[tuple[int, int], float] = {}
        for place in np.flatnonzero(volume > free):
            case = int(volume[place]), int(free[place])
            if case not in known:
                makers = found[: place + 1][amounts[found[: place + 1]] > 0]
                made = [transfer for other in makers for transfer in need.made[int(other)]]
                known[case] = _missing([*need.loaded, *made], case[1])
            waits[place] = known[case]
        return waits if waits.any() else None

    def waits_after(self, job: int, distances: Floats) -> Floats | None:
        """Return the seconds between the end of each ancestor of `job` and its start; None if all
        are 0.

        Row by row, `distances` are -inf for ops that are no ancestors; so are these.
        """
        operands = [self.traffic.values[v] for v in self.operands(job)]
        transfers = [(value.size, value.load / self.units) for value in operands]
        free, ancestors = self.traffic.capacity - self._held, distances[job] > -inf
        if _bytes(transfers) <= free[ancestors].min(initial=self.traffic.capacity):
            return None
        # Operands and results of an ancestor are on the chip.
        lacks = np.ones((len(operands), len(self.jobs)), bool)
        for row, value in zip(lacks, operands, strict=True):
            if value.producer is not None:
                maker = self.jobs.ops.get(value.producer)
                row[:] = distances[:, maker] > -inf if maker is not None else False
            row[[self.jobs.ops[op] for op in value.consumers if op in self.jobs.ops]] = False
        volume = np.array([size for size, _ in transfers]) @ lacks
        found = np.flatnonzero(ancestors & (volume > free))
        waits = np.where(ancestors, 0.0, -inf)
        known: dict[tuple[int, bytes], float] = {}
        for other in found:
            case = int(free[other]), lacks[:, other].tobytes()
            if case not in known:
                lacked = compress(transfers, lacks[:, other].tolist())
                known[case] = _missing([*lacked], case[0])
            waits[other] = known[case]
        return waits if len(found) else None

    @cached_property
    def _op_of(self) -> dict[int, int]:
        return {job: op for op, job in self.jobs.ops.items()}

    @cached_property
    def _held(self) -> NDArray[np.int64]:
        """Bytes on the chip while each job runs, whether or not a result lies over an operand."""
        held = np.zeros(len(self.jobs), np.int64)
        for op, job in self.jobs.ops.items():
            made = () if op in self.traffic.over else self.traffic.makes.get(op, ())
            used = (*self.traffic.reads.get(op, ()), *made)
            held[job] = sum(self.traffic.values[v].size for v in used)
        return held

    def _free_bytes(self, values: frozenset[int]) -> NDArray[np.int64]:
        """Return the bytes for `values` at the end of each job, including the other values that it
        holds."""
        others = self._held.copy()
        for v in values:
            value = self.traffic.values[v]
            for op in (value.producer, *value.consumers):
                if op in self.jobs.ops:
                    others[self.jobs.ops[op]] -= value.size
        return self.traffic.capacity - np.maximum(others, 0)

    def _need(self, job: int, unit: int) -> _Need:
        """Follow each operand back to an op of `unit`, along values of no other operand."""
        values, loaded, made = set[int](), list[Transfer](), dict[int, list[Transfer]]()
        for v in self.operands(job):
            if v in values:
                continue
            values.add(v)
            value = self.traffic.values[v]
            least = value.size, value.load / self.units
            if value.producer is None:
                loaded.append(least)
                continue
            maker = value.producer
            while self._unit(maker) != unit:
                further = [
                    (value.size, w, value.load / self.units, value.producer)
                    for w in self.traffic.reads.get(maker, ())
                    if w not in values and (value := self.traffic.values[w]).producer is not None
                ]
                if not further:
                    break
                size, largest, seconds, maker = max(further)
                values.add(largest)
                least = min(least[0], size), min(least[1], seconds)
            else:
                made.setdefault(self.jobs.ops[maker], []).append(least)
        return _Need(loaded, made, frozenset(values))

    def _unit(self, op: int) -> int | None:
        return self.jobs.units[self.jobs.ops[op]] if op in self.jobs.ops else None


def _bytes(transfers: Sequence[Transfer]) -> int:
    return sum(size for size, _ in transfers)


def _missing(transfers: Sequence[Transfer], free: int) -> float:
    """Return the least seconds of loading the transfers that do not fit; each is loaded as
    a whole.
    """
    kept = {0: 0.0}
    for size, seconds in transfers:
        for used, saved in [*kept.items()]:
            if used + size <= free:
                kept[used + size] = max(kept.get(used + size, 0.0), saved + seconds)
        if len(kept) > MAX_SUMS:
            rate = min(seconds / size for size, seconds in transfers if size)
            return (_bytes(transfers) - free) * rate
    return sum(seconds for _, seconds in transfers) - max(kept.values())
