"""The schedule of an order of issue on a chip, and its annealing, in machine code.

The schedule is the one that `residency` issues, each step at once where nothing keeps it waiting.
"""

import weakref
from collections.abc import Sequence
from ctypes import byref
from dataclasses import dataclass
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from braid.solvers.ordering.native import CAnnealing, NativeChip, load_library

SLICE = 200_000
"""Ops that moves of one call may touch at most, so that a deadline is met."""


@dataclass(frozen=True)
class Cooling:
    """Annealing in `moves`: temperatures fall from `hot` to `cold`, in seconds."""

    hot: float
    cold: float
    moves: int


class Timeline:
    """The schedules of orders of a problem with loads up to `ahead` ops early."""

    def __init__(self, chip: NativeChip, ahead: int) -> None:
        """Raise MemoryError."""
        self._chip = chip
        library = load_library()
        self._handle = library.braid_timeline_open(byref(chip.struct), ahead)
        weakref.finalize(self, library.braid_timeline_close, self._handle)

    def seconds(self, order: Sequence[int]) -> float:
        """Return when `order` ends.

        Raises ValueError where the values of an op do not fit the capacity, and MemoryError.
        """
        return self._chip.seconds(self._reset(np.array(order, np.int32)))

    def anneal(
        self, order: Sequence[int], cooling: Cooling, seed: int, target: float, deadline: float
    ) -> tuple[list[int], float]:
        """Return the best order found from `order` on, no worse than that, and when it ends.

        Stops at a time of `target` or at `deadline`. Raises as `seconds` does.
        """
        chip, library = self._chip, load_library()
        best = np.array(order, np.int32)
        value = self._reset(best)
        random = np.random.default_rng(seed).integers(1, 1 << 63)
        hot, cold = float(chip.ticks(cooling.hot)), float(chip.ticks(cooling.cold))
        wanted = chip.ticks(target) + chip.rounded
        state = CAnnealing(random, hot, cold, cooling.moves, 0, wanted, value, best.ctypes.data)
        share = max(SLICE // max(len(best), 1), 1)
        ended = 0
        while not ended and monotonic() < deadline:
            ended = library.braid_anneal(self._handle, byref(state), share)
        return best.tolist(), chip.seconds(state.value)

    def _reset(self, order: NDArray[np.int32]) -> int:
        ticks = load_library().braid_timeline_reset(self._handle, order.ctypes.data)
        if ticks < 0:
            op, capacity = -1 - ticks, self._chip.struct.capacity
            raise ValueError(f"op {op} does not fit {capacity} bytes")
        return ticks
