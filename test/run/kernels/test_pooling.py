"""Pooling by its family."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.dialects.braid.pooling import PoolOp
from braid.lowering.cpu.kernels.pooling import PoolFamily

FAMILY = PoolFamily()


@pytest.mark.parametrize("kind", ["max", "add"])
@settings(max_examples=8, deadline=None)
@given(
    batch=st.integers(1, 2),
    channels=st.integers(1, 40),
    size=st.tuples(st.integers(5, 12), st.integers(5, 20)),
    window=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    strides=st.tuples(st.integers(1, 2), st.integers(1, 2)),
)
def test_pool(check, kind, batch, channels, size, window, strides) -> None:
    def build(x):
        op = PoolOp.get(
            x, kind, window, strides=strides, dilations=(1, 1), pad_low=(0, 0), pad_high=(0, 0)
        )
        return [op], [op.output]

    check(FAMILY, [(batch, channels, *size)], build)


def test_whole_image(check) -> None:
    def build(x):
        op = PoolOp.get(
            x, "add", (7, 18), strides=(1, 1), dilations=(1, 1), pad_low=(0, 0), pad_high=(0, 0)
        )
        return [op], [op.output]

    check(FAMILY, [(2, 33, 7, 18)], build)
