"""Choose tiles for the result of a group so that intermediate values stay in a cache."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.ir import Operation, SSAValue

from braid.analysis.storage.tensor_storage import is_view
from braid.analysis.tiles.tile_classes import Tiling
from braid.analysis.tiles.tiles import (
    GroupTile,
    box_bytes,
    group_tile,
    recomputation,
    scratch_bytes,
    tiled_shape,
)
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.boxes import whole
from braid.dialects.braid.matmul import MatmulOp

SCRATCH_TARGET = 768 * 1024
"""Bytes that a tile may use: most of a second-level cache."""

_SHARE_OF_INTERNAL = 32
"""Flat tiles of products may lose at most the fraction 1 / this of the saving."""

_EFFICIENT_ROWS = 32
"""Rows of a product below which loading the other operand takes most of the time."""

_FEWEST_ROWS = 16
"""Rows of a tile that is made smaller for a cache are a multiple of these."""

_RECOMPUTATION = 1.1
"""The largest allowed ratio of the cost of tiles, which may overlap, to the cost without tiles."""

_SHARE_OF_CACHE = 15 / 16
"""The share of a core's own cache that tiles use; the result and the stack take the rest."""

_LOOKED_AT = 16
"""Tiles along each dim that are tried before a size is taken."""

_ENOUGH_TILES = 8
"""The tiles that suffice; fewer would not spread over the cores of one machine."""


@dataclass(frozen=True)
class _TileSizeSearch:
    """The group whose tiles are searched, and the resources that they may use."""

    members: tuple[Operation, ...]
    result: SSAValue
    target: int
    rows: int

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape that is cut."""
        return tiled_shape(self.members, self.result)

    def tile(self, extents: Sequence[int]) -> GroupTile | None:
        """Return a tile in the middle, if it is legal and not much is computed repeatedly.

        It is not the last along a dim that is cut: that one may be smaller.
        """
        tiling = Tiling(self.members, self.result, tuple(extents))
        tile = tiling.tile([(count - 1) // 2 for count in tiling.counts])
        if tile is None or not self._is_efficient(tile) or not self._are_boxes(tiling):
            return None
        tiles = math.prod(n / size for n, size in zip(self.shape, extents, strict=True))
        return tile if recomputation(self.members, tile, tiles) <= _RECOMPUTATION else None

    def need(self, extents: Sequence[int]) -> float:
        """Return the bytes of such a tile, infinite if there is none."""
        tile = self.tile(extents)
        return math.inf if tile is None else scratch_bytes(tile)

    def _are_boxes(self, tiling: Tiling) -> bool:
        """Return whether the first tiles can be made: a reshape may cut some of them in two."""
        if not any(is_view(op) for op in self.members):
            return True
        return all(
            tiling.tile([number if d == dim else 0 for d in range(len(self.shape))]) is not None
            for dim, count in enumerate(tiling.counts)
            for number in range(min(_LOOKED_AT, count))
        )

    def _is_efficient(self, tile: GroupTile) -> bool:
        return all(
            tile.boxes[op.output][-2][1] >= min(self.rows, shape_of(op.output)[-2])
            for op in tile.ops
            if isinstance(op, MatmulOp)
        )


def tile_sizes(
    members: Sequence[Operation],
    result: SSAValue,
    target: int = SCRATCH_TARGET,
    cache: int | None = None,
) -> tuple[int, ...] | None:
    """Return the extents of the tiles of `result`, along the dims of `tiles.tiled_shape`.

    The dims are cut in turn, first the one that saves most, each as little as suffices.
    None where a tile would need more than `target` bytes, or much more work would be done than
    without tiles. Rows of products are cut finely only where a tile of many rows would use a large
    part of what the group saves and a tile of few rows fits, or if a cache of `cache` bytes holds a
    tile of fewer rows together with its operands, such as the keys of an attention.
    """
    shape = shape_of(result)
    if min(shape, default=0) < 1:
        return None
    everything = group_tile(members, result, whole(shape))
    if everything is None:
        return None
    relaxed = max(target, internal_bytes(everything) // _SHARE_OF_INTERNAL)
    for rows, limit in ((2 * _EFFICIENT_ROWS, relaxed), (_EFFICIENT_ROWS, target), (1, target)):
        search = _TileSizeSearch(tuple(members), result, target, rows)
        found = _cut(search, _dims_by_need(search))
        if search.need(found) <= limit:
            return _in_cache(search, _spread(search, found), cache)
    return None


def internal_bytes(tile: GroupTile) -> int:
    """Return the bytes of all values inside of the tile."""
    return sum(
        box_bytes(op.results[0], tile.boxes[op.results[0]])
        for op in tile.ops
        if op.results[0] is not tile.result and not is_view(op)
    )


def _dims_by_need(search: _TileSizeSearch) -> list[int]:
    """Return the dims of the result, first those that leave the least when they are cut."""
    shape = search.shape

    def left(dim: int) -> float:
        return min(
            search.need([size if d == dim else n for d, n in enumerate(shape)])
            for size in (1, min(2 * _EFFICIENT_ROWS, shape[dim]))
        )

    return sorted((d for d in range(len(shape)) if shape[d] > 1), key=left)


def _cut(search: _TileSizeSearch, dims: Sequence[int]) -> list[int]:
    """Cut one dim after the other until the tile fits."""
    extents = list(search.shape)
    for dim in dims:
        best = search.need(extents)
        if best <= search.target:
            break
        for size in candidates(extents[dim]):
            trial = [size if d == dim else n for d, n in enumerate(extents)]
            need = search.need(trial)
            if need < best:
                best, chosen = need, size
                extents[dim] = chosen
                if need <= search.target:
                    break
    return extents


def _spread(search: _TileSizeSearch, extents: list[int]) -> tuple[int, ...]:
    """Return smaller tiles where there are few, as long as nothing is computed twice for that."""
    shape = search.shape
    for dim in range(len(shape)):
        for size in candidates(extents[dim]):
            tiles = math.prod(-(-n // e) for n, e in zip(shape, extents, strict=True))
            if tiles >= _ENOUGH_TILES:
                return tuple(extents)
            trial = [size if d == dim else n for d, n in enumerate(extents)]
            tile = search.tile(trial)
            if tile is not None and scratch_bytes(tile) <= search.need(extents):
                extents = trial
    return tuple(extents)


def _in_cache(
    search: _TileSizeSearch, extents: tuple[int, ...], cache: int | None
) -> tuple[int, ...]:
    """Return fewer rows if `cache` bytes then hold all that a tile reads and its scores.

    577 queries and keys with a bias, 40 and 80 wide, take 0.77 to 0.91 of the time on Zen 3, 18 to
    40 queries at once instead of 73. Where no number of rows fits, fewer may take up to 1.1.
    """
    if cache is None or not any(isinstance(op, MatmulOp) for op in search.members):
        return extents
    few = replace(search, rows=_FEWEST_ROWS)
    for dim in range(len(extents) - 1):  # The last one has the columns of products.
        sizes = range((extents[dim] - 1) // _FEWEST_ROWS * _FEWEST_ROWS, 0, -_FEWEST_ROWS)
        for size in (extents[dim], *sizes):
            trial = (*extents[:dim], size, *extents[dim + 1 :])
            tile = few.tile(trial)
            if tile is None or _used_bytes(tile) > _SHARE_OF_CACHE * cache:
                continue
            if Tiling(search.members, search.result, trial).classes() is not None:
                return trial
    return extents


def _used_bytes(tile: GroupTile) -> int:
    """Return the bytes that a tile reads, with those of the largest product within it."""
    made = [
        box_bytes(op.results[0], tile.boxes[op.results[0]])
        for op in tile.ops
        if isinstance(op, MatmulOp) and op.output is not tile.result
    ]
    return max(made, default=0) + sum(box_bytes(value, box) for value, box in tile.inputs)


def candidates(extent: int) -> list[int]:
    """Return the sizes of parts of a dim, the largest first: its divisors, and halves where none is
    near.
    """
    small = [size for size in range(1, math.isqrt(extent) + 1) if extent % size == 0]
    sizes = {*small, *(extent // size for size in small)} - {extent}
    half = extent
    while half > 1:
        half = (half + 1) // 2
        if not any(half // 2 < size <= half for size in sizes):
            sizes.add(half)
    return sorted(sizes, reverse=True)
