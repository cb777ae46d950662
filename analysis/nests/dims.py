"""Loop dims with one stride per tensor, and merging those that are contiguous in all. No IR.

Extents and strides are numbers, or sizes of open dims. Extents that are not known to be equal count
as different: dims are merged, and tensors broadcast, only if that holds for every size.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, cast

from typing_extensions import TypeVar

from braid.dialects.braid.layout import Layout, StorageDim
from braid.support.sizes.expression import Extent, ExtentT

KnownOrOpen = TypeVar("KnownOrOpen", bound=Extent, default=int, covariant=True)
"""The extents of a nest: numbers by default, `Extent` where dims may be open."""


@dataclass(frozen=True)
class LoopDim(Generic[KnownOrOpen]):
    """`extent` iterations; one advances tensor t by `strides[t]` elements."""

    extent: KnownOrOpen
    strides: tuple[KnownOrOpen, ...]


def merged(dims: Sequence[LoopDim[ExtentT]]) -> tuple[LoopDim[ExtentT], ...]:
    """Return the same nest (outermost first) with as few dims as possible, none of extent 1."""
    result: list[LoopDim[ExtentT]] = []
    for dim in dims:
        if dim.extent == 1:
            continue
        if result and _continues(result[-1], dim):
            extent = cast(ExtentT, result.pop().extent * dim.extent)
            dim = LoopDim(extent, dim.strides)
        result.append(dim)
    return tuple(result)


def _continues(outer: LoopDim[Extent], inner: LoopDim[Extent]) -> bool:
    """Return whether one step of the outer dim equals a complete pass of the inner one, in every
    tensor."""
    return outer.strides == tuple(inner.extent * stride for stride in inner.strides)


@dataclass(frozen=True)
class Stored(Generic[KnownOrOpen]):
    """A tensor of logical `shape` in `layout`, which has no blocks where dims are open."""

    shape: tuple[KnownOrOpen, ...]
    layout: Layout

    def stride(self, dim: int, step: Extent = 1) -> KnownOrOpen:
        """Return the elements that `step` along a logical dim advances by; 0 for a repeated dim.

        Exact as long as the walk does not leave the block that holds its first element.
        """
        return cast(KnownOrOpen, 0) if self.shape[dim] == 1 else self.distance(dim, step)

    def distance(self, dim: int, step: Extent = 1) -> KnownOrOpen:
        """Return the stride as stored, where nothing is repeated: not 0 for an extent of 1."""
        units = self._units[dim]
        unit, stride = units[0]
        if len(units) > 1 and isinstance(step, int):
            unit, stride = max(each for each in units if each[0] <= step)
        return cast(KnownOrOpen, stride * (step // unit))

    @cached_property
    def _units(self) -> list[list[tuple[int, int]]]:
        """Return, per logical dim, the steps that its storage dims count in and their strides."""
        units: list[list[tuple[int, int]]] = [[] for _ in self.shape]
        strides = cast(tuple[int, ...], self.layout.storage_strides(self.shape))  # or sizes
        for stored, stride in zip(self.layout.dims, strides, strict=True):
            units[stored.dim].append((stored.step, stride))
        return units


def has_elements(shape: Sequence[Extent]) -> bool:
    """Return whether no extent is known to be 0, or is open without a size."""
    return all(not isinstance(extent, int) or extent > 0 for extent in shape)


def is_repeated(extents: Sequence[Extent], shape: Sequence[Extent]) -> bool:
    """Return whether a tensor is known to be repeated or as long as `shape` along every dim."""
    return all(own in (1, whole) for own, whole in zip(extents, shape, strict=True))


def row_major_strides(shape: Sequence[ExtentT]) -> tuple[ExtentT, ...]:
    """Return the elements between neighbours along each dim of a contiguous array."""
    known = cast(Sequence[int], shape)  # or sizes: products of either
    strides = tuple(math.prod(known[dim + 1 :]) for dim in range(len(known)))
    return cast(tuple[ExtentT, ...], strides)


def strides_along(
    shape: Sequence[ExtentT], layout: Layout, order: Layout
) -> tuple[ExtentT, ...] | None:
    """Return the elements that a step along each storage dim of `order` advances a tensor by.

    The tensor has logical `shape` and is stored in `layout`, perhaps with strides of its own; dims
    of extent 1 are repeated, so their strides are 0. None where a step along a dim has no single
    stride.
    """
    stored = layout.storage_strides(shape)
    stride_of = dict(zip(layout.dims, stored, strict=True))
    strides: list[Extent] = []
    for target in order.dims:
        outermost = StorageDim(target.dim, 1, None)
        if shape[target.dim] == 1:
            strides.append(0)
        elif target in stride_of:
            strides.append(stride_of[target])
        elif outermost in stride_of:
            strides.append(stride_of[outermost] * target.step)
        else:
            return None
    return cast(tuple[ExtentT, ...], tuple(strides))
