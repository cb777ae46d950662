"""States that grow: the first elements of a longer buffer, which sessions append to in place.

A state of n elements is the first n of a buffer. A session appends after them, so that nothing is
copied as long as the buffer is long enough. A fork shares the buffer: the first session that
appends after element n continues in it, and others copy their elements to a new buffer.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from braid.runtime.buffers import empty_aligned
from braid.support.errors import BraidError

Array = NDArray[Any]

_FACTOR = 2
"""How many times as long a buffer is that replaces one that is too short."""


class SharedBuffer:
    """A buffer of which the first elements are taken."""

    def __init__(self, elements: Array, taken: int) -> None:
        """Take the first elements of an array of rank 1."""
        self.elements = elements
        self._taken = [taken]  # None while a thread looks at it: who finds none copies

    def take(self, end: int, before: int) -> bool:
        """Take the elements up to `end` if those up to `before` are taken; return whether it did.

        Two threads cannot both do so: taking the only element of a list is one operation.
        """
        try:
            taken = self._taken.pop()
        except IndexError:
            return False
        self._taken.append(end if taken == before else taken)
        return taken == before


@dataclass(frozen=True)
class GrowingState:
    """An array of this shape at the start of a buffer; never changed, so that sessions may share
    it.
    """

    buffer: SharedBuffer
    shape: tuple[int, ...]

    @staticmethod
    def of(array: Array, capacity: int) -> "GrowingState":
        """Return a state of this value in a buffer for `capacity` elements, or for as many as there
        are.

        Raises:
            BraidError: there is no memory.

        """
        elements = _allocated(max(array.size, capacity), array.dtype, array.shape)
        elements[: array.size].reshape(array.shape)[...] = array
        return GrowingState(SharedBuffer(elements, array.size), array.shape)

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return math.prod(self.shape)

    @property
    def array(self) -> Array:
        """Return the value of the state."""
        return self.buffer.elements[: self.size].reshape(self.shape)


class Growth:
    """One call that appends to states: their next values, or none where it fails."""

    def __init__(self) -> None:
        """Begin with no states."""
        self._taken: list[tuple[SharedBuffer, int, int]] = []

    def after(self, state: GrowingState, shape: Sequence[int]) -> GrowingState:
        """Return the state of this shape that the call writes, which begins with `state`.

        It is in the same memory if that is long enough and no other session has appended to it.

        Raises:
            BraidError: there is no memory.

        """
        shape = tuple(shape)
        size, capacity = math.prod(shape), len(state.buffer.elements)
        if size <= capacity and state.buffer.take(size, state.size):
            self._taken.append((state.buffer, state.size, size))
            return GrowingState(state.buffer, shape)
        count = capacity if size <= capacity else max(size, _FACTOR * capacity)
        elements = _allocated(count, state.buffer.elements.dtype, shape)
        return GrowingState(SharedBuffer(elements, size), shape)

    def undo(self) -> None:
        """Give back the elements that were to be written."""
        for buffer, before, end in self._taken:
            buffer.take(before, end)


def _allocated(count: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    try:
        return empty_aligned((count,), dtype)
    except (MemoryError, ValueError, OverflowError) as error:
        raise BraidError(
            f"out of memory: {count} elements for a state of shape {shape}",
            hint="give the session a smaller capacity",
        ) from error
