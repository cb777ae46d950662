"""States that grow: rows of a longer buffer, which sessions append to in place.

A state of n rows is the first n rows of a buffer. What a session appends lies after them, so that
nothing is copied as long as the buffer is long enough. A fork shares the buffer: the first that
appends after row n goes on in it, and others copy what they have to a buffer of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from braid.runtime.buffers import empty_aligned
from braid.support.errors import BraidError

Array = NDArray[Any]

_FACTOR = 2
"""How many times as many rows a buffer has that replaces one that is too short."""


class RowBuffer:
    """A buffer of rows, of which the first ones are taken."""

    def __init__(self, rows: Array, taken: int) -> None:
        """Take the first rows."""
        self.rows = rows
        self._taken = [taken]  # None while a thread looks at it: who finds none copies

    def take(self, length: int, before: int) -> bool:
        """Take the rows up to `length` if those up to `before` are taken; return whether it did.

        Two threads cannot both do so: taking the only element of a list is one operation.
        """
        try:
            taken = self._taken.pop()
        except IndexError:
            return False
        self._taken.append(length if taken == before else taken)
        return taken == before


@dataclass(frozen=True)
class GrowingState:
    """The first `length` rows of a buffer; never changed, so that sessions may share it."""

    buffer: RowBuffer
    length: int

    @staticmethod
    def of(rows: Array, capacity: int) -> "GrowingState":
        """Return a state of these rows in a buffer for `capacity` rows, or for as many as there
        are.

        Raises:
            BraidError: there is no memory.

        """
        length = len(rows)
        buffer = _allocated((max(length, capacity), *rows.shape[1:]), rows.dtype)
        buffer[:length] = rows
        return GrowingState(RowBuffer(buffer, length), length)

    @property
    def rows(self) -> Array:
        """Return the rows of the state."""
        return self.buffer.rows[: self.length]


class Growth:
    """One call that appends to states: their next values, or none where it fails."""

    def __init__(self) -> None:
        """Begin with no states."""
        self._taken: list[tuple[RowBuffer, int, int]] = []

    def after(self, state: GrowingState, shape: Sequence[int]) -> GrowingState:
        """Return the state of this shape that the call writes, which begins with `state`.

        It lies in the same memory where there are enough rows and nobody else has appended to
        them.

        Raises:
            BraidError: there is no memory.

        """
        rows, length = state.buffer.rows, shape[0]
        fits = length <= len(rows) and tuple(shape[1:]) == rows.shape[1:]
        if fits and state.buffer.take(length, state.length):
            self._taken.append((state.buffer, state.length, length))
            return GrowingState(state.buffer, length)
        count = max(length, _FACTOR * len(rows) if length > len(rows) else len(rows))
        return GrowingState(RowBuffer(_allocated((count, *shape[1:]), rows.dtype), length), length)

    def undo(self) -> None:
        """Give back the rows that were to be written."""
        for buffer, before, length in self._taken:
            buffer.take(before, length)


def _allocated(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    try:
        return empty_aligned(shape, dtype)
    except (MemoryError, ValueError) as error:
        raise BraidError(
            f"out of memory: a state of shape {shape}", hint="give the session a smaller capacity"
        ) from error
