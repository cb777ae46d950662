"""A problem as the C code has it: arrays, and times as integers.

What takes as long is then as late in whatever order it is added up.
"""

from collections.abc import Sequence
from math import frexp, ldexp
from typing import TYPE_CHECKING

import numpy as np

from braid.solvers.library import Arrays
from braid.solvers.ordering.native import CChip
from braid.solvers.ordering.traffic import NO_TRAFFIC

if TYPE_CHECKING:
    from braid.solvers.ordering.latency import LatencyProblem

PRECISION = 50
"""Bits of a time that no schedule reaches."""


class NativeChip:
    """`struct` and the arrays that it points to; its times are in ticks."""

    def __init__(self, problem: "LatencyProblem") -> None:
        self._arrays = Arrays()
        self._longest = _longest(problem)
        self._shift = PRECISION - frexp(self._longest)[1]
        self.struct = self._struct_of(problem)
        self.rounded = sum(map(len, problem.plain)) + 2 * self.struct.values
        """How many times were rounded to ticks."""

    def ticks(self, seconds: float) -> int:
        """Return a time in ticks, a later one than any schedule ends at as that."""
        return round(ldexp(min(seconds, self._longest), self._shift))

    def seconds(self, ticks: int) -> float:
        """Return a time in seconds."""
        return ldexp(ticks, -self._shift)

    def _times(self, seconds: Sequence[float]) -> int:
        return self._arrays.numbers([self.ticks(each) for each in seconds], np.int64)

    def _struct_of(self, problem: "LatencyProblem") -> CChip:
        traffic, ops = problem.traffic or NO_TRAFFIC, range(len(problem))
        values, lists, numbers = traffic.values, self._arrays.lists, self._arrays.numbers
        stages = [stage for own in problem.plain for stage in own]
        moving = {*traffic.reads, *traffic.makes}
        return CChip(
            ops=len(problem),
            values=len(values),
            units=problem.unit_count,
            load_unit=traffic.load_unit,
            store_unit=traffic.store_unit,
            capacity=traffic.capacity,
            slots=numbers(problem.slots.begin, np.int32),
            before=lists(problem.graph.predecessors),
            after=lists(problem.graph.successors),
            stages=lists([[unit for unit, _, _ in own] for own in problem.plain]),
            times=self._times([seconds for _, seconds, _ in stages]),
            waits=numbers([waits for _, _, waits in stages], np.uint8),
            reads=lists([traffic.reads.get(op, ()) for op in ops]),
            makes=lists([traffic.makes.get(op, ()) for op in ops]),
            over=lists([traffic.over.get(op, ()) for op in ops]),
            users=lists([value.consumers for value in values]),
            sources=lists([value.sources for value in values]),
            size=numbers([value.size for value in values], np.int64),
            load=self._times([value.load for value in values]),
            store=self._times([value.store for value in values]),
            output=numbers([value.output for value in values], np.uint8),
            present=numbers([value.present for value in values], np.uint8),
            kept=numbers([value.kept for value in values], np.uint8),
            # Addressing takes no time and moves along with what needs it.
            moves=numbers([bool(problem.plain[op]) or op in moving for op in ops], np.uint8),
        )


def _longest(problem: "LatencyProblem") -> float:
    """Seconds that no order takes: everything one after the other, each read with a reload."""
    computing = sum(seconds for own in problem.plain for _, seconds, _ in own)
    values = problem.traffic.values if problem.traffic else ()
    moving = sum(v.load * (1 + len(v.consumers)) + v.store for v in values)
    return computing + moving
