"""Moving numpy arrays between the logical shape and the storage of a layout."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from braid.dialects.braid.byte_pairs import columns_of_chunk, pair_orders, shuffles
from braid.dialects.braid.layout import Layout, StorageDim
from braid.dialects.braid.winograd import transformed_windows
from braid.support.errors import BraidError

Array = npt.NDArray[Any]


def to_storage(array: Array, layout: Layout) -> Array:
    """Return `array` (logical shape) as `layout` stores it; the tails of padded blocks are zero.

    Raises BraidError where bytes cannot be ordered in pairs.
    """
    stored = np.empty(layout.storage_shape(array.shape), array.dtype)
    store(array, layout, stored)
    return stored


def store(array: Array, layout: Layout, out: Array) -> None:
    """Write the result of `to_storage` to `out`, which has the shape of storage.

    Raises BraidError where bytes cannot be ordered in pairs.
    """
    if layout.winograd:
        _store_transformed(array, layout, out)
    elif layout.pairs:
        np.copyto(out, _in_pairs(array, layout))
    else:
        np.copyto(out, view_as_stored(array, layout))


def window_places(layout: Layout) -> tuple[int, int]:
    """Return the storage dims that are the rows and columns of transformed windows."""
    dims = layout.untransformed.dims
    rows, columns = (StorageDim(dim, 1, None) for dim in (layout.rank - 2, layout.rank - 1))
    return dims.index(rows), dims.index(columns)


_WINDOWS = 512
"""The number of windows that are transformed at once.

So data stays in the cache, and only the calling thread multiplies: for larger matmuls numpy's
library wakes other threads, which then spin until the next one.
"""


def _store_transformed(array: Array, layout: Layout, out: Array) -> None:
    """Write transformed windows to `out`, in the order of storage from its begin to its end."""
    plain, places = layout.untransformed, window_places(layout)
    windows = np.moveaxis(view_as_stored(array, plain), places, (0, 1))
    transformed = np.moveaxis(out, places, (0, 1))
    count = max(1, _WINDOWS // math.prod(windows.shape[4:]))
    for place in range(windows.shape[2]):
        for begin in range(0, windows.shape[3], count):
            block = (slice(None), slice(None), place, slice(begin, begin + count))
            transformed[block] = transformed_windows(windows[block], layout.winograd)


def view_as_stored(array: Array, layout: Layout) -> Array:
    """Return the elements in place, by strides: only padded tensors are copied."""
    padding = [(0, -size % layout.block(dim)) for dim, size in enumerate(array.shape)]
    padded = np.pad(array, padding) if any(high for _, high in padding) else array
    split = padded.reshape(_split_shape(array.shape, layout))
    return split.transpose(_split_positions(layout))


def _in_pairs(array: Array, layout: Layout) -> Array:
    """Return the bytes in the blocks of the layout, each chunk in its order, then the orders."""
    columns, depth = layout.pair_dims
    padding = [(0, 0)] * array.ndim
    padding[depth] = (0, -array.shape[depth] % layout.block(depth))
    moved = np.moveaxis(np.pad(array, padding), (columns, depth), (0, -1))
    weight = moved.reshape(len(moved), -1, moved.shape[-1])
    orders = pair_orders(weight) if array.dtype == np.int8 else None
    if orders is None:
        raise BraidError(
            f"{array.dtype.name}{list(array.shape)} cannot be stored in layout '{layout}': sums of "
            "two products would not fit 16 bits, in whichever order",
            hint="'annotate-weights' finds weights that can be stored so",
        )
    ordered = np.empty_like(weight)
    size = columns_of_chunk(weight.shape[1])
    for chunk, order in enumerate(orders):
        own = slice(chunk * size, (chunk + 1) * size)
        ordered[own] = weight[own][..., order]
    placed = np.moveaxis(ordered.reshape(moved.shape), (0, -1), (columns, depth))
    blocks = to_storage(placed, layout.untransformed).ravel()
    return np.concatenate([blocks, shuffles(orders).ravel().view(array.dtype)])


def _parts(layout: Layout) -> list[int]:
    """Return all storage dims in logical order, the coarsest part of a dim first."""
    dims = layout.dims
    return sorted(range(len(dims)), key=lambda place: (dims[place].dim, -dims[place].step))


def _split_shape(shape: Sequence[int], layout: Layout) -> list[int]:
    stored = layout.storage_shape(shape)
    return [stored[place] for place in _parts(layout)]


def _split_positions(layout: Layout) -> list[int]:
    parts = _parts(layout)
    return [parts.index(place) for place in range(len(parts))]
