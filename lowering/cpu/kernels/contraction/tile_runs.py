"""Tiles at the edges of images, which leave out products with the zeros around them.

Along a dim, an element of the windows lies in the image at neighbouring positions. If positions are
rows of tiles, a tile at an edge multiplies each element for a part of its rows only. Along the
other dims, only elements inside of the image are reduced.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from braid.analysis.nests.windows import WindowDim
from braid.lowering.emit.emitter import Emitter, Index

_MOST_PASSES, _MOST_CODES = 8, 32
"""Passes of a tile, and of all tiles with specialized code: wide windows have an edge for each of
their elements."""

_MOST_EDGES = 1 << 12
"""Tiles at the edges of the image; more than these are not analysed one by one."""


def elements_at(e: Emitter, window: WindowDim, position: Index) -> tuple[Index, Index]:
    """Return the range of the window's elements at `position` that lie in the image; it is empty if
    the first one is not less than the second.
    """
    first = e.mul(position, window.stride)

    def before(side: int) -> Index:
        distance = e.sub(e.maximum(first, side), first)
        return e.divmod(e.add(distance, window.dilation - 1), window.dilation)[0]

    begin = before(window.begin) if window.begin else 0
    end = e.minimum(before(window.end), window.size) if window.reaches_end else window.size
    return begin, end


@dataclass(frozen=True)
class Pass:
    """The products of elements [begin, end) of windows with rows [first, last) of a tile."""

    begin: int
    end: int
    first: int
    last: int

    @property
    def products(self) -> int:
        """Rows times elements."""
        return (self.end - self.begin) * (self.last - self.first)

    def joined(self, other: "Pass") -> "Pass":
        """Return this pass joined with a later one, and the positions in between."""
        rows = min(self.first, other.first), max(self.last, other.last)
        return Pass(self.begin, other.end, *rows)


@dataclass(frozen=True)
class TileRun:
    """`count` neighbouring tiles of `rows` rows, with the same `passes`: none for all products."""

    count: int
    rows: int
    passes: tuple[Pass, ...] = ()


@lru_cache(maxsize=4096)
def tile_runs(extent: int, rows: int, window: WindowDim | None) -> tuple[TileRun, ...]:
    """Return the tiles of up to `rows` rows that a row dim of `extent` is cut into, in
    their order.
    """
    if window is not None and _edge_tiles(extent, rows, window) <= _MOST_EDGES:
        runs = _edged_runs(extent, rows, window)
        if sum(len(run.passes) for run in runs) <= _MOST_CODES:
            return runs
    whole, rest = divmod(extent, rows)
    return tuple(TileRun(*run) for run in ((whole, rows), (1, rest)) if min(run) > 0)


def open_runs(extent: int, rows: int) -> tuple[TileRun, ...]:
    """Return the tiles of an open row dim at one `extent`; the remainder gets powers of two."""
    whole, rest = divmod(extent, rows)
    powers = (1 << bit for bit in reversed(range(rows.bit_length())))
    runs = (TileRun(whole, rows), *(TileRun(1, power) for power in powers if rest & power))
    return tuple(run for run in runs if run.count)


def _edge_tiles(extent: int, rows: int, window: WindowDim) -> int:
    return -(-extent // rows) - len(_inner_tiles(extent, rows, window))


def _edged_runs(extent: int, rows: int, window: WindowDim) -> tuple[TileRun, ...]:
    """Return the runs with a window along the row dim; those between the edges are equal."""
    runs: list[TileRun] = []
    tiles = -(-extent // rows)
    inner = _inner_tiles(extent, rows, window)
    for first, count in (
        *((tile, 1) for tile in range(inner.start)),
        *([(inner.start, len(inner))] if inner else ()),
        *((tile, 1) for tile in range(inner.stop, tiles)),
    ):
        own = min(rows, extent - first * rows)
        passes = _passes(window, first * rows, own)
        if runs and (runs[-1].rows, runs[-1].passes) == (own, passes):
            runs[-1] = replace(runs[-1], count=runs[-1].count + count)
        else:
            runs.append(TileRun(count, own, passes))
    return tuple(runs)


def _inner_tiles(extent: int, rows: int, window: WindowDim) -> range:
    """Return the range of tiles whose windows all lie in the image; it may be empty."""
    first = -(-window.begin // window.stride)
    last = (window.end - 1 - (window.size - 1) * window.dilation) // window.stride
    start, stop = max(0, -(-first // rows)), min(extent, last + 1) // rows
    return range(start, max(start, stop)) if start * rows < extent else range(0)


def _passes(window: WindowDim, first: int, rows: int) -> tuple[Pass, ...]:
    """Return the passes of the tile of `rows` rows from position `first` on; none where all are
    products.
    """
    passes: list[Pass] = []
    for element in range(window.size):
        inside = window.positions_of(element)
        own = max(inside.start - first, 0), min(inside.stop - first, rows)
        if own[0] >= own[1]:
            continue
        if passes and (passes[-1].end, passes[-1].first, passes[-1].last) == (element, *own):
            passes[-1] = Pass(passes[-1].begin, element + 1, *own)
        else:
            passes.append(Pass(element, element + 1, *own))
    passes = passes or [Pass(0, 1, 0, rows)]  # of zeros
    while len(passes) > _MOST_PASSES:
        place = min(range(len(passes) - 1), key=lambda place: _added(passes[place : place + 2]))
        passes[place : place + 2] = [passes[place].joined(passes[place + 1])]
    return () if passes == [Pass(0, window.size, 0, rows)] else tuple(passes)


def _added(pair: Sequence[Pass]) -> int:
    """Return the products with zeros that joining two passes costs."""
    return pair[0].joined(pair[1]).products - pair[0].products - pair[1].products
