"""0 · inf is NaN in every product that an op means, and in no other.

What `evaluate` computes with whole arrays is compared with the loop nest of the op, one product
after the other.
"""

import itertools

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Block

from braid.dialects.braid.base import StructuredOp, TensorOp
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.decomposition import decompose_op
from braid.dialects.braid.dtypes import from_numpy
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.resampling import Resampling
from braid.dialects.braid.resize import ResizeOp
from braid.dialects.braid.transposed_convolution import ConvTransposeOp
from test.unit.dialects.loop_nests import run_structure

Array = np.ndarray
TYPES = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
SHAPES = ((1, 1, 1), (1, 1, 3), (2, 3, 1), (3, 2, 2))
"""Images, channels and outputs."""


def numbers(rng: np.random.Generator, dtype: type, *shape: int) -> Array:
    """Small integers, many zeros, some infinities and NaN."""
    values = [0, 0, 0, 1, -1, 2, np.inf, -np.inf, np.nan]
    weights = [0.2, 0.2, 0.2, 0.1, 0.1, 0.1, 0.04, 0.03, 0.03]
    return rng.choice(values, size=shape, p=weights).astype(dtype)


def block_for(*arrays: Array) -> Block:
    return Block(arg_types=[TensorType(from_numpy(x.dtype), x.shape) for x in arrays])


def check(op: StructuredOp, *operands: Array) -> None:
    with np.errstate(all="ignore"):
        actual, expected = op.evaluate(*operands), run_structure(op, operands)
    np.testing.assert_array_equal(actual[0].astype(float), expected[0].astype(float))


@pytest.mark.parametrize("dtype", TYPES)
def test_products_of_matrices(dtype: type) -> None:
    rng = np.random.default_rng(1)
    for rows, inner, columns in itertools.product((1, 2, 3), repeat=3):
        a, b = numbers(rng, dtype, 2, rows, inner), numbers(rng, dtype, 2, inner, columns)
        check(MatmulOp.on(*block_for(a, b).args), a, b)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("padding", [0, 1])
def test_convolutions(dtype: type, size: int, padding: int) -> None:
    rng = np.random.default_rng(2)
    for images, channels, outputs in SHAPES:
        for groups in {1, channels}:
            x = numbers(rng, dtype, images, channels, 3, 4)
            w = numbers(rng, dtype, outputs * groups, channels // groups, size, size)
            pads = [padding, padding]
            op = ConvOp.get(
                *block_for(x, w).args,
                strides=[1, 1],
                dilations=[1, 1],
                pad_low=pads,
                pad_high=pads,
                groups=groups,
            )
            check(op, x, w)


def test_transposed_convolutions_multiply_no_zeros_that_are_not_there() -> None:
    """One infinite weight reaches one element of every window."""
    x, w = np.ones((1, 1, 3, 3), np.float32), np.ones((1, 1, 2, 2), np.float32)
    w[0, 0, 0, 0], x[0, 0, 1, 1] = np.inf, 0
    op = ConvTransposeOp.get(
        *block_for(x, w).args, strides=[3, 3], dilations=[1, 1], pad_low=[0, 0], pad_high=[0, 0]
    )
    with np.errstate(all="ignore"):
        (y,) = op.evaluate(x, w)
    assert np.argwhere(np.isnan(y[0, 0])).tolist() == [[3, 3]]
    assert np.isinf(y[0, 0]).sum() == 8


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_resizes_read_only_their_taps(mode: str) -> None:
    x = np.zeros((1, 8), np.float32)
    x[0, 7] = np.inf
    op = ResizeOp.get(block_for(x).args[0], (1, 16), (1, 2), Resampling(mode, "half_pixel"))
    with np.errstate(all="ignore"):
        (y,) = op.evaluate(x)
    reached = 2 if mode == "linear" else 4
    np.testing.assert_array_equal(np.isfinite(y[0]), np.arange(16) < 15 - reached)


def test_what_lies_outside_of_a_resized_region_reads_nothing() -> None:
    x = np.full((1, 4), np.inf, np.float32)
    how = Resampling("linear", "tf_crop_and_resize", extrapolation=7.0)
    op = ResizeOp.get(block_for(x).args[0], (1, 4), (1, 1), how, region=(0, -1, 1, 0))
    with np.errstate(all="ignore"):
        (y,) = op.evaluate(x)
    assert y[0, :3].tolist() == [7, 7, 7]


@pytest.mark.parametrize("seed", range(40))
def test_expanded_transposed_convolutions_multiply_none_either(seed: int) -> None:
    """Weights that are not known to be finite; windows overlap, leave gaps, or are cut off."""
    rng = np.random.default_rng(seed)
    groups, window = int(rng.integers(1, 3)), rng.integers(1, 4, 2).tolist()
    strides, dilations = rng.integers(1, 4, 2).tolist(), rng.integers(1, 3, 2).tolist()
    x = numbers(rng, np.float32, 2, 2 * groups, 3, 4)
    w = numbers(rng, np.float32, 2 * groups, 3, *window)
    block = block_for(x, w)
    op = ConvTransposeOp.get(
        *block.args,
        strides=strides,
        dilations=dilations,
        pad_low=rng.integers(0, 2, 2).tolist(),
        pad_high=rng.integers(0, 2, 2).tolist(),
        output_padding=[int(rng.integers(0, stride)) for stride in strides],
        groups=groups,
    )
    with np.errstate(all="ignore"):
        (expected,) = op.evaluate(x, w)
        end = ReturnOp(op.output)
        block.add_ops([op, end])
        decompose_op(op)
        values = dict(zip(block.args, (x, w), strict=True))
        for part in block.ops:
            if isinstance(part, TensorOp):
                results = part.evaluate(*(values[operand] for operand in part.operands))
                values.update(zip(part.results, results, strict=True))
    np.testing.assert_array_equal(values[end.operands[0]], expected)


def test_finite_weights_take_one_convolution() -> None:
    w = ConstantOp.of(np.ones((1, 1, 3, 3), np.float32))
    for weight, finite in (
        (w, False),
        (block_for(np.ones((1, 1, 3, 3), np.float32)).args[0], True),
    ):
        block = block_for(np.ones((1, 1, 4, 4), np.float32))
        options = {"strides": [2, 2], "dilations": [1, 1], "pad_low": [0, 0], "pad_high": [0, 0]}
        op = ConvTransposeOp.get(block.args[0], weight, **options, finite_weight=finite)
        block.add_ops([op, ReturnOp(op.output)])
        assert [part.name for part in decompose_op(op)].count("braid.add") == 0
