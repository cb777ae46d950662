"""A dim along which an op may be split, and what the largest of its parts takes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from braid.passes.split.tile import Part, Tile, parts_of

TileOf = Callable[[Part], Tile | None]


@dataclass(frozen=True)
class Largest:
    """Extents that no part exceeds: of the result, and of operands by (index, dim)."""

    made: int
    operands: Mapping[tuple[int, int], int]


class SplitDim:
    """A dim along which an op may be split: `tile` says what a part of the result needs.

    `extent` elements in whole `unit`s; `combine` names the elementwise op that joins the partial
    results of a reduced dim, and is None for a dim of the result. With `has_halo`, what a part
    needs depends on where it is, not on its size alone.
    """

    def __init__(
        self,
        dim: int,
        extent: int,
        tile: TileOf,
        unit: int = 1,
        combine: str | None = None,
        has_halo: bool = False,
    ) -> None:
        self.dim = dim
        self.extent = extent
        self.tile = tile
        self.unit = unit
        self.combine = combine
        self.has_halo = has_halo
        self._largest: dict[int, Largest | None] = {}

    def parts(self, count: int) -> list[Part]:
        """The parts when there are `count`."""
        return parts_of(self.dim, self.extent, count, self.unit)

    def largest(self, count: int) -> Largest | None:
        """What the largest of `count` parts takes; None where not all of them can be made."""
        if count not in self._largest:
            self._largest[count] = self._find_largest(count)
        return self._largest[count]

    def _find_largest(self, count: int) -> Largest | None:
        made, operands = 0, dict[tuple[int, int], int]()
        for part in self._typical_parts(count):
            tile = self.tile(part)
            if tile is None:
                return None
            made = max(made, (tile.computed or part).size)
            for index, needed in tile.operands.items():
                key = index, needed.dim
                operands[key] = max(operands.get(key, 0), needed.size)
        return Largest(made, operands)

    def _typical_parts(self, count: int) -> list[Part]:
        """Parts of which one needs the most: without a halo the first, none is larger."""
        if self.has_halo:
            return self.parts(count)
        return [Part(self.dim, 0, -(-(self.extent // self.unit) // count) * self.unit)]
