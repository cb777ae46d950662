"""Loop dims, their strides and how they merge."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.analysis.nests.dims import (
    LoopDim,
    merged,
    row_major_strides,
    strides_along,
)
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.relayout import to_storage


def offsets(dims, tensor):
    """Return the offsets of one tensor over the whole nest, in loop order."""
    ranges = (range(dim.extent) for dim in dims)
    return [
        sum(i * dim.strides[tensor] for i, dim in zip(index, dims, strict=True))
        for index in itertools.product(*ranges)
    ]


FLAG = st.sampled_from([0, 1])


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), FLAG, FLAG), max_size=5))
def test_merging_keeps_every_offset(spec) -> None:
    shape = [extent for extent, _, _ in spec]
    strides = row_major_strides(shape)
    dims = [LoopDim(e, (s * a, s * b)) for (e, a, b), s in zip(spec, strides, strict=True)]
    result = merged(dims)
    assert all(dim.extent > 1 for dim in result)
    for tensor in (0, 1):
        assert offsets(result, tensor) == offsets(dims, tensor)


def test_contiguous_dims_become_one() -> None:
    assert merged([LoopDim(2, (35, 0)), LoopDim(5, (7, 0)), LoopDim(7, (1, 0))]) == (
        LoopDim(70, (1, 0)),
    )


@pytest.mark.parametrize(
    ("layout", "order"),
    [("abcd", "abcd"), ("acdb", "acdb"), ("abcd", "acdb"), ("aBcd4b", "aBcd4b"),
     ("abcd", "aBcd4b"), ("dcba", "aBcd4b")],
)  # fmt: skip
def test_strides_lead_to_the_elements(layout, order) -> None:
    shape = (2, 8, 3, 5)
    source, target = Layout.parse(layout), Layout.parse(order)
    array = np.arange(np.prod(shape)).reshape(shape)
    strides = strides_along(shape, source, target)
    assert strides is not None
    extents = target.storage_shape(shape)
    dims = [LoopDim(e, (s,)) for e, s in zip(extents, strides, strict=True)]
    read = to_storage(array, source).ravel()[offsets(dims, 0)]
    np.testing.assert_array_equal(read, to_storage(array, target).ravel())


def test_repeated_dims_do_not_move() -> None:
    plain = Layout.row_major(3)
    assert strides_along((1, 4, 1), plain, plain) == (0, 1, 0)


def test_blocks_have_no_stride_along_an_unblocked_dim() -> None:
    assert strides_along((2, 8), Layout.parse("aB4b"), Layout.row_major(2)) is None
