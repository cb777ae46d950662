"""Boxes: parts of tensors with a first element and an extent along every dim. No IR."""

import math
from collections.abc import Sequence

Range = tuple[int, int]
"""First element and number of elements along one dim."""

Box = tuple[Range, ...]
"""One range per dim of a tensor."""


def whole(shape: Sequence[int]) -> Box:
    """Return the box with all elements of a tensor of this shape."""
    return tuple((0, extent) for extent in shape)


def sizes(box: Box) -> tuple[int, ...]:
    """Return the shape of the tensor that holds the elements of `box`."""
    return tuple(size for _, size in box)


def count(box: Box) -> int:
    """Return how many elements `box` has."""
    return math.prod(size for _, size in box)


def hull(first: Box, second: Box) -> Box:
    """Return the smallest box around two boxes of one tensor."""
    ranges: list[Range] = []
    for (a, a_size), (b, b_size) in zip(first, second, strict=True):
        start = min(a, b)
        ranges.append((start, max(a + a_size, b + b_size) - start))
    return tuple(ranges)


def within(inner: Box, outer: Box) -> Box:
    """Return `inner` counted from the first element of `outer`."""
    return tuple((a - b, size) for (a, size), (b, _) in zip(inner, outer, strict=True))


def is_contiguous(box: Box, shape: Sequence[int]) -> bool:
    """Return whether the elements of `box` are neighbours in a row-major tensor of this shape."""
    ranges = list(zip(sizes(box), shape, strict=True))
    while ranges and ranges[0][0] == 1:
        ranges.pop(0)
    return all(size == extent for size, extent in ranges[1:])


def reshaped(box: Box, shape: Sequence[int], source: Sequence[int]) -> Box | None:
    """Return the box of a tensor of shape `source` that becomes `box` when reshaped to `shape`.

    Both are row-major. The result is None if these elements are not a box.
    """
    found: list[Range] = []
    for own, others in shared_dims(shape, source):
        run = _as_run([box[dim] for dim in own], [shape[dim] for dim in own])
        part = None if run is None else _as_box(run, [source[dim] for dim in others])
        if part is None:
            return None
        found.extend(part)
    return tuple(found)


def shared_dims(a: Sequence[int], b: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Group consecutive dims of two shapes so that the dims of a group hold the same elements.

    Both shapes have equally many elements. All dims form one group if there are no elements.
    """
    if 0 in a:
        return [(list(range(len(a))), list(range(len(b))))]
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(a) or j < len(b):
        left, right = [i] if i < len(a) else [], [j] if j < len(b) else []
        i, j = i + len(left), j + len(right)
        products = [math.prod(a[d] for d in left), math.prod(b[d] for d in right)]
        while products[0] != products[1]:
            if products[0] < products[1]:
                left.append(i)
                products[0] *= a[i]
                i += 1
            else:
                right.append(j)
                products[1] *= b[j]
                j += 1
        groups.append((left, right))
    return groups


def _as_run(box: Sequence[Range], shape: Sequence[int]) -> Range | None:
    """Return the first element and the number of elements of a box, which is contiguous.

    The result is None if its elements are not contiguous in memory.
    """
    if not is_contiguous(tuple(box), shape):
        return None
    start = 0
    for (first, _), extent in zip(box, shape, strict=True):
        start = start * extent + first
    return start, math.prod(size for _, size in box)


def _as_box(run: Range, shape: Sequence[int]) -> list[Range] | None:
    """Return the box with the elements of a run, None if they are no box."""
    start, size = run
    if not shape:
        return []
    for dim in reversed(range(len(shape))):
        row = math.prod(shape[dim + 1 :])
        if start % row or size % row:
            continue
        first, extent = start // row, size // row
        if first % shape[dim] + extent <= shape[dim]:
            ranges = [(0, inner) for inner in shape[dim + 1 :]]
            ranges.insert(0, (first % shape[dim], extent))
            first //= shape[dim]
            for outer in reversed(shape[:dim]):
                ranges.insert(0, (first % outer, 1))
                first //= outer
            return ranges
    return None
