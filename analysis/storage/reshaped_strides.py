"""Strides of a piece of memory when it is seen in another shape. No IR."""

import math
from collections.abc import Sequence

Dim = tuple[int, int]
"""Extent and stride."""


def reshaped_strides(
    shape: Sequence[int], strides: Sequence[int], target: Sequence[int]
) -> tuple[int, ...] | None:
    """Return the strides of row-major `target` in the memory of `shape`; None if no
    single strides describe it.

    Dims that are contiguous in memory are merged; each merged dim must be a product of
    neighbouring target dims.
    """
    if math.prod(shape) != math.prod(target) or math.prod(shape) == 0:
        return None
    runs = _merged(list(zip(shape, strides, strict=True)))
    result: list[int] = []
    for extent in reversed(target):
        if extent == 1:
            result.append(0)
            continue
        left, stride = runs.pop()
        if left % extent:
            return None
        result.append(stride)
        if left != extent:
            runs.append((left // extent, stride * extent))
    return tuple(reversed(result))


def _merged(dims: Sequence[Dim]) -> list[Dim]:
    """Return the fewest dims that are the same walk through memory, none of extent 1."""
    result: list[Dim] = []
    for extent, stride in dims:
        if extent == 1:
            continue
        if result and result[-1][1] == extent * stride:
            outer, _ = result.pop()
            extent *= outer
        result.append((extent, stride))
    return result
