"""Lifetimes for buffers if it is only known which ones are live together.

Concurrent kernels have no total order, so that being live together is no longer the overlap of
intervals. Each moment is a set of buffers that are pairwise live together, until every such pair is
in a set: a greedy edge clique cover, the largest buffers first (E. Kellerman, "Determination of
keyword conflict", 1973). Items that are live at one moment cannot overlap, and so their sum bounds
every arena.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from braid.solvers.packing.problem import Interval


def moments(together: NDArray[np.bool_], sizes: Sequence[int]) -> list[tuple[Interval, ...]]:
    """Return the intervals in which each buffer is live; two meet where `together` says so.

    `together` is symmetric. Moments are numbered from 0; a buffer that is never live together with
    another one has a moment of its own.
    """
    order = sorted(range(len(sizes)), key=lambda buffer: -sizes[buffer])
    masks = _masks(together[np.ix_(order, order)])
    live: list[list[int]] = [[] for _ in sizes]
    for moment, clique in enumerate(_cliques(masks)):
        for place in clique:
            live[order[place]].append(moment)
    return [_merged(own) for own in live]


def _masks(together: NDArray[np.bool_]) -> list[int]:
    """Return the rows of a matrix as numbers: bit j of row i."""
    rows = np.packbits(together, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") & ~(1 << i) for i, row in enumerate(rows)]


def _cliques(masks: Sequence[int]) -> list[list[int]]:
    """Return the maximal cliques that together have every edge, and every vertex."""
    uncovered = list(masks)
    cliques: list[list[int]] = []
    for vertex, neighbours in enumerate(masks):
        while uncovered[vertex] or not neighbours:
            clique = [vertex]
            first = uncovered[vertex] or neighbours
            candidates = neighbours
            chosen = first & -first
            while candidates:
                other = chosen.bit_length() - 1
                clique.append(other)
                candidates &= masks[other]
                wanted = candidates & uncovered[vertex] or candidates
                chosen = wanted & -wanted
            members = sum(1 << member for member in clique)
            for member in clique:
                uncovered[member] &= ~members
            cliques.append(clique)
            if not neighbours:
                break
    return cliques


def _merged(own: Sequence[int]) -> tuple[Interval, ...]:
    """Merge ascending moments into intervals."""
    intervals: list[Interval] = []
    for moment in own:
        if intervals and intervals[-1][1] == moment:
            intervals[-1] = (intervals[-1][0], moment + 1)
        else:
            intervals.append((moment, moment + 1))
    return tuple(intervals)
