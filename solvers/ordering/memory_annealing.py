"""Orders of little peak memory for graphs that are too large to be searched exactly, in C.

First list schedules with noise: of the ready ops the one that adds the fewest bytes, or one that is
about as good, or was made ready lately. Then simulated annealing (S. Kirkpatrick, C. Gelatt, M.
Vecchi, Science 1983) from the best of them: an op moves within the order, together with its
dependents (or its dependences). The objective is not the peak, which most moves do not change, but
the sum over all steps of the bytes above a goal below the peak.
"""

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_double, c_int32, c_int64, c_uint64, c_void_p
from random import Random

import numpy as np

from braid.solvers.deadline import Deadline
from braid.solvers.library import Arrays, CLists, library_of
from braid.solvers.ordering.memory import MemoryProblem

LISTS = 400
"""List schedules that are tried, at most."""
_KEPT = 6
"""The best orders, from which annealing starts in turn."""
_MOVES = 200
"""Moves of the first annealing for each op; half as many more each time."""
_LISTED, _PLACE = 2e-7, 2.5e-8
"""Seconds of a list schedule for each op, and of annealing for each place that a move looks at."""
_GOALS = (0.97, 0.99, 0.93)
"""The goals, as fractions of the best peak, among which the rounds alternate."""


class CMemory(ctypes.Structure):
    """`braid_memory`."""

    _fields_ = (
        ("ops", c_int32),
        ("tensors", c_int32),
        ("initial", c_int64),
        ("before", CLists),
        ("after", CLists),
        ("touches", CLists),
        ("users", CLists),
        ("reuses", CLists),
        ("spared", c_void_p),
        ("size", c_void_p),
        ("made", c_void_p),
        ("needs", c_void_p),
    )


class CMemoryAnnealing(ctypes.Structure):
    """`braid_memory_annealing`."""

    done: int
    peak: int
    _fields_ = (
        ("random", c_uint64),
        ("target", c_int64),
        ("goal", c_int64),
        ("hot", c_double),
        ("cold", c_double),
        ("moves", c_int64),
        ("most", c_int64),
        ("done", c_int64),
        ("seconds", c_double),
        ("best", c_void_p),
        ("peak", c_int64),
    )


_library = library_of(
    {
        "braid_list_by_memory": (
            c_int64,
            (POINTER(CMemory), c_double, c_double, POINTER(c_uint64), c_void_p),
        ),
        "braid_anneal_memory": (c_int32, (POINTER(CMemory), POINTER(CMemoryAnnealing))),
    }
)


class _Native:
    """A problem as the C code has it."""

    def __init__(self, problem: MemoryProblem) -> None:
        self._arrays = Arrays()
        lists, numbers = self._arrays.lists, self._arrays.numbers
        users: list[list[int]] = [[] for _ in problem.tensors]
        for op, tensors in enumerate(problem.freeable):
            for tensor in tensors:
                users[tensor].append(op)
        self.struct = CMemory(
            ops=len(problem),
            tensors=len(problem.tensors),
            initial=problem.initial,
            before=lists(problem.graph.predecessors),
            after=lists(problem.graph.successors),
            touches=lists(problem.freeable),
            users=lists(users),
            reuses=lists([[tensor for tensor, _ in own] for own in problem.reused]),
            spared=numbers([size for own in problem.reused for _, size in own], np.int64),
            size=numbers([tensor.size for tensor in problem.tensors], np.int64),
            made=numbers(problem.outputs, np.int64),
            needs=numbers(problem.needs, np.int64),
        )

    def list_order(self, depth: float, noise: float, random: Random) -> tuple[int, list[int]]:
        order = np.zeros(self.struct.ops, np.int32)
        state = c_uint64(random.getrandbits(63) | 1)
        peak = _library().braid_list_by_memory(self.struct, depth, noise, state, order.ctypes.data)
        return peak, order.tolist()

    def anneal(self, order: Sequence[int], annealing: CMemoryAnnealing) -> tuple[int, list[int]]:
        best = np.array(order, np.int32)
        annealing.best = best.ctypes.data
        _library().braid_anneal_memory(self.struct, annealing)
        return annealing.peak, best.tolist()


class MemoryAnnealer:
    """The best order found so far, and the search for better ones.

    Same seed, same orders, where deadlines go by work.
    """

    def __init__(self, problem: MemoryProblem, start: Sequence[int], seed: int) -> None:
        self.order, self.peak = list(start), problem.evaluate(start)
        self._native = _Native(problem)
        self._random = Random(seed)
        self._largest = max((tensor.size for tensor in problem.tensors), default=1) or 1
        self._starts: list[tuple[int, list[int]]] = [(self.peak, self.order)]
        self._rounds = 0

    def try_lists(self, target: int, deadline: Deadline, count: int = LISTS) -> None:
        """Make list schedules until one's peak is at most `target`."""
        random, largest = self._random, self._largest
        for number in range(count):
            if self.peak <= target or deadline.passed:
                break
            deadline.spend(_LISTED * len(self.order))
            noise = largest * random.choice((0.0, 0.02, 0.1, 0.3, 1.0)) if number > 1 else 0.0
            depth = largest * random.choice((0.0, 0.001, 0.01, 0.1)) * (number != 0)
            self._take(*self._native.list_order(depth, noise, random))

    def anneal(self, target: int, deadline: Deadline) -> None:
        """Anneal once, from one of the best orders, unless the peak is at most `target`."""
        if self.peak <= target or deadline.passed or not self.order:
            return
        begin = self._starts[self._rounds % len(self._starts)] if self._rounds % 2 else None
        _, order = begin or (self.peak, self.order)
        goal = max(target, int(_GOALS[self._rounds % len(_GOALS)] * self.peak))
        hot = self._largest * self._random.choice((0.1, 0.5, 2.0))
        annealing = CMemoryAnnealing(
            random=self._random.getrandbits(63) | 1,
            target=target,
            goal=goal,
            hot=hot,
            cold=hot / 300,
            moves=int(_MOVES * len(order) * 1.5 ** min(self._rounds, 20)),
            most=int(deadline.remaining / _PLACE),
            seconds=deadline.patience,
        )
        self._rounds += 1
        self._take(*self._native.anneal(order, annealing))
        deadline.spend(_PLACE * annealing.done)

    def _take(self, peak: int, order: list[int]) -> None:
        if peak < self.peak:
            self.order, self.peak = order, peak
        if len(self._starts) < _KEPT or peak < self._starts[-1][0]:
            self._starts = sorted([*self._starts, (peak, order)])[:_KEPT]
