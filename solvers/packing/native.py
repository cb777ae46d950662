"""The C side of `solvers/native/src/packing.h` in ctypes."""

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_double, c_int32, c_int64, c_uint64, c_void_p

import numpy as np
from numpy.typing import NDArray

from braid.solvers.library import Arrays, CLists, library_of
from braid.solvers.packing.bounds import maximal_live_sets
from braid.solvers.packing.placement import Placer

NONE, FOUND, CUT = range(3)
"""The ways in which a search ends: a proof that there is no packing, a packing, or neither."""


class CPacking(ctypes.Structure):
    """`braid_packing`."""

    _fields_ = (
        ("items", c_int32),
        ("sections", c_int32),
        ("flat", c_int32),
        ("capacity", c_int64),
        ("others", CLists),
        ("over", c_void_p),
        ("under", c_void_p),
        ("sections_of", CLists),
        ("low", c_void_p),
        ("high", c_void_p),
        ("extent", c_void_p),
        ("alignment", c_void_p),
        ("fixed", c_void_p),
    )


_library = library_of(
    {
        "braid_pack": (c_int32, (POINTER(CPacking), c_void_p, c_int64, c_double, c_void_p)),
        "braid_pack_by_beam": (
            c_int32,
            (POINTER(CPacking), c_int32, c_int32, c_uint64, c_double, c_void_p),
        ),
        "braid_pack_by_boundaries": (
            c_int32,
            (POINTER(CPacking), c_int32, c_int32, c_double, c_uint64, c_double, c_void_p),
        ),
    }
)


class NativePacking:
    """The placement of `members`, which share stretches of time, below `capacity` bytes.

    `flat` is whether each is a single buffer at its base: a search that is not cut then proves.
    """

    def __init__(self, placer: Placer, members: Sequence[int], capacity: int) -> None:
        self.members = members
        self._arrays = Arrays()
        local = {item: number for number, item in enumerate(members)}
        others = [
            [(local[other], -low, high) for other, low, high in placer.conflicts[item]]
            for item in members
        ]
        stays: list[list[tuple[int, int, int]]] = [[] for _ in members]
        sections = maximal_live_sets(placer.items, members)
        for number, live in enumerate(sections):
            for item, segments in live:
                stays[local[item]].append((number, segments[0][0], segments[-1][1]))
        self.flat = all(
            len(parts) == 1 and not parts[0].start
            for parts in (placer.items[item].parts for item in members)
        )
        self._has_fixed = any(placer.items[item].fixed is not None for item in members)
        lists, numbers = self._arrays.lists, self._arrays.numbers
        items = [placer.items[item] for item in members]

        def column(rows: list[list[tuple[int, int, int]]], place: int) -> int:
            return numbers([entry[place] for own in rows for entry in own], np.int64)

        self._struct = CPacking(
            items=len(members),
            sections=len(sections),
            flat=self.flat,
            capacity=capacity,
            others=lists([[other for other, _, _ in own] for own in others]),
            over=column(others, 1),
            under=column(others, 2),
            sections_of=lists([[section for section, _, _ in own] for own in stays]),
            low=column(stays, 1),
            high=column(stays, 2),
            extent=numbers([item.extent for item in items], np.int64),
            alignment=numbers([item.alignment for item in items], np.int64),
            fixed=numbers([-1 if i.fixed is None else i.fixed for i in items], np.int64),
        )

    def search(
        self, seconds: float, *, order: Sequence[int], nodes: int
    ) -> tuple[int, dict[int, int] | None]:
        """Return how a search ended, and the bases by item where a packing was found.

        Of items that can lie equally low, the first one in `order` is tried first. Raises
        MemoryError.
        """
        rank, bases = self._rank(order), np.zeros(len(self.members), np.int64)
        ended = _library().braid_pack(
            self._struct, rank.ctypes.data, nodes, seconds, bases.ctypes.data
        )
        return self._outcome(ended, bases)

    def search_by_beam(
        self, seconds: float, *, width: int, waste: int, seed: int
    ) -> tuple[int, dict[int, int] | None]:
        """Search as `search` does, by `width` partial packings at a time; finds only packings of
        flat items.

        The packings with the least score are kept: a step of the skyline scores 1 to 11, by
        position and `seed`, empty space `waste`.
        """
        if self._has_fixed or not self.flat:
            return CUT, None
        bases = np.zeros(len(self.members), np.int64)
        ended = _library().braid_pack_by_beam(
            self._struct, width, waste, seed, seconds, bases.ctypes.data
        )
        return self._outcome(ended, bases)

    def search_by_boundaries(
        self, seconds: float, *, width: int, backwards: bool, freedom: float, seed: int
    ) -> tuple[int, dict[int, int] | None]:
        """Search as `search` does, moment by moment; finds only packings that fill every moment.

        `width` partial packings are kept at a moment; `freedom` is how much it counts that they
        leave many.
        """
        bases = np.zeros(len(self.members), np.int64)
        ended = _library().braid_pack_by_boundaries(
            self._struct, width, backwards, freedom, seed, seconds, bases.ctypes.data
        )
        return self._outcome(ended, bases)

    def _rank(self, order: Sequence[int]) -> NDArray[np.int32]:
        place = {item: rank for rank, item in enumerate(order)}
        return np.array([place[item] for item in self.members], np.int32)

    def _outcome(self, ended: int, bases: NDArray[np.int64]) -> tuple[int, dict[int, int] | None]:
        if ended != FOUND:
            return ended, None
        return FOUND, dict(zip(self.members, bases.tolist(), strict=True))
