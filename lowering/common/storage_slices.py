"""Slices and paddings of logical dims, as they are in the storage of a layout. No IR."""

from collections.abc import Sequence

from braid.dialects.braid.layout import Layout


def is_sliceable(
    layout: Layout, shape: Sequence[int], offsets: Sequence[int], sizes: Sequence[int]
) -> bool:
    """Whether this slice of a tensor of `shape` consists of whole blocks in `layout`.

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
    """Offsets and sizes, in storage, of a slice that is sliceable in `layout`."""
    starts = tuple(0 if d.extent is not None else offsets[d.dim] // d.step for d in layout.dims)
    return starts, layout.storage_shape(sizes)


def is_paddable(layout: Layout, low: Sequence[int], high: Sequence[int]) -> bool:
    """Whether this padding leaves the blocked dims of `layout` alone."""
    return all(
        a == 0 == b
        for dim, (a, b) in enumerate(zip(low, high, strict=True))
        if layout.block(dim) > 1
    )


def storage_padding(layout: Layout, values: Sequence[int]) -> tuple[int, ...]:
    """`low` or `high` of a padding, per dim of storage."""
    return tuple(0 if d.extent is not None else values[d.dim] for d in layout.dims)
