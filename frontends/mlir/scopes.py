"""The names of values that are visible while a region is read."""

from typing import Self

from xdsl.ir import SSAValue


class ScopedValues(dict[str, tuple[SSAValue, ...]]):
    """The values by name that are visible; those of a region are taken out when it ends.

    xDSL copies the whole table at the beginning of every region, which makes parsing quadratic.
    """

    def __init__(self) -> None:
        super().__init__()
        self._defined: list[str] = []

    def __setitem__(self, name: str, values: tuple[SSAValue, ...]) -> None:
        self._defined.append(name)
        super().__setitem__(name, values)

    def copy(self) -> Self:
        """The table itself: leaving the region restores it."""
        return self

    def enter(self) -> int:
        """Begin a region; the result is for `leave`."""
        return len(self._defined)

    def leave(self, mark: int) -> None:
        """Forget what was defined since `enter` returned `mark`."""
        while len(self._defined) > mark:
            del self[self._defined.pop()]
