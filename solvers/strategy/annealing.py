"""Local search over choices, in C: one node changes its strategy at a time.

`repair` looks for a feasible choice near one that is not, `run` anneals a feasible one. Which
changes are taken is decided by costs in which memory has the prices of the dual bound: there
a good choice looks good at every node by itself. S. Kirkpatrick, C. Gelatt, M. Vecchi,
"Optimization by simulated annealing" (Science 1983).
"""

import ctypes
from ctypes import POINTER, c_double, c_int32, c_int64, c_uint64, c_void_p
from itertools import pairwise

import numpy as np

from braid.solvers.deadline import Deadline
from braid.solvers.library import Arrays, CLists, library_of
from braid.solvers.strategy.native import CPairwise, NativeSweep
from braid.solvers.strategy.problem import Integers, Vector
from braid.solvers.strategy.residual import Residual


class CAssignment(ctypes.Structure):
    """`braid_assignment`."""

    _fields_ = (
        ("pairs", CPairwise),
        ("node", c_void_p),
        ("guided", c_void_p),
        ("edge", c_void_p),
        ("rows", c_int32),
        ("loads", CLists),
        ("load_begin", c_void_p),
        ("load_end", c_void_p),
        ("usage_begin", c_void_p),
        ("usage", c_void_p),
    )


_NUMBERS = (c_double, c_double, c_int64, c_double, c_uint64)
_library = library_of(
    {
        "braid_anneal_assignment": (
            c_double,
            (POINTER(CAssignment), c_void_p, c_void_p, *_NUMBERS),
        ),
        "braid_repair_assignment": (
            c_int64,
            (POINTER(CAssignment), c_void_p, c_void_p, *_NUMBERS),
        ),
    }
)
_STEPS = 50
"""Steps of a repair, per node."""
_LEAST_STEPS = 10_000


class Annealing:
    """A residual problem as the C code has it."""

    def __init__(self, residual: Residual) -> None:
        """Copy the costs; `residual` is not changed."""
        self._residual = residual
        self.nodes = sorted(residual.alive)
        sizes = [residual.costs[node].size for node in self.nodes]
        starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        pairs = residual.edges_among(self.nodes)
        spans = np.cumsum([0, *(costs.size for _, _, costs in pairs)], dtype=np.int64)
        self._sweep = NativeSweep(starts, spans, [(u, v) for u, v, _ in pairs])
        self._costs = np.concatenate([residual.costs[n] for n in self.nodes] or [np.zeros(0)])
        self._edges = np.concatenate([costs.ravel() for _, _, costs in pairs] or [np.zeros(0)])
        self._starts = starts
        loads = [own for node in self.nodes for own in residual.loads[node]]
        counts = np.cumsum([0, *(len(residual.loads[node]) for node in self.nodes)]).tolist()
        self._arrays = Arrays()
        numbers = self._arrays.numbers
        begins = np.cumsum([0, *(own.usage.size for own in loads)], dtype=np.int64)
        self._usage = np.concatenate([own.usage for own in loads] or [np.zeros(0)])
        self._struct = CAssignment(
            pairs=self._sweep.struct,
            node=self._costs.ctypes.data,
            edge=self._edges.ctypes.data,
            rows=residual.capacity.size,
            loads=self._arrays.lists([list(range(a, b)) for a, b in pairwise(counts)]),
            load_begin=numbers([own.start for own in loads], np.int32),
            load_end=numbers([own.end for own in loads], np.int32),
            usage_begin=numbers(begins.tolist(), np.int64),
            usage=self._usage.ctypes.data,
        )
        spread = self._edges[np.isfinite(self._edges)]
        self._scale = float(np.mean(np.abs(spread - np.median(spread)))) if spread.size else 1.0

    def run(
        self, choice: Integers, prices: Vector, deadline: Deadline, rng: np.random.Generator
    ) -> Integers:
        """Return a choice per node of the residual that costs no more than a feasible one.

        Args:
            choice: a feasible choice, per node of the residual.
            prices: the price of a unit of every row.
            deadline: when to stop; a number of changes per node is another limit.
            rng: source of all random decisions.
        """
        guided = self._guided(prices)
        self._struct.guided = guided.ctypes.data
        best = choice[self.nodes].astype(np.int32)
        slack = self._residual.slack_of(choice)
        hot = self._scale * float(rng.choice([0.03, 0.1, 0.3, 1.0])) or 1.0
        moves = len(self.nodes) * int(rng.choice([500, 2000]))
        seconds = max(deadline.remaining, 1e-6)
        seed = int(rng.integers(1, 1 << 62))
        _library().braid_anneal_assignment(
            self._struct, best.ctypes.data, slack.ctypes.data, hot, hot / 200, moves, seconds, seed
        )
        found = choice.copy()
        found[self.nodes] = best
        return found

    def repair(
        self, choice: Integers, prices: Vector, deadline: Deadline, rng: np.random.Generator
    ) -> Integers | None:
        """Return a feasible choice near `choice`, which may be infeasible; None if none is found.

        Arguments are those of `run`.
        """
        if not self.nodes:
            return None
        guided = self._guided(prices)
        self._struct.guided = guided.ctypes.data
        found = choice.copy()
        for node, start in zip(self.nodes, self._starts.tolist(), strict=False):
            if not np.isfinite(guided[start + found[node]]):
                costs = guided[start : start + self._residual.costs[node].size]
                found[node] = costs.argmin()
                if np.isinf(costs.min()):
                    return None
        own = found[self.nodes].astype(np.int32)
        slack = self._residual.slack_of(found)
        usage = float(np.mean(self._usage)) if self._usage.size else 0.0
        weight = self._scale or 1.0
        left = _library().braid_repair_assignment(
            self._struct,
            own.ctypes.data,
            slack.ctypes.data,
            weight / (usage or 1.0),
            4 * weight,
            max(_LEAST_STEPS, _STEPS * len(self.nodes)),
            max(deadline.remaining, 1e-6),
            int(rng.integers(1, 1 << 62)),
        )
        found[self.nodes] = own
        return None if left else found

    def _guided(self, prices: Vector) -> Vector:
        """Return the costs of nodes in a row, with what the memory that they use is worth."""
        guided = self._costs.copy()
        total = np.concatenate([[0.0], np.cumsum(prices)])
        for node, start in zip(self.nodes, self._starts.tolist(), strict=False):
            for own in self._residual.loads[node]:
                price = total[own.end] - total[own.start]
                guided[start : start + own.usage.size] += price * own.usage
        return guided
