"""The weights of an imported model, by key, read when they are asked for."""

from collections.abc import Callable, Iterator, Mapping

from braid.dialects.braid.relayout import Array


class ParameterStore(Mapping[str, Array]):
    """A lazy mapping from parameter keys to arrays.

    Nothing is read before it is asked for, and nothing is kept but what was given as an array, so
    a memory-mapped weight never takes memory of its own.
    """

    def __init__(self) -> None:
        self._sources: dict[str, Callable[[], Array]] = {}

    def add(self, key: str, source: Callable[[], Array]) -> str:
        """Adds a parameter and returns its key: `key`, with a number if that is taken."""
        unique, count = key, 1
        while unique in self._sources:
            count += 1
            unique = f"{key}#{count}"
        self._sources[unique] = source
        return unique

    def __getitem__(self, key: str) -> Array:
        return self._sources[key]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)
