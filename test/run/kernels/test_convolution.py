"""Convolutions by the direct, the depthwise and the grouped family."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import elementwise
from braid.lowering.cpu.kernels.conv_depthwise import ConvDepthwiseFamily
from braid.lowering.cpu.kernels.conv_direct import ConvDirectFamily
from braid.lowering.cpu.kernels.conv_grouped import ConvGroupedFamily
from test.machines import HOST
from test.run.kernels.conftest import make_group
from test.run.kernels.test_tiled import tensors

DIRECT, DEPTHWISE = ConvDirectFamily(HOST), ConvDepthwiseFamily(HOST)
GROUPED = ConvGroupedFamily(HOST)
WHOLE_GROUPS = [count for count in (1, 2, 4, 8) if count < GROUPED.unit.lanes]
"""Outputs of a group, for which vectors have whole groups."""


def convolution(strides=(1, 1), dilations=(1, 1), groups=1):
    def build(x, w, bias, residual):
        conv = ConvOp.get(
            x, w, strides=strides, dilations=dilations, pad_low=[0] * len(strides),
            pad_high=[0] * len(strides), groups=groups,
        )  # fmt: skip
        biased = elementwise("add", conv.output, bias)
        sum = elementwise("add", biased.output, residual)
        relu = elementwise("maximum", sum.output, bias)
        return [conv, biased, sum, relu], [relu.output]

    return build


def shapes_of(batch, channels, outputs, size, window, strides, dilations, depth):
    out = [
        (extent - dilation * (taps - 1) - 1) // stride + 1
        for extent, taps, stride, dilation in zip(size, window, strides, dilations, strict=True)
    ]
    return [
        (batch, channels, *size),
        (outputs, depth, *window),
        (1, outputs, *(1 for _ in size)),
        (batch, outputs, *out),
    ]


extents = st.tuples(st.integers(5, 12), st.integers(5, 20))
windows = st.tuples(st.integers(1, 3), st.integers(1, 3))
steps = st.tuples(st.integers(1, 2), st.integers(1, 2))


@settings(max_examples=12, deadline=None)
@given(
    batch=st.integers(1, 2),
    channels=st.integers(1, 9),
    outputs=st.integers(1, 40),
    size=extents,
    window=windows,
    strides=steps,
    dilations=steps,
    choice=st.integers(0, 4),
)
def test_direct(check, batch, channels, outputs, size, window, strides, dilations, choice) -> None:
    shapes = shapes_of(batch, channels, outputs, size, window, strides, dilations, channels)
    check(DIRECT, shapes, convolution(strides, dilations), choices=[choice])


@pytest.mark.parametrize(
    ("channels", "outputs", "window", "strides"),
    [
        (32, 32, (2, 3), (1, 1)),
        (32, 16, (1, 1), (2, 1)),
        (16, 7, (1, 1), (1, 1)),
        (3, 48, (2, 3), (2, 2)),
    ],
)
def test_direct_in_all_layouts(check, channels, outputs, window, strides) -> None:
    shapes = shapes_of(2, channels, outputs, (6, 21), window, strides, (1, 1), channels)
    check(DIRECT, shapes, convolution(strides))


@pytest.mark.parametrize(
    ("groups", "depth", "outputs"), [(2, 16, 32), (3, 5, 3), (3, 1, 2), (2, 4, 1), (2, 3, 70)]
)
def test_grouped_in_all_layouts(check, groups, depth, outputs) -> None:
    shapes = shapes_of(1, groups * depth, groups * outputs, (4, 9), (2, 2), (1, 1), (1, 1), depth)
    check(DIRECT, shapes, convolution(groups=groups))


def test_grouped_pointwise_of_one_pixel(check) -> None:
    check(DIRECT, shapes_of(1, 8, 20, (1, 1), (1, 1), (1, 1), (1, 1), 4), convolution(groups=2))


@settings(max_examples=10, deadline=None)
@given(
    batch=st.integers(1, 2),
    channels=st.integers(2, 40),
    size=extents,
    window=windows,
    strides=steps,
    dilations=steps,
)
def test_depthwise(check, batch, channels, size, window, strides, dilations) -> None:
    shapes = shapes_of(batch, channels, channels, size, window, strides, dilations, 1)
    check(DEPTHWISE, shapes, convolution(strides, dilations, channels))


def test_pointwise_convolution_is_one_product(check) -> None:
    shapes = shapes_of(2, 8, 24, (5, 7), (1, 1), (1, 1), (1, 1), 8)
    check(DIRECT, shapes, convolution())


def test_depthwise_in_blocks(check) -> None:
    shapes = shapes_of(2, 48, 48, (6, 9), (3, 3), (1, 1), (1, 1), 1)
    check(DEPTHWISE, shapes, convolution(groups=48))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("width", [17, 71, 140])
def test_depthwise_along_long_lines(check, stride, width) -> None:
    shapes = shapes_of(2, 3, 3, (4, width), (2, 3), (2, stride), (1, 1), 1)
    check(DEPTHWISE, shapes, convolution((2, stride), groups=3))


@pytest.mark.parametrize("width", [3, 20])
def test_wide_windows(check, width) -> None:
    shapes = shapes_of(1, 18, 18, (4, 25), (2, width), (1, 1), (1, 1), 1)
    check(DEPTHWISE, shapes, convolution(groups=18))
    check(DIRECT, shapes_of(1, 3, 18, (4, 25), (2, width), (1, 1), (1, 1), 3), convolution())


@pytest.mark.parametrize(
    ("size", "window", "strides", "dilations"),
    [
        ((41,), (5,), (1,), (3,)),
        ((33,), (1,), (2,), (1,)),
        ((5, 6, 19), (2, 3, 2), (1, 2, 1), (2, 1, 1)),
        ((4, 3, 5), (1, 1, 1), (1, 1, 1), (1, 1, 1)),
    ],
)
@pytest.mark.parametrize(("groups", "depth", "outputs"), [(1, 6, 37), (1, 16, 32), (2, 5, 8)])
def test_lines_and_volumes(check, size, window, strides, dilations, groups, depth, outputs) -> None:
    outputs, channels = groups * outputs, groups * depth
    shapes = shapes_of(2, channels, outputs, size, window, strides, dilations, depth)
    check(DIRECT, shapes, convolution(strides, dilations, groups))


@pytest.mark.parametrize(
    ("size", "window", "strides", "dilations"),
    [
        ((41,), (4,), (1,), (3,)),
        ((90,), (3,), (2,), (1,)),
        ((5, 6, 19), (2, 3, 2), (1, 2, 1), (2, 1, 1)),
    ],
)
def test_depthwise_lines_and_volumes(check, size, window, strides, dilations) -> None:
    shapes = shapes_of(2, 35, 35, size, window, strides, dilations, 1)
    check(DEPTHWISE, shapes, convolution(strides, dilations, 35))


@pytest.mark.parametrize(("size", "stride"), [((70, 71), 1), ((141, 90), 2), ((4099,), 1)])
def test_depthwise_beyond_the_second_cache(check, size, stride) -> None:
    """All channels of a tile one after the other, with those that fill no block."""
    steps, ones = (stride,) * len(size), (1,) * len(size)
    shapes = shapes_of(1, 70, 70, size, (3,) * len(size), steps, ones, 1)
    check(DEPTHWISE, shapes, convolution(steps, ones, 70))


@settings(max_examples=15, deadline=None)
@given(
    batch=st.integers(1, 2),
    groups=st.integers(2, 21),
    outputs=st.sampled_from(WHOLE_GROUPS),
    share=st.integers(1, 16),
    size=extents,
    window=windows,
    strides=steps,
    dilations=steps,
)
def test_few_channels(check, batch, groups, outputs, share, size, window, strides, dilations):
    """Of up to two inputs for each output of a group."""
    depth = 1 + share % (2 * outputs) if outputs > 1 else 2
    channels = groups * depth
    shapes = shapes_of(batch, channels, groups * outputs, size, window, strides, dilations, depth)
    check(GROUPED, shapes, convolution(strides, dilations, groups))


@pytest.mark.parametrize("vectors", [1, 2, 4])
@pytest.mark.parametrize(("groups", "depth", "outputs"), [(12, 4, 4), (17, 2, 2), (40, 2, 1)])
def test_tiles_of_few_channels(check, groups, depth, outputs, vectors) -> None:
    shapes = shapes_of(1, groups * depth, groups * outputs, (5, 9), (3, 3), (1, 1), (1, 1), depth)
    schedule = {"columns": 3, "vectors": vectors}
    check(GROUPED, shapes, convolution(groups=groups), schedule=schedule)


@pytest.mark.parametrize(
    ("size", "window", "strides"), [((41,), (20,), (1,)), ((5, 6, 19), (2, 3, 2), (1, 2, 1))]
)
def test_few_channels_in_lines_and_volumes(check, size, window, strides) -> None:
    shapes = shapes_of(2, 36, 36, size, window, strides, (1,) * len(size), 2)
    check(GROUPED, shapes, convolution(strides, (1,) * len(size), 18))


def test_few_channels_beyond_the_second_cache(check) -> None:
    shapes = shapes_of(1, 68, 68, (70, 71), (3, 3), (1, 1), (1, 1), 2)
    check(GROUPED, shapes, convolution(groups=34))


@pytest.mark.parametrize(("depth", "outputs"), [(1, 1), (4, 64), (4, 3), (5, 2)])
def test_groups_that_vectors_have_no_whole_ones_of(depth, outputs) -> None:
    """One channel each, more than a vector, in parts, or of too many inputs."""
    shapes = shapes_of(1, 4 * depth, 4 * outputs, (5, 9), (1, 1), (1, 1), (1, 1), depth)
    assert GROUPED.match(make_group(tensors(shapes), convolution(groups=4))) is None
