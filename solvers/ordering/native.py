"""The C side of `solvers/native/src/chip_order.h` in ctypes, and a problem as it has it.

Equal durations then give equal times in whatever order they are added up.
"""

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_double, c_int32, c_int64, c_uint64, c_void_p
from math import frexp, ldexp

import numpy as np

from braid.solvers.library import Arrays, CLists, library_of
from braid.solvers.library import find_library as find_library
from braid.solvers.ordering.graph import Graph
from braid.solvers.ordering.slots import Slots
from braid.solvers.ordering.traffic import NO_TRAFFIC, Traffic


class CChip(ctypes.Structure):
    """`braid_chip`."""

    _fields_ = (
        ("ops", c_int32),
        ("values", c_int32),
        ("units", c_int32),
        ("load_unit", c_int32),
        ("store_unit", c_int32),
        ("capacity", c_int64),
        ("slots", c_void_p),
        ("before", CLists),
        ("after", CLists),
        ("stages", CLists),
        ("times", c_void_p),
        ("waits", c_void_p),
        ("reads", CLists),
        ("makes", CLists),
        ("over", CLists),
        ("users", CLists),
        ("sources", CLists),
        ("size", c_void_p),
        ("load", c_void_p),
        ("store", c_void_p),
        ("output", c_void_p),
        ("present", c_void_p),
        ("kept", c_void_p),
        ("moves", c_void_p),
    )


class CAnnealing(ctypes.Structure):
    """`braid_annealing`."""

    done: int
    value: int
    _fields_ = (
        ("random", c_uint64),
        ("hot", c_double),
        ("cold", c_double),
        ("moves", c_int64),
        ("done", c_int64),
        ("target", c_int64),
        ("value", c_int64),
        ("best", c_void_p),
    )


load_library = library_of(
    {
        "braid_timeline_open": (c_void_p, (POINTER(CChip), c_int32)),
        "braid_timeline_close": (None, (c_void_p,)),
        "braid_timeline_reset": (c_int64, (c_void_p, c_void_p)),
        "braid_anneal": (c_int32, (c_void_p, POINTER(CAnnealing), c_int64)),
    }
)


PlainStages = Sequence[Sequence[tuple[int, float, bool]]]
"""The stages of each op: the kind of unit, the seconds, and whether predecessors come first."""

PRECISION = 50
"""Bits of a time that no schedule reaches."""


class NativeChip:
    """`struct` and the arrays that it points to; its times are in ticks."""

    def __init__(
        self, graph: Graph, stages: PlainStages, traffic: Traffic | None, slots: Slots, units: int
    ) -> None:
        """Describe `graph`, whose ops have these `stages` on this many kinds of `units`."""
        self._arrays = Arrays()
        self._longest = _longest(stages, traffic)
        self._shift = PRECISION - frexp(self._longest)[1]
        self.struct = self._struct_of(graph, stages, traffic or NO_TRAFFIC, slots, units)
        self.rounded = sum(map(len, stages)) + 2 * self.struct.values
        """The number of durations that were rounded to ticks."""

    def ticks(self, seconds: float) -> int:
        """Return a time in ticks, a later one than any schedule ends at as that."""
        return round(ldexp(min(seconds, self._longest), self._shift))

    def seconds(self, ticks: int) -> float:
        """Return a time in seconds."""
        return ldexp(ticks, -self._shift)

    def _times(self, seconds: Sequence[float]) -> int:
        return self._arrays.numbers([self.ticks(each) for each in seconds], np.int64)

    def _struct_of(
        self, graph: Graph, stages: PlainStages, traffic: Traffic, slots: Slots, units: int
    ) -> CChip:
        ops = range(len(graph))
        values, lists, numbers = traffic.values, self._arrays.lists, self._arrays.numbers
        every = [stage for own in stages for stage in own]
        moving = {*traffic.reads, *traffic.makes}
        return CChip(
            ops=len(graph),
            values=len(values),
            units=units,
            load_unit=traffic.load_unit,
            store_unit=traffic.store_unit,
            capacity=traffic.capacity,
            slots=numbers(slots.begin, np.int32),
            before=lists(graph.predecessors),
            after=lists(graph.successors),
            stages=lists([[unit for unit, _, _ in own] for own in stages]),
            times=self._times([seconds for _, seconds, _ in every]),
            waits=numbers([waits for _, _, waits in every], np.uint8),
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
            moves=numbers([bool(stages[op]) or op in moving for op in ops], np.uint8),
        )


def _longest(stages: PlainStages, traffic: Traffic | None) -> float:
    """Return an upper bound of seconds: everything one after the other, each read with a reload."""
    computing = sum(seconds for own in stages for _, seconds, _ in own)
    values = traffic.values if traffic else ()
    moving = sum(v.load * (1 + len(v.consumers)) + v.store for v in values)
    return computing + moving
