"""Text and mappings in a model: the compiled graph computes with numbers that stand for them.

Every text that a model holds has a number of its own. Text of a call that the model does not hold
has the numbers after these, so that equal numbers are equal text in each call.
"""

from collections.abc import Collection

from xdsl.ir import SSAValue


class TextTable:
    """The texts of a model, and which values are numbers of texts."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._values: set[SSAValue] = set()
        self._rows: dict[SSAValue, tuple[str | int, ...]] = {}

    def code(self, text: str) -> int:
        """Return the number that stands for a text."""
        return self._codes.setdefault(text, len(self._codes))

    def mark(self, value: SSAValue) -> None:
        """Note that the elements of a value stand for texts."""
        self._values.add(value)

    def mark_rows(self, value: SSAValue, keys: tuple[str | int, ...]) -> None:
        """Note that the rows of a value represent mappings with these keys."""
        self._rows[value] = keys

    def keys_of(self, value: SSAValue) -> tuple[str | int, ...] | None:
        """Return the keys of the mappings that the rows of a value represent, None for others."""
        return self._rows.get(value)

    def __contains__(self, value: object) -> bool:
        """Return whether the elements of a value stand for texts."""
        return value in self._values

    @property
    def texts(self) -> Collection[str]:
        """Return all texts, in the order of their numbers."""
        return self._codes.keys()
