"""Slices, paddings and iteration in the order in which tensors are stored: no IR.

A loop nest over logical dims becomes one over storage dims: dims are split where a layout
blocks them, and the loops are put in the order of the result's storage.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap

from braid.dialects.braid.layout import Layout, StorageDim


def is_sliceable(
    layout: Layout, shape: Sequence[int], offsets: Sequence[int], sizes: Sequence[int]
) -> bool:
    """Return whether this slice of a tensor of `shape` consists of whole blocks in `layout`.

    The last block may be cut where the tensor ends: its tail is zero in both.
    """
    return all(
        offset % block == 0 and (size % block == 0 or offset + size == extent)
        for dim, (extent, offset, size) in enumerate(zip(shape, offsets, sizes, strict=True))
        if (block := layout.block(dim)) > 1
    )


def storage_slice(
    layout: Layout, offsets: Sequence[int], sizes: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the offsets and sizes, in storage, of a slice that is sliceable in `layout`."""
    starts = tuple(0 if d.extent is not None else offsets[d.dim] // d.step for d in layout.dims)
    return starts, layout.storage_shape(sizes)


def is_paddable(layout: Layout, low: Sequence[int], high: Sequence[int]) -> bool:
    """Return whether this padding leaves the blocked dims of `layout` alone."""
    return all(
        a == 0 == b
        for dim, (a, b) in enumerate(zip(low, high, strict=True))
        if layout.block(dim) > 1
    )


def storage_padding(layout: Layout, values: Sequence[int]) -> tuple[int, ...]:
    """Return `low` or `high` of a padding, per dim of storage."""
    return tuple(0 if d.extent is not None else values[d.dim] for d in layout.dims)


Part = tuple[int, int | None]
"""Step and extent of one part of a split dim, as in `StorageDim`."""

_WHOLE: tuple[Part, ...] = ((1, None),)
_STRIDED_COST = 8
_START_COST = 24
"""The cost of starting an innermost loop, which few iterations share."""


@dataclass(frozen=True)
class Operand:
    """One operand of a loop nest: its access map, its layout and its logical shape."""

    map: AffineMap
    layout: Layout
    shape: tuple[int, ...]


@dataclass(frozen=True)
class PhysicalIteration:
    """A loop nest after splitting and ordering.

    `maps` go from the new dims to the storage of each operand; new dim i iterates `extents[i]`
    times and is part of old dim `origins[i]`. `logical[d]` is the index of old dim d; where
    `bounds[d]` is a number, indices from there on are in the tail of a padded block.
    `has_tails[i]` says whether operand i has elements for all tails that it is read in.
    """

    maps: tuple[AffineMap, ...]
    origins: tuple[int, ...]
    extents: tuple[int, ...]
    logical: tuple[AffineExpr, ...]
    bounds: tuple[int | None, ...]
    has_tails: tuple[bool, ...]


def physical_iteration(
    operands: Sequence[Operand], extents: Sequence[int], is_parallel: Sequence[bool]
) -> PhysicalIteration:
    """Split and order the loops for `operands`, the last of which is the result."""
    splits = [_split(dim, extent, operands) for dim, extent in enumerate(extents)]
    parts = [(dim, part) for dim, split in enumerate(splits) for part in split]
    sizes = [_iterations(extents[dim], part) for dim, part in parts]
    provisional = _renumbered(operands, splits, parts, range(len(parts)))
    parallel = [is_parallel[dim] for dim, _ in parts]
    order = _loop_order(provisional, operands, sizes, parallel)
    maps = _renumbered(operands, splits, parts, order)
    position = {old: new for new, old in enumerate(order)}
    logical = tuple(_sum_of_parts(dim, split, parts, position) for dim, split in enumerate(splits))
    bounds = tuple(
        extent if extent % _block(split) else None
        for split, extent in zip(splits, extents, strict=True)
    )
    return PhysicalIteration(
        maps,
        tuple(parts[old][0] for old in order),
        tuple(sizes[old] for old in order),
        logical,
        bounds,
        tuple(_has_tails(operand, splits, bounds) for operand in operands),
    )


def _block(split: Sequence[Part]) -> int:
    return prod(extent for _, extent in split if extent is not None)


def _iterations(extent: int, part: Part) -> int:
    step, size = part
    return size if size is not None else -(-extent // step)


def _split(dim: int, extent: int, operands: Sequence[Operand]) -> tuple[Part, ...]:
    """Return how the result stores the dim, or, in whole blocks, the first operand that
    blocks it.
    """
    *inputs, result = operands
    for operand in (result, *inputs):
        for position, expr in enumerate(operand.map.results):
            if expr != AffineExpr.dimension(dim):
                continue
            split = _parts_of(operand.layout, position)
            if len(split) > 1 and (operand is result or extent % _block(split) == 0):
                return split
    return _WHOLE


def _has_tails(
    operand: Operand, splits: Sequence[Sequence[Part]], bounds: Sequence[int | None]
) -> bool:
    """Return whether every padded dim leads to a dim of the operand that is padded the same way."""
    for position, expr in enumerate(operand.map.results):
        padded = {dim for dim in expr.used_dims() if bounds[dim] is not None}
        if padded and not isinstance(expr, AffineDimExpr):
            return False
        if any(splits[dim] != _parts_of(operand.layout, position) for dim in padded):
            return False
    return True


def _parts_of(layout: Layout, dim: int) -> tuple[Part, ...]:
    parts = [(d.step, d.extent) for d in layout.dims if d.dim == dim]
    return tuple(sorted(parts, key=lambda part: -part[0]))


def _sum_of_parts(
    dim: int,
    split: Sequence[Part],
    parts: Sequence[tuple[int, Part]],
    position: dict[int, int],
) -> AffineExpr:
    total: AffineExpr | None = None
    for part in split:
        index = AffineExpr.dimension(position[parts.index((dim, part))])
        term = index if part[0] == 1 else index * part[0]
        total = term if total is None else total + term
    assert total is not None
    return total


def _renumbered(
    operands: Sequence[Operand],
    splits: Sequence[Sequence[Part]],
    parts: Sequence[tuple[int, Part]],
    order: Sequence[int],
) -> tuple[AffineMap, ...]:
    """Return maps from the dims `parts[order[0]], parts[order[1]], …` to storage."""
    position = {old: new for new, old in enumerate(order)}
    logical = [_sum_of_parts(d, split, parts, position) for d, split in enumerate(splits)]

    def index(operand: Operand, stored: StorageDim) -> AffineExpr:
        expr = operand.map.results[stored.dim]
        part = (stored.step, stored.extent)
        if isinstance(expr, AffineDimExpr):
            split = splits[expr.position]
            if part in split and split == _parts_of(operand.layout, stored.dim):
                return AffineExpr.dimension(position[parts.index((expr.position, part))])
        expr = expr.replace_dims_and_symbols(logical, ())
        if stored.step != 1:
            expr = expr // stored.step
        return expr if stored.extent is None else expr % stored.extent

    return tuple(
        AffineMap(len(parts), 0, tuple(index(operand, d) for d in operand.layout.dims))
        for operand in operands
    )


def _loop_order(
    maps: Sequence[AffineMap],
    operands: Sequence[Operand],
    sizes: Sequence[int],
    parallel: Sequence[bool],
) -> list[int]:
    """Return the result's storage order, then reductions; contiguous accesses are innermost."""
    stored = [e.position for e in maps[-1].results if isinstance(e, AffineDimExpr)]
    rest = [dim for dim in range(len(sizes)) if parallel[dim] and dim not in stored]
    order = [*stored, *rest, *(dim for dim in range(len(sizes)) if not parallel[dim])]
    if not order:
        return order
    strides = [_strides(map, operand) for map, operand in zip(maps, operands, strict=True)]
    starts = [_START_COST / max(1, size) for size in sizes]
    innermost = min(reversed(order), key=lambda dim: _cost(dim, strides) + starts[dim])
    order.remove(innermost)
    return [*order, innermost]


def _strides(map: AffineMap, operand: Operand) -> list[int]:
    """Return the elements between neighbours along each iteration dim, 0 where it is not used."""
    shape = operand.layout.storage_shape(operand.shape)
    strides = [prod(shape[i + 1 :]) for i in range(len(shape))]
    result = [0] * map.num_dims
    for expr, stride in zip(map.results, strides, strict=True):
        for dim in expr.used_dims():
            start = expr.eval([0] * map.num_dims, [])
            step = expr.eval([int(d == dim) for d in range(map.num_dims)], []) - start
            result[dim] += stride * step
    return result


def _cost(dim: int, strides: Sequence[Sequence[int]]) -> int:
    """Return the cost of one step along `dim`; the result is read and written, and counts twice."""
    steps = [abs(of_operand[dim]) for of_operand in (*strides, strides[-1])]
    return sum(step if step <= 1 else _STRIDED_COST for step in steps)
