"""Sets that only ever grow together (union-find with path halving)."""


class DisjointSets:
    """Numbers below `count`, each in a set of its own at first."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def find(self, number: int) -> int:
        """Return the number that stands for the set of `number`."""
        parent = self._parent
        while parent[number] != number:
            parent[number] = number = parent[parent[number]]
        return number

    def join(self, number: int, other: int) -> None:
        """Merge two sets; the representative of the set of `number` represents both."""
        self._parent[self.find(other)] = self.find(number)
