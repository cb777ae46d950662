"""Least peak by best-first search over ideals, the sets of ops closed under predecessors.

Dynamic programming over ideals is that of Ahn et al., "Ordering chaos: memory-aware scheduling of
irregularly wired neural networks" (MLSys 2020). Two things shrink it here. Ideals are visited by
their peak, so that none is that an optimal order could avoid and the level reached is a lower
bound at any time. And a move that fits under the level and ends with no more live bytes than it
began with is made at once: live bytes are submodular in the ideal, so making it later cannot help
(the cuts of Liu, "An application of generalized tree pebbling to sparse matrix factorization",
SIAM J. Alg. Disc. Meth. 1987, on graphs that are not trees).
"""

from dataclasses import dataclass
from heapq import heappop, heappush
from time import monotonic

from braid.solvers.ordering.memory import MemoryProblem


@dataclass(frozen=True)
class ExactOrder:
    """The least order (None when the search was cut short) and a bound that holds for all."""

    order: list[int] | None
    lower_bound: int


@dataclass(frozen=True)
class State:
    """An ideal, what is live after it, and how it was reached: `moves` after `parent`."""

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
        self.root = State(0, problem.initial, sources, (), None)

    def need(self, ideal: int, op: int) -> int:
        """Return the bytes that `op`, run after `ideal`, adds to what is live while it runs."""
        spared = 0
        for others, size in self.reuses[op]:
            if others & ideal == others:
                spared = max(spared, size)
        return self.problem.needs[op] - spared

    def step(self, ideal: int, live: int, op: int) -> tuple[int, int]:
        """Return the ideal and the live bytes after `op`."""
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

        Each op of the chain depends on the one before, so the ideals between its ends are those
        of the chain alone.
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
    problem: MemoryProblem, level: int, ceiling: int, deadline: float, max_states: int = 400_000
) -> ExactOrder:
    """Return an order whose peak is least, or at most `level` (a known lower bound elsewhere).

    Looks only for peaks below `ceiling` and gives up at `deadline` (of `time.monotonic`) or after
    `max_states`. The `lower_bound` is at least `level`.
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
        if len(states) > max_states or (len(seen) % 64 == 0 and monotonic() > deadline):
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
