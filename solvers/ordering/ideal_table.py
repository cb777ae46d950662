"""Least peak of up to 63 ops: dynamic programming over ideals, a level of them at a time.

A level holds the ideals of one size as machine words in an array, with the least peak by which
each can be reached; numpy makes all moves of a level at once. Ahn et al., "Ordering chaos:
memory-aware scheduling of irregularly wired neural networks" (MLSys 2020), with moves that are
free (see `memory_exact`) made without alternatives.
"""

from dataclasses import dataclass
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from braid.solvers.ordering.memory import MemoryProblem
from braid.solvers.ordering.memory_exact import ExactOrder, IdealSearch

MAX_OPS = 63
MAX_LEVEL = 4_000_000
"""Ideals in a level: beyond it the moves out of a level take gigabytes."""
MAX_TOTAL = 60_000_000

Words = NDArray[np.uint64]
Bytes = NDArray[np.int64]


@dataclass(frozen=True)
class _Level:
    ideals: Words
    live: Bytes
    peaks: Bytes


class IdealTable:
    """The tables of one problem below a ceiling on the peak."""

    def __init__(self, problem: MemoryProblem, level: int, ceiling: int, deadline: float) -> None:
        self.problem = problem
        self.search = IdealSearch(problem)
        self.level = level
        self.ceiling = ceiling
        self.deadline = deadline
        self.steps: list[tuple[Words, NDArray[np.int8]]] = []

    def run(self) -> ExactOrder | None:
        """Return the least order below the ceiling, or the proof of none, None if cut short."""
        one = np.zeros(1, dtype=np.int64)
        table = _Level(np.zeros(1, dtype=np.uint64), one + self.problem.initial, one + self.level)
        total = 0
        for _ in range(len(self.problem)):
            following = self._advance(table)
            if following is None:
                return None
            table = following
            total += len(table.ideals)
            if not len(table.ideals):
                return ExactOrder(None, self.ceiling)
            if len(table.ideals) > MAX_LEVEL or total > MAX_TOTAL:
                return None
        return ExactOrder(self._trace(), int(table.peaks[0]))

    def _advance(self, table: _Level) -> _Level | None:
        """Return the next level, None when there is no time for it."""
        chosen = self._free_move(table)
        columns: list[tuple[_Level, int]] = []
        for op in range(len(self.problem)):
            if monotonic() > self.deadline:
                return None
            rows = np.flatnonzero(self._ready(table, op) & ((chosen < 0) | (chosen == op)))
            moved = self._move(table, op, rows)
            keep = moved.peaks < self.ceiling
            columns.append((_Level(moved.ideals[keep], moved.live[keep], moved.peaks[keep]), op))
        return self._merge(columns)

    def _merge(self, columns: list[tuple[_Level, int]]) -> _Level:
        ideals = np.concatenate([moved.ideals for moved, _ in columns])
        live = np.concatenate([moved.live for moved, _ in columns])
        peaks = np.concatenate([moved.peaks for moved, _ in columns])
        ops = np.concatenate([np.full(len(m.ideals), op, dtype=np.int8) for m, op in columns])
        order = np.lexsort((peaks, ideals))
        ideals = ideals[order]
        first = np.ones(len(ideals), dtype=bool)
        first[1:] = ideals[1:] != ideals[:-1]
        kept = order[first]
        self.steps.append((ideals[first], ops[kept]))
        return _Level(ideals[first], live[kept], peaks[kept])

    def _ready(self, table: _Level, op: int) -> NDArray[np.bool_]:
        before = np.uint64(self.search.before[op])
        own = np.uint64(1 << op)
        return (table.ideals & (before | own)) == before

    def _move(self, table: _Level, op: int, rows: NDArray[np.intp]) -> _Level:
        before = table.ideals[rows]
        ideals = before | np.uint64(1 << op)
        live = table.live[rows]
        peaks = np.maximum(table.peaks[rows], live + self._needs(before, op))
        live = live + self.problem.outputs[op]
        for users, size in self.search.frees[op]:
            mask = np.uint64(users)
            live -= np.where((ideals & mask) == mask, size, 0)
        return _Level(ideals, live, peaks)

    def _needs(self, before: Words, op: int) -> Bytes:
        spared = np.zeros(len(before), dtype=np.int64)
        for others, size in self.search.reuses[op]:
            mask = np.uint64(others)
            spared = np.maximum(spared, np.where((before & mask) == mask, size, 0))
        return self.problem.needs[op] - spared

    def _free_move(self, table: _Level) -> NDArray[np.int8]:
        """Return for each ideal an op that can run now at no loss, -1 where there is none."""
        chosen = np.full(len(table.ideals), -1, dtype=np.int8)
        for op in range(len(self.problem)):
            rows = np.flatnonzero(self._ready(table, op) & (chosen < 0))
            moved = self._move(table, op, rows)
            free = (moved.peaks == table.peaks[rows]) & (moved.live <= table.live[rows])
            chosen[rows[free]] = op
        return chosen

    def _trace(self) -> list[int]:
        """Return the order by which the last level was reached."""
        ideal = (1 << len(self.problem)) - 1
        order: list[int] = []
        for ideals, ops in reversed(self.steps):
            op = int(ops[np.searchsorted(ideals, np.uint64(ideal))])
            order.append(op)
            ideal ^= 1 << op
        return order[::-1]
