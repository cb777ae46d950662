"""Gathers at positions that are known, by their family."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import IntegerType, Signedness, TensorType, bf16, f32, f64, i8, i64

from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.indexing import GatherOp
from braid.lowering.cpu.kernels.known_gather import KnownGatherFamily
from test.machines import HOST
from test.run.kernels.conftest import make_group

FAMILY = KnownGatherFamily(HOST)


def gathers(*steps):
    """Return a function that builds a chain of gathers, each a dim and its positions."""

    def build(x):
        ops = []
        for dim, positions in steps:
            constant = ConstantOp.of(np.array(positions, np.int64))
            gather = GatherOp.get(x, constant.output, dim)
            ops += [constant, gather]
            x = gather.output
        return ops, [x]

    return build


@settings(max_examples=50, deadline=None)
@given(
    shape=st.lists(st.sampled_from([1, 2, 3, 8, 17, 40]), min_size=1, max_size=4),
    mode=st.sampled_from(["reflect", "symmetric", "edge", "wrap"]),
    widths=st.lists(st.integers(0, 9), min_size=8, max_size=8),
    dims=st.sets(st.integers(0, 3), min_size=1),
    type=st.sampled_from([f32, f64, bf16, i8, i64, IntegerType(32, Signedness.UNSIGNED)]),
)
def test_paddings(check, shape, mode, widths, dims, type) -> None:
    steps = []
    for dim in sorted({dim % len(shape) for dim in dims}):
        extent = shape[dim]
        low, high = (min(width, extent - 1) for width in widths[2 * dim : 2 * dim + 2])
        steps.append((dim, np.pad(np.arange(extent), (low, high), mode=mode)))
    check(FAMILY, [TensorType(type, shape)], gathers(*steps))


@pytest.mark.parametrize("inner", [1, 3, 20])
@pytest.mark.parametrize(
    "positions",
    [[0], [-1, -2, -3], [4, 4, 4, 0, 2, 4, -5, 1], [5, 3, 1], [0, 1, 2, 3, 4, 5, 5, 0]],
)
def test_progressions(check, positions, inner: int) -> None:
    """Steps of any size, single ones, and such that count from the end."""
    check(FAMILY, [[2, 6, inner]], gathers((1, positions)))


def test_a_part_of_an_inner_dim(check) -> None:
    """One run along it, behind a dim of several."""
    check(FAMILY, [[3, 4, 5]], gathers((1, [1, 2]), (0, [0, 2, 1])))
    check(FAMILY, [[3, 4, 5]], gathers((2, [4, 2, 0]), (0, [0, 2, 1])))


def test_one_dim_twice(check) -> None:
    check(FAMILY, [[5, 20]], gathers((1, [3, 2, 1, 0, 5, 6, 7]), (1, [6, 5, 4, 0, 1])))


def test_what_is_left_to_others() -> None:
    """Positions without order, none, and such that are not along one dim."""
    for positions in ([0, 5, 1, 4, 2, 2] * 3, [], [[0, 1], [2, 3]]):
        group = make_group([TensorType(f32, [2, 6])], gathers((1, positions)))
        assert FAMILY.match(group) is None
