"""Least peak over ideals, the sets of ops closed under predecessors.

Dynamic programming over ideals is that of Ahn et al., "Ordering chaos: memory-aware scheduling of
irregularly wired neural networks" (MLSys 2020). Two things shrink it here. Ideals are visited by
their peak, so that none is that an optimal order could avoid and the level reached is a lower
bound at any time. And a move that fits under the level and ends with no more live bytes than it
began with is made at once: live bytes are submodular in the ideal, so making it later cannot help
(the cuts of Liu, "An application of generalized tree pebbling to sparse matrix factorization",
SIAM J. Alg. Disc. Meth. 1987, on graphs that are not trees).

The table holds the ideals of one size, a level, as machine words in an array, with the least peak
by which each can be reached; numpy makes all moves of a level at once. Beams keep the best of one.
"""

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from braid.solvers.deadline import Deadline
from braid.solvers.ordering.memory import MemoryProblem


@dataclass(frozen=True)
class ExactOrder:
    """The least order (None when the search was cut short) and a bound that holds for all."""

    order: list[int] | None
    lower_bound: int


_STEP, _BEAM_STEP = 1.7e-6, 1e-6
"""Seconds of a step from one ideal to another, in exact search and in beams."""
_OP, _IDEAL, _MOVE = 5e-5, 1.2e-8, 1.2e-7
"""Seconds of an op of a level, and for each ideal that is looked at, and that is made."""


@dataclass(frozen=True)
class State:
    """An ideal, the values that are live after it, and how it was reached: `moves` after
    `parent`."""

    ideal: int
    live: int
    ready: tuple[int, ...]
    moves: tuple[int, ...]
    parent: "State | None"

    def order(self) -> list[int]:
        """Return the ops run, first to last."""
        chunks: list[tuple[int, ...]] = []
        state: State | None = self
        while state is not None:
            chunks.append(state.moves)
            state = state.parent
        return [op for moves in reversed(chunks) for op in moves]


class IdealSearch:
    """The ideals of one problem, and the moves between them."""

    def __init__(self, problem: MemoryProblem) -> None:
        self.problem = problem
        graph = problem.graph
        self.before = [sum(1 << op for op in ops) for ops in graph.predecessors]
        users = [sum(1 << op for op in set(tensor.consumers)) for tensor in problem.tensors]
        self.frees = [
            [(users[t] | 1 << op, problem.tensors[t].size) for t in problem.freeable[op]]
            for op in range(len(problem))
        ]
        # An op's need only shrinks as others run, so moves without loss stay so with reuse.
        self.reuses = [
            [(users[t] & ~(1 << op), size) for t, size in problem.reused[op]]
            for op in range(len(problem))
        ]
        sources = tuple(op for op, before in enumerate(graph.predecessors) if not before)
        self._steps = 0
        self.root = State(0, problem.initial, sources, (), None)

    def spend(self, deadline: Deadline, step: float = _STEP) -> None:
        """Record the seconds of the steps since the last time."""
        deadline.spend(step * self._steps)
        self._steps = 0

    def need(self, ideal: int, op: int) -> int:
        """Return the bytes that `op`, run after `ideal`, adds to what is live while it runs."""
        spared = 0
        for others, size in self.reuses[op]:
            if others & ideal == others:
                spared = max(spared, size)
        return self.problem.needs[op] - spared

    def step(self, ideal: int, live: int, op: int) -> tuple[int, int]:
        """Return the ideal and the live bytes after `op`."""
        self._steps += 1
        ideal |= 1 << op
        live += self.problem.outputs[op]
        for users, size in self.frees[op]:
            if users & ideal == users:
                live -= size
        return ideal, live

    def unlocked(self, ideal: int, op: int) -> list[int]:
        """Return the ops that `op`, the last of `ideal`, made ready."""
        return [
            after
            for after in self.problem.graph.successors[op]
            if self.before[after] & ideal == self.before[after]
        ]

    def extend(self, state: State, op: int, level: int) -> State:
        """Return the state after `op` and all the moves that are free at `level`."""
        ideal, live = self.step(state.ideal, state.live, op)
        ready = [other for other in state.ready if other != op]
        ready += self.unlocked(ideal, op)
        return self.settle(State(ideal, live, tuple(ready), (op,), state), level)

    def settle(self, state: State, level: int) -> State:
        """Return `state` with its free moves made."""
        ideal, live, ready, moves = state.ideal, state.live, list(state.ready), list(state.moves)
        waiting = True
        while waiting:
            waiting = False
            for first in ready:
                chain = self._free_chain(ideal, live, first, level)
                for op in chain:
                    ideal, live = self.step(ideal, live, op)
                    ready.remove(op)
                    ready += self.unlocked(ideal, op)
                moves += chain
                if chain:
                    waiting = True
                    break
        return State(ideal, live, tuple(ready), tuple(moves), state.parent)

    def _free_chain(self, ideal: int, live: int, first: int, level: int) -> list[int]:
        """Return a chain from `first` that stays at `level` and does not end above `live`.

        Each op of the chain depends on the previous one, so the ideals between its ends are only
        those of the chain.
        """
        chain: list[int] = []
        now, op = live, first
        while now + self.need(ideal, op) <= level:
            ideal, now = self.step(ideal, now, op)
            chain.append(op)
            if now <= live:
                return chain
            following = self.unlocked(ideal, op)
            if len(following) != 1:
                break
            op = following[0]
        return []


def least_peak(
    problem: MemoryProblem, level: int, ceiling: int, deadline: Deadline, max_states: int = 400_000
) -> ExactOrder:
    """Return an order whose peak is least, or at most `level` (a known lower bound elsewhere).

    Looks only for peaks below `ceiling` and gives up at `deadline` or after `max_states`. The
    `lower_bound` is at least `level`.
    """
    search = IdealSearch(problem)
    full = (1 << len(problem)) - 1
    root = search.settle(search.root, level)
    heap: list[tuple[int, int, int, int]] = [(level, 0, 0, 0)]
    states = [root]
    seen: set[int] = set()
    pushed = {root.ideal: level}
    while heap:
        peak, _, _, index = heappop(heap)
        state = states[index]
        if state.ideal in seen:
            continue
        if peak > level:
            level = peak
        state = search.settle(state, level)
        if state.ideal in seen:
            continue
        if state.ideal == full:
            return ExactOrder(state.order(), level)
        search.spend(deadline)
        if len(states) > max_states or deadline.passed:
            return ExactOrder(None, level)
        seen.add(state.ideal)
        states[index] = state
        for op in state.ready:
            reached = max(peak, state.live + search.need(state.ideal, op))
            if reached >= ceiling and reached > level:
                continue
            grown = search.extend(state, op, level)
            if pushed.get(grown.ideal, reached + 1) <= reached:
                continue
            pushed[grown.ideal] = reached
            states.append(grown)
            heappush(heap, (reached, -grown.ideal.bit_count(), grown.live, len(states) - 1))
    return ExactOrder(None, max(level, ceiling))


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

    def __init__(
        self, problem: MemoryProblem, level: int, ceiling: int, deadline: Deadline
    ) -> None:
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
            if self.deadline.passed:
                return None
            rows = np.flatnonzero(self._ready(table, op) & ((chosen < 0) | (chosen == op)))
            moved = self._move(table, op, rows)
            self.deadline.spend(_OP + _IDEAL * len(table.ideals) + _MOVE * len(rows))
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
        """Return for each ideal an op that can run now without loss, or -1."""
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


def beam_search(
    problem: MemoryProblem, width: int, level: int, deadline: Deadline
) -> list[int] | None:
    """Return the order found with `width` ideals at a time, None when `deadline` comes first.

    `level` is a known lower bound: moves that fit under it are free.
    """
    search = IdealSearch(problem)
    beam: list[tuple[int, State]] = [(level, search.settle(search.root, level))]
    full = (1 << len(problem)) - 1
    finished: list[tuple[int, State]] = []
    while beam:
        candidates: dict[int, tuple[int, int, int, int]] = {}
        for place, (peak, state) in enumerate(beam):
            search.spend(deadline, _BEAM_STEP)
            if deadline.passed:
                return None
            for op in state.ready:
                ideal, live = search.step(state.ideal, state.live, op)
                during = state.live + search.need(state.ideal, op)
                entry = (max(peak, during), live, place, op)
                if ideal not in candidates or entry < candidates[ideal]:
                    candidates[ideal] = entry
        following: dict[int, tuple[int, State]] = {}
        for peak, _, place, op in sorted(candidates.values())[:width]:
            state = search.extend(beam[place][1], op, peak)
            if state.ideal not in following:
                following[state.ideal] = (peak, state)
        finished += [entry for ideal, entry in following.items() if ideal == full]
        beam = [entry for ideal, entry in following.items() if ideal != full]
        if finished:
            lowest = min(peak for peak, _ in finished)
            beam = [entry for entry in beam if entry[0] < lowest]
    if not finished:
        return beam_end(search, level)
    return min(finished, key=lambda entry: entry[0])[1].order()


def beam_end(search: IdealSearch, level: int) -> list[int]:
    """Return the order when all moves are free."""
    return search.settle(search.root, level).order()
