"""The C side of `solvers/native/src/sweep.h` in ctypes."""

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_double, c_int32, c_void_p

import numpy as np

from braid.solvers.deadline import Deadline
from braid.solvers.library import Arrays, CLists, library_of
from braid.solvers.strategy.problem import Integers, Vector


class CPairwise(ctypes.Structure):
    """`braid_pairwise`."""

    _fields_ = (
        ("nodes", c_int32),
        ("node_begin", c_void_p),
        ("edge_begin", c_void_p),
        ("earlier", CLists),
        ("later", CLists),
        ("source", c_void_p),
        ("target", c_void_p),
    )


_library = library_of(
    {
        "braid_sweep": (
            None,
            (POINTER(CPairwise), c_void_p, c_void_p, c_void_p, c_int32, c_double),
        ),
    }
)


class NativeSweep:
    """Sweeps over nodes, whose costs begin at `starts`, and edges between two of them."""

    def __init__(
        self, starts: Integers, edge_starts: Integers, pairs: Sequence[tuple[int, int]]
    ) -> None:
        """Take where the costs of nodes begin, and of edges, and the two nodes of each edge."""
        self._arrays = Arrays()
        nodes = len(starts) - 1
        earlier: list[list[int]] = [[] for _ in range(nodes)]
        later: list[list[int]] = [[] for _ in range(nodes)]
        for edge, (source, target) in enumerate(pairs):
            later[source].append(edge)
            earlier[target].append(edge)
        numbers, lists = self._arrays.numbers, self._arrays.lists
        self.struct = CPairwise(
            nodes=nodes,
            node_begin=numbers(starts.tolist(), np.int64),
            edge_begin=numbers(edge_starts.tolist(), np.int64),
            earlier=lists(earlier),
            later=lists(later),
            source=numbers([source for source, _ in pairs], np.int32),
            target=numbers([target for _, target in pairs], np.int32),
        )

    def sweep(
        self, node: Vector, edge: Vector, belief: Vector, *, forward: bool, deadline: Deadline
    ) -> None:
        """Sweep once, over contiguous arrays that are changed in place."""
        addresses = (array.ctypes.data for array in (node, edge, belief))
        _library().braid_sweep(self.struct, *addresses, forward, deadline.remaining)
