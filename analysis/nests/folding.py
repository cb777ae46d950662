"""Nests of folds: which elements of blocks are added up at which places of an image."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from braid.analysis.nests.dims import has_elements
from braid.analysis.nests.lines import single_op
from braid.analysis.nests.pointwise import ExtentsOf
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.folding import FoldDim, FoldOp
from braid.dialects.braid.regions import FusedOp
from braid.support.sizes.expression import Extent


@dataclass(frozen=True)
class Tap:
    """An element of the block, which is added `shift` places after its block's."""

    number: int
    shift: int


@dataclass(frozen=True)
class Run:
    """The places `begin` to `end` of a phase, at all of which the same taps are added."""

    begin: int
    end: int
    taps: tuple[Tap, ...]


def taps_of(dim: FoldDim, phase: int) -> list[Tap]:
    """Return the taps whose places are `phase` after a multiple of the stride."""
    offsets = ((tap, tap * dim.dilation) for tap in range(dim.size))
    return [Tap(t, at // dim.stride) for t, at in offsets if at % dim.stride == phase]


def places_of(dim: FoldDim, phase: int) -> tuple[int, int]:
    """Return the first u and the one after the last for which stride · u + phase - low is in the
    image.
    """
    begin = -((phase - dim.low) // dim.stride) if phase < dim.low else 0
    return begin, max(begin, -(-(dim.extent + dim.low - phase) // dim.stride))


def runs_of(dim: FoldDim, phase: int) -> Iterator[Run]:
    """Yield the runs of a phase: block u - shift of each tap is there, or not, in all of a run."""
    begin, end = places_of(dim, phase)
    taps = taps_of(dim, phase)
    edges = {edge for tap in taps for edge in (tap.shift, tap.shift + dim.count)}
    cuts = sorted({begin, end, *(edge for edge in edges if begin < edge < end)})
    for low, high in pairwise(cuts):
        yield Run(low, high, tuple(t for t in taps if t.shift <= low < t.shift + dim.count))


@dataclass(frozen=True)
class FoldNest:
    """`images` of these spatial dims."""

    images: Extent
    dims: Sequence[FoldDim]

    @property
    def elements(self) -> int:
        """Return the elements of an operand's image."""
        return math.prod(dim.size * dim.count for dim in self.dims)

    @property
    def places(self) -> int:
        """Return the places of a result's image."""
        return math.prod(dim.extent for dim in self.dims)

    @property
    def rows(self) -> int:
        """Return the rows of taps along the last dim that there is code for."""
        return math.prod(
            sum(max(1, len(run.taps)) for phase in range(dim.stride) for run in runs_of(dim, phase))
            for dim in self.dims[:-1]
        )


def fold_nest(group: FusedOp, extents_of: ExtentsOf = shape_of) -> FoldNest | None:
    """Return the fold that a group of one op is; None if it is no fold, or has no elements."""
    op = single_op(group, FoldOp)
    if op is None or len(group.results) != 1 or not has_elements(extents_of(op.input)):
        return None
    batch, channels = cast(tuple[int, int], extents_of(op.output)[:2])  # or sizes
    return FoldNest(batch * channels, op.dims)
