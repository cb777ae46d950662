"""Classify the tiles of a group by the code that computes them, and locate each of them.

Tiles at the borders differ from those inside: they are smaller, or their windows are partly
padding.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product

from xdsl.ir import Operation, SSAValue

from braid.analysis.tiles.tiles import GroupTile, group_tile, tiled_shape
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.boxes import reshaped

_MOST_CLASSES = 27
"""The most kinds of tiles; more would be more code than they are worth: three along each of three
dims."""

_MOST_COMPARED = 256
"""Tiles along a dim that are compared one by one; if there are more, those at both ends and some in
between are."""

_SAMPLES = 32


@dataclass(frozen=True)
class TileClass:
    """The tiles `first[d]` to `last[d]`, both included, along every dim d of the result.

    `tile` is the first tile of the class. From one to the next along dim d, `GroupTile.starts` grow
    by `steps[d]`.
    """

    first: tuple[int, ...]
    last: tuple[int, ...]
    tile: GroupTile
    steps: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Tiling:
    """A group whose result is cut into tiles of `extents`, the last ones perhaps smaller.

    The dims are those of `tiles.tiled_shape`.
    """

    members: tuple[Operation, ...]
    result: SSAValue
    extents: tuple[int, ...]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape that is cut."""
        return tiled_shape(self.members, self.result)

    @property
    def counts(self) -> tuple[int, ...]:
        """Tiles along every dim."""
        return tuple(-(-n // size) for n, size in zip(self.shape, self.extents, strict=True))

    def tile(self, numbers: Sequence[int]) -> GroupTile | None:
        """Return the tile with these numbers, one per dim."""
        cut = tuple(
            (i * size, min(size, n - i * size))
            for i, size, n in zip(numbers, self.extents, self.shape, strict=True)
        )
        box = reshaped(cut, self.shape, shape_of(self.result))
        return None if box is None else group_tile(self.members, self.result, box)

    def classes(self) -> list[TileClass] | None:
        """Return all tiles by class; None where some cannot be made, or where there are many
        classes.
        """
        intervals = [self._intervals(dim) for dim in range(len(self.extents))]
        found = [runs for runs in intervals if runs is not None]
        if len(found) < len(intervals) or math.prod(map(len, found)) > _MOST_CLASSES:
            return None
        classes: list[TileClass] = []
        for runs in product(*found):
            made = self._class([run[0] for run in runs], [run[1] for run in runs])
            if made is None:
                return None
            classes.append(made)
        return classes

    def _intervals(self, dim: int) -> list[tuple[int, int]] | None:
        """Return the ranges of equal tiles along `dim` at equal distances."""
        numbers = _compared(self.counts[dim])
        tiles: list[tuple[Hashable, tuple[int, ...]]] = []
        for number in numbers:
            tile = self.tile([number if d == dim else 0 for d in range(len(self.extents))])
            if tile is None:
                return None
            tiles.append((tile.key, tile.starts))
        cuts: list[int] = []
        slope: list[float] | None = None
        for index, (left, right) in enumerate(pairwise(numbers), 1):
            (key, starts), (next_key, next_starts) = tiles[index - 1], tiles[index]
            step = [(b - a) / (right - left) for a, b in zip(starts, next_starts, strict=False)]
            if key == next_key and slope in (None, step):
                slope = step
                continue
            if right != left + 1:
                return None
            cuts.append(right)
            slope = None
        return list(zip([0, *cuts], [cut - 1 for cut in [*cuts, self.counts[dim]]], strict=True))

    def _class(self, first: list[int], last: list[int]) -> TileClass | None:
        tile, corner = self.tile(first), self.tile(last)
        if tile is None or corner is None or tile.key != corner.key:
            return None
        steps: list[tuple[int, ...]] = []
        for dim in range(len(first)):
            if first[dim] == last[dim]:
                steps.append((0,) * len(tile.starts))
                continue
            beside = self.tile([n + (d == dim) for d, n in enumerate(first)])
            assert beside is not None
            steps.append(tuple(b - a for a, b in zip(tile.starts, beside.starts, strict=True)))
        distance = [b - a for a, b in zip(first, last, strict=True)]
        expected = tuple(
            start + sum(n * step[i] for n, step in zip(distance, steps, strict=True))
            for i, start in enumerate(tile.starts)
        )
        return (
            TileClass(tuple(first), tuple(last), tile, tuple(steps))
            if (expected == corner.starts)
            else None
        )


def _compared(count: int) -> list[int]:
    if count <= _MOST_COMPARED:
        return list(range(count))
    middle = range(_SAMPLES, count - _SAMPLES, max(1, count // _SAMPLES))
    return sorted({*range(_SAMPLES), *middle, *range(count - _SAMPLES, count)})
