"""Pooling by its family."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import TensorType, f32

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.windows import Windows
from braid.lowering.cpu.kernels.pooling import PoolFamily
from braid.lowering.cpu.kernels.windows.combination import combinations, pixels_to_share
from test.machines import AVX512, HOST
from test.run.kernels.conftest import candidate_of, make_group
from test.schedules import emitted

FAMILY = PoolFamily(HOST)


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


@pytest.mark.parametrize("kind", ["max", "add"])
@settings(max_examples=8, deadline=None)
@given(
    channels=st.integers(1, 40),
    window=st.tuples(st.integers(2, 9), st.integers(2, 14)),
    stride=st.integers(1, 3),
    dilation=st.integers(1, 2),
    width=st.integers(0, 20),
)
def test_windows_that_overlap(check, kind, channels, window, stride, dilation, width) -> None:
    """Columns are combined once for the outputs of a tile, where there are registers for them."""

    def build(x):
        op = PoolOp.get(
            x, kind, window, strides=(1, stride), dilations=(1, dilation), pad_low=(0, 0),
            pad_high=(0, 0),
        )  # fmt: skip
        return [op], [op.output]

    check(FAMILY, [(1, channels, window[0] + 1, (window[1] - 1) * dilation + 1 + width)], build)


@pytest.mark.parametrize(
    ("window", "stride", "dilation", "columns"),
    [(3, 1, 1, 4), (5, 1, 1, 8), (9, 1, 1, 8), (5, 1, 2, 4), (3, 2, 1, 8), (2, 2, 1, 4)],
)
def test_combinations_are_as_many_as_said(window, stride, dilation, columns) -> None:
    """The operations in the code of a tile; a loop over the lines of a window counts once."""

    def build(x):
        op = PoolOp.get(
            x, "max", (window, window), strides=(1, stride), dilations=(1, dilation),
            pad_low=(0, 0), pad_high=(0, 0),
        )  # fmt: skip
        return [op], [op.output]

    width = (columns - 1) * stride + (window - 1) * dilation + 1
    types = [TensorType(f32, (1, 16, window + 3, width))]
    family = PoolFamily(AVX512)
    choice = candidate_of(family, make_group(types, build)).layouts[0]
    candidate = candidate_of(family, make_group(types, build, choice))
    kernel = emitted(candidate, {"columns": columns, "vectors": 1}, symbol="pool")
    maxima = str(kernel.module).count("arith.cmpf ogt") // 2  # Each maximum compares both ways.
    windows = Windows((window, window), (1, stride), (1, dilation), (0, 0), (0, 0))
    pixels = pixels_to_share(windows, columns)
    shared = 0 if pixels is None else columns * (window - 1)
    said = combinations(windows, columns, pixels)
    assert (maxima - shared) * window + shared == said
    assert said <= columns * window * window


def test_whole_image(check) -> None:
    def build(x):
        op = PoolOp.get(
            x, "add", (7, 18), strides=(1, 1), dilations=(1, 1), pad_low=(0, 0), pad_high=(0, 0)
        )
        return [op], [op.output]

    check(FAMILY, [(2, 33, 7, 18)], build)


@pytest.mark.parametrize("kind", ["add", "maximum", "minimum", "mul"])
@pytest.mark.parametrize("shape", [(2, 65, 7, 9), (1, 288, 3, 4), (2, 64, 1, 1), (1, 70, 21)])
def test_reduction_of_images(check, kind, shape) -> None:
    def build(x):
        op = ReduceOp.get(x, kind, range(2, len(shape)))
        scaled = elementwise("neg", op.output)
        return [op, scaled], [scaled.results[0]]

    check(FAMILY, [shape], build)


@pytest.mark.parametrize("dims", [[1], [2], [1, 2, 3], [0, 2, 3]])
def test_reductions_of_other_dims_are_left(dims) -> None:
    def build(x):
        op = ReduceOp.get(x, "add", dims)
        return [op], [op.output]

    assert FAMILY.match(make_group([TensorType(f32, (1, 64, 9, 9))], build)) is None


def test_lines_of_whole_images_are_one_loop() -> None:
    """Also in blocks of channels; the result lies as row-major does, whatever the layout."""

    def build(x):
        op = ReduceOp.get(x, "add", [2, 3])
        return [op], [op.output]

    types = [TensorType(f32, (1, 64, 9, 11))]
    for choice in candidate_of(PoolFamily(AVX512), make_group(types, build)).layouts:
        assert choice.results[0].is_row_major
        candidate = candidate_of(PoolFamily(AVX512), make_group(types, build, choice))
        kernel = candidate.emit("pool", next(candidate.space(0)))
        assert str(kernel.module).count("scf.for") == 2, "the grid, and 99 pixels"


@pytest.mark.parametrize(("kind", "stride"), [("max", 1), ("add", 2)])
@pytest.mark.parametrize("width", [17, 71, 140])
def test_long_lines(check, kind, stride, width) -> None:
    def build(x):
        op = PoolOp.get(
            x, kind, (2, 3), strides=(1, stride), dilations=(1, 2), pad_low=(0, 0), pad_high=(0, 0)
        )
        return [op], [op.output]

    check(FAMILY, [(1, 16, 4, width)], build)


@pytest.mark.parametrize("kind", ["max", "add"])
@pytest.mark.parametrize(
    ("size", "window", "strides"), [((70,), (3,), (2,)), ((5, 6, 21), (2, 3, 3), (2, 1, 2))]
)
def test_lines_and_volumes(check, kind, size, window, strides) -> None:
    def build(x):
        none, ones = [0] * len(size), [1] * len(size)
        op = PoolOp.get(
            x, kind, window, strides=strides, dilations=ones, pad_low=none, pad_high=none
        )
        return [op], [op.output]

    check(FAMILY, [(2, 19, *size)], build)


@pytest.mark.parametrize(("kind", "channels"), [("max", 32), ("add", 71)])
@pytest.mark.parametrize("size", [(46, 90), (4099,)])
def test_images_beyond_the_second_cache(check, kind, channels, size) -> None:
    """All channels of a tile one after the other, with those that fill no block."""
    batch = -(-(5 << 18) // (4 * channels * math.prod(size)))

    def build(x):
        ones = [1] * len(size)
        op = PoolOp.get(
            x, kind, [3] * len(size), strides=[2] * len(size), dilations=ones,
            pad_low=[0] * len(size), pad_high=[0] * len(size),
        )  # fmt: skip
        return [op], [op.output]

    check(FAMILY, [(batch, channels, *size)], build)


def test_lines_are_offered_for_small_strides() -> None:
    def pool(stride):
        def build(x):
            op = PoolOp.get(
                x, "max", (2, 2), strides=(3, stride), dilations=(1, 1), pad_low=(0, 0),
                pad_high=(0, 0),
            )  # fmt: skip
            return [op], [op.output]

        return make_group([TensorType(f32, (1, 16, 9, 9))], build)

    tags = [
        [choice.results[0].tag for choice in candidate_of(PoolFamily(AVX512), pool(s)).layouts]
        for s in (1, 2, 3)
    ]
    assert tags == [["acdb", "aBcd16b", "abcd"]] * 2 + [["acdb", "aBcd16b"]]


@pytest.mark.parametrize(("size", "grid"), [((7, 7), 13), ((40, 40), 34), ((140,), 34)])
def test_channels_are_in_the_grid_where_lines_are_few(size, grid) -> None:
    """Threads share the iterations of the grid: a mean of whole images has one line."""

    def build(x):
        none, ones = [0] * len(size), [1] * len(size)
        op = PoolOp.get(
            x, "add", [7] * len(size), strides=ones, dilations=ones, pad_low=none, pad_high=none
        )
        return [op], [op.output]

    last = Layout.channels_last(2 + len(size))
    choice = LayoutChoice((last,), (last,))
    group = make_group([TensorType(f32, (1, 400, *size))], build, choice)
    kernel = emitted(
        candidate_of(PoolFamily(AVX512), group), {"columns": 4, "vectors": 2}, symbol="pool"
    )
    assert kernel.grid == grid
