"""Convolutions by Winograd's algorithms."""

from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import TensorType, f32

from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.relayout import to_storage
from braid.lowering.cpu.call import CallableKernel
from braid.lowering.cpu.kernels.conv_winograd import ConvWinogradFamily, WinogradSchedule
from braid.targets.kernels.kernel_family import LEVELS
from test.machines import HOST
from test.run.kernels.conftest import KernelCheck, candidate_of, make_group
from test.run.kernels.test_convolution import convolution, shapes_of
from test.schedules import emitted

FAMILY = ConvWinogradFamily(HOST)


@pytest.fixture(scope="module")
def check_sums(check) -> KernelCheck:
    """Compare with the tolerance of sums that cancel."""
    return KernelCheck(tolerance=2e-5)


def shapes(
    batch: int, channels: int, outputs: int, height: int, width: int
) -> list[tuple[int, ...]]:
    """Of the operands, for results of this size."""
    return shapes_of(
        batch, channels, outputs, (height + 2, width + 2), (3, 3), (1, 1), (1, 1), channels
    )


@settings(max_examples=15, deadline=None)
@given(
    batch=st.integers(1, 3),
    channels=st.integers(1, 40),
    outputs=st.integers(1, 40),
    height=st.integers(1, 13),
    width=st.integers(1, 13),
    choice=st.integers(0, 1),
)
def test_any_size(check_sums, batch, channels, outputs, height, width, choice) -> None:
    check_sums(
        FAMILY, shapes(batch, channels, outputs, height, width), convolution(), choices=[choice]
    )


@pytest.mark.parametrize(
    ("planes", "stride", "dilation", "depth", "channels"),
    [(3, 1, 1, 5, 20), (2, 2, 1, 6, 8), (1, 1, 1, 3, 5), (3, 1, 2, 5, 9)],
)
def test_volumes(check_sums, planes, stride, dilation, depth, channels) -> None:
    """Sums over planes, from which the next ones are some steps away."""
    size, window = (depth, 9, 8), (planes, 3, 3)
    steps = (stride, 1, 1), (dilation, 1, 1)
    check_sums(
        FAMILY, shapes_of(2, channels, 20, size, window, *steps, channels), convolution(*steps)
    )


def test_every_schedule(check_sums) -> None:
    """Blocks that end in the middle of an image, parts of the channels, all register tiles."""
    types = [TensorType(f32, shape) for shape in shapes(2, 24, 40, 9, 14)]
    for number, choice in enumerate(candidate_of(FAMILY, make_group(types, convolution())).layouts):
        candidate = candidate_of(FAMILY, make_group(types, convolution(), choice))
        schedules = [s for level in range(LEVELS) for s in islice(candidate.space(level), 5)]
        assert len({schedule.tiles for schedule in schedules}) > 1
        for schedule in schedules[number % 2 :: 2]:  # of all, in the layouts in turn
            check_sums(FAMILY, types, convolution(), choices=[number], schedule=schedule)


def test_calls_of_any_iterations() -> None:
    """Parts of a block share its transformed inputs, in whichever call they are computed."""
    types = [TensorType(f32, shape) for shape in shapes(1, 20, 96, 8, 12)]
    choice = candidate_of(FAMILY, make_group(types, convolution())).layouts[0]
    group = make_group(types, convolution(), choice)
    blocks = -(-96 // choice.operands[1].block(0))
    schedule = {"tiles": 4, "rows": 2, "unroll": 1, "parts": blocks}
    kernel = CallableKernel(emitted(candidate_of(FAMILY, group), schedule))
    generator = np.random.default_rng(0)
    operands = [
        to_storage(generator.standard_normal(shape).astype(np.float32), layout)
        for shape, layout in zip(shapes(1, 20, 96, 8, 12), choice.operands, strict=True)
    ]
    whole, cut = (np.zeros(8 * 12 * 96, np.float32) for _ in range(2))
    kernel(*operands, whole)
    bounds = [0, 1, blocks + 1, 2 * blocks, kernel.grid - 1, kernel.grid]
    for begin, end in reversed([*pairwise(sorted({*bounds}))]):
        kernel.scratch.fill(0xFF)
        kernel(*operands, cut, begin=begin, end=end)
    assert blocks > 1
    assert np.array_equal(whole, cut)


def test_schedules_beside_the_space(check_sums) -> None:
    """Two parts of the channels, with enough blocks for vectors of any width."""
    types = [TensorType(f32, shape) for shape in shapes(1, 8, 384, 8, 8)]
    choice = candidate_of(FAMILY, make_group(types, convolution())).layouts[0]
    candidate = candidate_of(FAMILY, make_group(types, convolution(), choice))
    given = WinogradSchedule(tiles=3, rows=2, unroll=5, parts=2)
    assert candidate.supports_schedule(given)
    check_sums(FAMILY, types, convolution(), choices=[0], schedule=given)
    for wrong in ({"rows": 99}, {"parts": 7}, {"tiles": 0}, {"tiles": 99}, {"unroll": 1000}):
        assert not candidate.supports_schedule(replace(given, **wrong))


def test_input_that_is_read_by_the_epilogue_too(check_sums) -> None:
    def build(x, w):
        conv = ConvOp.get(x, w, strides=(1, 1), dilations=(1, 1), pad_low=(0, 0), pad_high=(0, 0))
        scaled = elementwise("mul", conv.output, conv.output)
        return [conv, scaled], [scaled.output]

    check_sums(FAMILY, [(1, 5, 9, 8), (7, 5, 3, 3)], build)


@pytest.mark.parametrize(
    ("window", "strides", "dilations", "groups"),
    [
        ((3, 3), (2, 1), (1, 1), 1),
        ((3, 3), (1, 1), (1, 2), 1),
        ((3, 3), (1, 1), (1, 1), 2),
        ((3, 1), (1, 1), (1, 1), 1),
        ((5, 5), (1, 1), (1, 1), 1),
        ((3,), (1,), (1,), 1),
        ((3, 3, 3), (1, 2, 1), (1, 1, 1), 1),
        ((3, 1, 3), (1, 1, 1), (1, 1, 1), 1),
    ],
)
def test_other_convolutions_are_left_to_others(window, strides, dilations, groups) -> None:
    size = (12,) * len(window)
    sizes = shapes_of(1, 4, 4, size, window, strides, dilations, 4 // groups)
    group = make_group([TensorType(f32, s) for s in sizes], convolution(strides, dilations, groups))
    assert FAMILY.match(group) is None


def test_errors_are_as_documented() -> None:
    """`docs/numerics.md` gives the distance of results from the exact ones, in f32."""
    errors = {results: [] for results in (2, 4)}
    for seed in range(5):
        types = [TensorType(f32, shape) for shape in ((1, 64, 18, 18), (32, 64, 3, 3))]

        def build(x, w):
            conv = ConvOp.get(
                x, w, strides=(1, 1), dilations=(1, 1), pad_low=(0, 0), pad_high=(0, 0)
            )
            return [conv], [conv.output]

        generator = np.random.default_rng(seed)
        x, w = (generator.standard_normal(t.get_shape()).astype(np.float32) for t in types)
        plain = make_group(types, build)
        for choice in candidate_of(FAMILY, plain).layouts:
            errors[choice.operands[1].winograd].append(_error(types, build, choice, x, w))
    assert max(errors[2]) <= 2e-6 and max(errors[4]) <= 5e-6


def _error(types, build, choice, x, w) -> float:
    """‖y − exact‖∞ / ‖exact‖∞ of the kernel in `choice`."""
    group = make_group(types, build, choice)
    candidate = candidate_of(FAMILY, group)
    kernel = CallableKernel(candidate.emit("kernel", next(candidate.space(0))))
    (op, _) = group.body.block.ops
    (exact,) = op.evaluate(x.astype(np.float64), w.astype(np.float64))
    result = np.zeros(to_storage(exact, choice.results[0]).shape, np.float32)
    kernel(*(to_storage(a, tag) for a, tag in zip((x, w), choice.operands, strict=True)), result)
    stored = to_storage(exact, choice.results[0])
    return float(np.abs(result - stored).max() / np.abs(stored).max())
