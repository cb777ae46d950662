"""Boxes against numpy's index arithmetic."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from braid.dialects.braid.boxes import (
    count,
    hull,
    is_contiguous,
    reshaped,
    shared_dims,
    sizes,
    whole,
    within,
)

EXTENTS = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@st.composite
def boxes(draw, shape):
    found = []
    for extent in shape:
        start = draw(st.integers(0, extent - 1))
        found.append((start, draw(st.integers(1, extent - start))))
    return tuple(found)


def elements(box, shape):
    """Row-major numbers of the elements of a box."""
    numbers = np.arange(np.prod(shape)).reshape(shape)
    return numbers[tuple(slice(start, start + size) for start, size in box)]


@given(st.data(), EXTENTS)
def test_contiguous_boxes_have_consecutive_numbers(data, shape):
    box = data.draw(boxes(shape))
    numbers = elements(box, shape).reshape(-1)
    assert is_contiguous(box, shape) == bool((np.diff(numbers) == 1).all())


@given(st.data(), EXTENTS)
def test_a_reshaped_box_has_the_same_elements(data, factors):
    """Joining neighbours of `factors` gives two shapes of the same elements."""
    shapes = []
    for _ in range(2):
        shape, joined = [], 1
        for factor in factors:
            joined *= factor
            if data.draw(st.booleans()):
                shape.append(joined)
                joined = 1
        shapes.append([*shape, joined])
    shape, source = shapes
    box = data.draw(boxes(shape))
    found = reshaped(box, shape, source)
    if found is not None:
        assert (elements(found, source).reshape(-1) == elements(box, shape).reshape(-1)).all()
    elif is_contiguous(box, shape) and count(box) == 1:
        raise AssertionError("one element is a box under every shape")


def test_whole_and_rows_are_boxes_under_other_shapes():
    assert reshaped(whole([6, 5]), [6, 5], [2, 3, 5]) == ((0, 2), (0, 3), (0, 5))
    assert reshaped(((3, 3), (0, 5)), [6, 5], [2, 3, 5]) == ((1, 1), (0, 3), (0, 5))
    assert reshaped(((1, 2), (0, 5)), [6, 5], [2, 3, 5]) == ((0, 1), (1, 2), (0, 5))
    assert reshaped(((4, 1), (1, 3)), [6, 5], [2, 3, 5]) == ((1, 1), (1, 1), (1, 3))


def test_rows_across_a_border_are_no_box():
    assert reshaped(((2, 2), (0, 5)), [6, 5], [2, 3, 5]) is None
    assert reshaped(((0, 2), (0, 3)), [2, 5], [10]) is None


def test_hull_and_within():
    box = hull(((1, 2), (0, 3)), ((4, 1), (2, 3)))
    assert box == ((1, 4), (0, 5))
    assert within(((4, 1), (2, 3)), box) == ((3, 1), (2, 3))
    assert sizes(box) == (4, 5)


def test_dims_without_elements_are_one_group():
    assert shared_dims([0, 4], [2, 0]) == [([0, 1], [0, 1])]
    assert shared_dims([2, 6], [2, 3, 2]) == [([0], [0]), ([1], [1, 2])]
