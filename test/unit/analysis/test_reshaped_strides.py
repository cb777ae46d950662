"""Strides of reshaped views, against numpy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from braid.analysis.storage.reshaped_strides import reshaped_strides


@st.composite
def reshapes(draw: st.DrawFn) -> tuple[np.ndarray, list[int]]:
    """Return a box inside of an array, and another shape with as many elements."""
    factors = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    shape = [f + draw(st.integers(0, 1)) for f in factors]
    whole = np.arange(int(np.prod(shape))).reshape(shape)
    box = whole[tuple(slice(0, f) for f in factors)]
    target: list[int] = []
    for factor in factors:
        if target and draw(st.booleans()):
            target[-1] *= factor
        else:
            target.append(factor)
    if draw(st.booleans()):
        target.insert(draw(st.integers(0, len(target))), 1)
    return box, target


@given(reshapes())
def test_same_elements_as_a_reshape(case: tuple[np.ndarray, list[int]]) -> None:
    box, target = case
    strides = reshaped_strides(box.shape, [s // box.itemsize for s in box.strides], target)
    if strides is None:
        assert not np.shares_memory(box, box.reshape(target))
        return
    steps = [stride * box.itemsize for stride in strides]
    view = np.lib.stride_tricks.as_strided(box, target, steps)
    np.testing.assert_array_equal(view, box.reshape(target))


def test_another_number_of_elements_has_no_strides() -> None:
    assert reshaped_strides([2, 3], [3, 1], [5]) is None
