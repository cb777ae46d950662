"""Paddings by their family."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.dialects.braid.movement import PadOp
from braid.lowering.cpu.kernels.pad import PadFamily
from test.machines import HOST

FAMILY = PadFamily(HOST)
sides = st.integers(0, 3)


@settings(max_examples=10, deadline=None)
@given(
    shape=st.tuples(*(st.sampled_from(sizes) for sizes in ([1, 2], [3, 16, 20], [1, 5], [4, 17]))),
    low=st.tuples(st.integers(0, 1), st.integers(0, 2), sides, sides),
    high=st.tuples(st.integers(0, 1), st.just(0), sides, sides),
)
def test_pad(check, shape, low, high) -> None:
    def build(x):
        op = PadOp.get(x, low, high, -1.5)
        return [op], [op.output]

    check(FAMILY, [shape], build)


@pytest.mark.parametrize("channels", [16, 48])
def test_blocks_of_channels(check, channels) -> None:
    def build(x):
        op = PadOp.get(x, (0, 0, 1, 1), (0, 0, 1, 2), 0.0)
        return [op], [op.output]

    check(FAMILY, [(1, channels, 6, 7)], build)
