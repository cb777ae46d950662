"""Derive the order that a chip's units and a stream's syncs keep, however long anything takes.

A unit executes its instructions in order, and a sync stops it. So for every instruction and each
unit there is a last instruction that ended before it begins: a vector clock (C. Fidge, "Timestamps
in message-passing systems that preserve the partial ordering", 1988; F. Mattern, "Virtual time and
global states of distributed systems", 1989).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from braid.targets.simulator.instructions import Buffer, Kind, Stream


@dataclass(frozen=True)
class HappensBefore:
    """The order that `stream` keeps. A sync waits for an instruction that is issued before it."""

    stream: Stream

    @cached_property
    def clocks(self) -> NDArray[np.int64]:
        """The last instruction of each unit that ends before each instruction; -1 for none."""
        instructions = self.stream.instructions
        units = max((i.unit for i in instructions), default=-1) + 1
        now = np.full((units, units), -1, np.int64)
        clocks = np.empty((len(instructions), units), np.int64)
        for place, instruction in enumerate(instructions):
            own = now[instruction.unit]
            if instruction.kind is Kind.SYNC and instruction.amount < place:
                awaited = instruction.amount
                np.maximum(own, clocks[awaited], out=own)
                unit = instructions[awaited].unit
                own[unit] = max(own[unit], awaited)
            clocks[place] = own
            own[instruction.unit] = place
        return clocks

    def is_before(self, first: int, second: int) -> bool:
        """Return whether instruction `first` has ended when `second` begins."""
        return bool(first <= self.clocks[second, self.stream.instructions[first].unit])

    def end_of(self, buffer: Buffer) -> NDArray[np.int64]:
        """Return the last instruction of each unit that uses `buffer`; -1 for none."""
        last = np.full(self.clocks.shape[1], -1, np.int64)
        for place in (buffer.first, *buffer.last):
            unit = self.stream.instructions[place].unit
            last[unit] = max(last[unit], place)
        return last
