"""Moving numpy arrays between the logical shape and the storage of a layout."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from braid.dialects.braid.layout import Layout
from braid.dialects.braid.winograd import transformed_windows

Array = npt.NDArray[Any]


def to_storage(array: Array, layout: Layout) -> Array:
    """`array` (logical shape) as `layout` stores it; the tails of padded blocks are zero."""
    if layout.winograd:
        return to_storage(transformed_windows(array, layout.winograd), layout.untransformed)
    padding = [(0, -size % layout.block(dim)) for dim, size in enumerate(array.shape)]
    padded = np.pad(array, padding) if any(high for _, high in padding) else array
    split = padded.reshape(_split_shape(array.shape, layout))
    return np.ascontiguousarray(split.transpose(_split_positions(layout)))


def _parts(layout: Layout) -> list[tuple[int, int]]:
    """(dim, step) of all storage dims in logical order, the coarsest part of a dim first."""
    return sorted(((d.dim, d.step) for d in layout.dims), key=lambda part: (part[0], -part[1]))


def _split_shape(shape: Sequence[int], layout: Layout) -> list[int]:
    extents = dict(
        zip(((d.dim, d.step) for d in layout.dims), layout.storage_shape(shape), strict=True)
    )
    return [extents[part] for part in _parts(layout)]


def _split_positions(layout: Layout) -> list[int]:
    position = {part: i for i, part in enumerate(_parts(layout))}
    return [position[d.dim, d.step] for d in layout.dims]
