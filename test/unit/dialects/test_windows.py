"""Convolution and pooling over random windows: loop nests, parts and numpy agree."""

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region
from xdsl.utils.exceptions import VerifyException

from braid.analysis.interpreter import interpret
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.decomposition import decompose_all
from braid.dialects.braid.dtypes import from_numpy
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.transposed_convolution import ConvTransposeOp
from braid.dialects.braid.windows import Windows as Window
from braid.dialects.braid.windows import padded_windows
from test.unit.dialects.loop_nests import run_structure

Windows = dict[str, list[int]]


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[int], list[int], Windows, int]:
    """Spatial extents, window, strides with dilations and padding, and groups."""
    rank = draw(st.integers(1, 2))

    def numbers(low: int, high: int) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank))

    windows = {"strides": numbers(1, 3), "dilations": numbers(1, 3)}
    windows |= {"pad_low": numbers(0, 2), "pad_high": numbers(0, 2)}
    return numbers(1, 5), numbers(1, 3), windows, draw(st.integers(1, 2))


def block_for(*arrays: np.ndarray) -> Block:
    return Block(arg_types=[TensorType(from_numpy(x.dtype), x.shape) for x in arrays])


def integers(*shape: int) -> np.ndarray:
    """Small integers as floats: their sums are exact, in any order."""
    return (np.arange(np.prod(shape)) * 7 % 11 - 5).reshape(shape).astype(np.float32)


def built(build, *arguments, **options) -> TensorOp:
    """Return the op, if its result is not empty."""
    try:
        return build(*arguments, **options)
    except VerifyException:
        assume(False)
        raise


@settings(max_examples=60, deadline=None)
@given(problems())
def test_conv_and_pool(problem: tuple[list[int], list[int], Windows, int]) -> None:
    spatial, window, windows, groups = problem
    x, w = integers(1, 2, *spatial), integers(2, 2 // groups, *window)
    block = block_for(x, w)
    conv = built(ConvOp.get, *block.args, **windows, groups=groups)
    assert np.array_equal(run_structure(conv, [x, w])[0], conv.evaluate(x, w)[0])
    for kind in ("max", "add"):
        pool = PoolOp.get(block.args[0], kind, window, **windows)
        assert np.array_equal(run_structure(pool, [x])[0], pool.evaluate(x)[0])


_PLAIN = {"dilations": [1, 1], "pad_low": [1, 2], "pad_high": [0, 1]}
_ONE_DIM = {"strides": [1], "dilations": [1], "pad_low": [2], "pad_high": [0]}


@settings(max_examples=120, deadline=None)
@example(([1], [1], _ONE_DIM, 1), [2], False, False)
@example(([3, 4], [3, 2], {"strides": [2, 3], **_PLAIN}, 1), [1, 0], True, True)
@example(([5, 3], [7, 8], {"strides": [3, 4], **_PLAIN}, 2), [0, 2], True, True)
@given(
    problems(), st.lists(st.integers(0, 2), min_size=2, max_size=2), st.booleans(), st.booleans()
)
def test_conv_transpose(
    problem: tuple[list[int], list[int], Windows, int],
    output_padding: list[int],
    finite_weight: bool,
    infinite_input: bool,
) -> None:
    """Known finite values take another path; an infinite input spreads no NaN on it."""
    spatial, window, windows, groups = problem
    x, w = integers(1, 2, *spatial), integers(2, 2, *window)
    if infinite_input:
        x[(0, 0, *(extent // 2 for extent in spatial))] = np.inf
    block = block_for(x, w)
    extra = output_padding[: len(spatial)]
    options = {**windows, "output_padding": extra, "groups": groups}
    options["finite_weight"] = finite_weight
    op = built(ConvTransposeOp.get, *block.args, **options)
    expected = op.evaluate(x, w)[0]
    block.add_ops([op, ReturnOp(op.output)])
    function = FuncOp("main", (block.arg_types, [op.output.type]), Region(block))
    module = ModuleOp([function])
    decompose_all(module)
    module.verify()
    with np.errstate(invalid="ignore"):
        found = interpret(module, [x, w])[0]
    np.testing.assert_array_equal(found, expected)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_clipped_windows_read_the_same(data: st.DataObject) -> None:
    """And no more than padding at their ends, where the dilation is 1."""

    def number(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    extent, size, low, high = number(1, 4), number(1, 12), number(0, 9), number(0, 9)
    stride, dilation = number(1, 5), number(1, 3)
    windows = Window((size,), (stride,), (dilation,), (low,), (high,))
    assume(extent + low + high >= dilation * (size - 1) + 1)
    clipped = windows.clipped([extent])
    assert clipped.output_shape([extent]) == windows.output_shape([extent])
    x = 1 + np.arange(extent).reshape(1, 1, extent)
    read, fewer = padded_windows(x, windows, 0)[0, 0], padded_windows(x, clipped, 0)[0, 0]
    for all_of, kept in zip(read, fewer, strict=True):
        assert [n for n in all_of if n] == [n for n in kept if n]
    if dilation == 1 and clipped.size[0] > 1:
        positions = np.arange(len(fewer)) * stride - clipped.pad_low[0]
        assert positions[-1] >= 0 or fewer[:, 0].any()
        assert positions[0] + clipped.size[0] <= extent or fewer[:, -1].any()


@pytest.mark.parametrize("kind", ["max", "add"])
def test_a_huge_window_costs_no_more_than_its_input(kind: str) -> None:
    """The ops for `AvgPool2d(1280, ceil_mode=True)` on an image of 7 times 7."""
    x = integers(1, 2, 7, 7)
    op = PoolOp.get(
        block_for(x).args[0],
        kind,
        [10**6, 1280],
        strides=[10**6, 1280],
        dilations=[1, 1],
        pad_low=[0, 0],
        pad_high=[10**6 - 7, 1273],
    )
    combine = np.max if kind == "max" else np.sum
    np.testing.assert_array_equal(op.evaluate(x)[0][..., 0, 0], combine(x, (2, 3)))
    assert op.windows.clipped([7, 7]).size == (7, 7)
