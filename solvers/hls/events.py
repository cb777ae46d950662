"""Compute which iterations of a nest read and write which FIFO."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
import numpy.typing as npt

from braid.solvers.hls.nests import STREAMS, Condition, Loop, Nest, Op

Integers = npt.NDArray[np.int64]
Fifo = tuple[str, tuple[int, ...]]
"""Name of a stream, and the element."""


@dataclass(frozen=True)
class Access:
    """Op number `op` of the body reads or writes `fifo` in these iterations, ascending."""

    fifo: Fifo
    op: int
    iterations: Integers


def values_of(loops: Sequence[Loop]) -> Iterator[dict[str, int]]:
    """Return all values of these loops' variables, the last fastest."""
    for values in product(*(range(loop.trips) for loop in loops)):
        yield {loop.name: value for loop, value in zip(loops, values, strict=True)}


def remaining(
    guards: Sequence[Condition], values: dict[str, int], trips: dict[str, int]
) -> frozenset[Condition] | None:
    """Return the conditions that still depend on other variables; None where one never holds."""
    kept: list[Condition] = []
    for guard in guards:
        value = guard.value.at(values)
        low, high = value.limits(trips)
        if high < 0 or (low > 0 and not guard.at_least):
            return None
        if not (low >= 0 if guard.at_least else low == high):
            kept.append(Condition(value, guard.at_least))
    return frozenset(kept)


def iterations_where(nest: Nest, conditions: frozenset[Condition]) -> Integers:
    """Return the numbers of the iterations in which all hold."""
    shape = tuple(loop.trips for loop in nest.loops)
    axes = {loop.name: axis for axis, loop in enumerate(nest.loops)}
    holds = np.ones((1,) * len(shape), np.bool_)
    for condition in conditions:
        total = np.full((1,) * len(shape), condition.value.constant, np.int64)
        for name, factor in condition.value.terms:
            own = [1] * len(shape)
            own[axes[name]] = shape[axes[name]]
            total = total + factor * np.arange(shape[axes[name]], dtype=np.int64).reshape(own)
        holds = holds & (total >= 0 if condition.at_least else total == 0)
    return np.flatnonzero(np.broadcast_to(holds, shape)).astype(np.int64)


@lru_cache(512)
def accesses_of(nest: Nest) -> tuple[Access, ...]:
    """Return the accesses of all FIFOs; unrolled ops with the same conditions share an array."""
    known: dict[frozenset[Condition], Integers] = {}
    found: list[Access] = []
    for number, op in enumerate(nest.body):
        if op.kind in STREAMS:
            for fifo, conditions in _instances(nest, op):
                if conditions not in known:
                    known[conditions] = iterations_where(nest, conditions)
                if known[conditions].size:
                    found.append(Access(fifo, number, known[conditions]))
    return tuple(found)


def _instances(nest: Nest, op: Op) -> Iterator[tuple[Fifo, frozenset[Condition]]]:
    trips = {loop.name: loop.trips for loop in nest.loops}
    for values in values_of(op.unrolled):
        conditions = remaining(op.guards, values, trips)
        if conditions is not None:
            element = [one.at(values) for one in op.index]
            assert not any(one.terms for one in element), "FIFOs are chosen by unrolled loops"
            yield (op.name, tuple(one.constant for one in element)), conditions
