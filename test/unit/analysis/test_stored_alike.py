"""Layouts that differ in the place of dims of extent 1 store a tensor alike."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from braid.analysis.storage.tensor_storage import stored_alike
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.relayout import to_storage

TAGS = ["abcd", "acdb", "adcb", "bacd", "aBcd4b", "Abcd4a", "acdB4b", "ABcd2a4b"]


@pytest.mark.parametrize(
    ("shape", "first", "second", "expected"),
    [
        ((1, 8, 1, 1), "abcd", "acdb", True),
        ((1, 8, 1, 2), "abcd", "acdb", False),
        ((1, 8, 1, 2), "acdb", "adcb", True),
        ((1, 4, 3, 3), "acdb", "aBcd4b", True),
        ((1, 8, 3, 3), "acdb", "aBcd4b", False),
    ],
)
def test_examples(shape: tuple[int, ...], first: str, second: str, expected: bool) -> None:
    assert stored_alike(shape, Layout.parse(first), Layout.parse(second)) is expected


@given(
    st.tuples(*[st.sampled_from([1, 2, 4, 5])] * 4), st.sampled_from(TAGS), st.sampled_from(TAGS)
)
def test_what_is_stored_alike_has_the_same_bytes(
    shape: tuple[int, ...], first: str, second: str
) -> None:
    values = np.arange(1, 1 + math.prod(shape)).reshape(shape)
    layouts = Layout.parse(first), Layout.parse(second)
    a, b = (to_storage(values, layout).ravel() for layout in layouts)
    if stored_alike(shape, *layouts):
        np.testing.assert_array_equal(a, b)
    elif max(shape) > 2 and all(layout.is_permutation for layout in layouts):
        # For blocks, whose parts may be contiguous, the answer may be unknown.
        assert not np.array_equal(a, b)
