"""Bytes of the values that are alive, as they would be with one buffer each."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class LiveBytes:
    """Counts arrays by identity: one that several values name, as in a loop, counts once."""

    current: int = 0
    peak: int = 0
    _names: dict[int, int] = field(default_factory=dict[int, int])

    def add(self, value: Any) -> None:
        """Count one more value that names this array; scalars count as nothing."""
        if _is_array(value):
            names = self._names.get(id(value), 0)
            self._names[id(value)] = names + 1
            if names == 0:
                self._change(value, 1)

    def share(self, value: Any) -> None:
        """Count one more name of this array, if it is counted at all."""
        if id(value) in self._names:
            self.add(value)

    def remove(self, value: Any) -> None:
        """Count one value less that names this array."""
        if id(value) not in self._names:
            return
        self._names[id(value)] -= 1
        if self._names[id(value)] == 0:
            del self._names[id(value)]
            self._change(value, -1)

    def _change(self, array: Any, sign: int) -> None:
        self.current += sign * array.nbytes
        self.peak = max(self.peak, self.current)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)
