"""Matrix products with open dims, as they are chosen: batches, rows, columns and sums."""

import itertools
from typing import Any

import pytest

from braid.dialects.braid.base import integers
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.matmul import MatmulOp
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.support.sizes.expression import symbol
from test.machines import HOST
from test.run.kernels.chosen_kernels import ChosenKernel

BATCH, LENGTH = symbol("batch"), symbol("length")
HEIGHT, WIDTH = symbol("height"), symbol("width")
LIKELY = {"batch": 1, "length": 128}
LANES = VectorUnit.of(HOST).lanes


def dense(x: Any, weight: Any, bias: Any) -> Any:
    """Build a dense layer with its bias and an activation."""
    product = MatmulOp.on(x, weight)
    biased = elementwise("add", product.output, bias)
    result = elementwise("tanh", biased.output)
    return [product, biased, result], [result.output]


def masked(x: Any, y: Any, mask: Any) -> Any:
    product = MatmulOp.on(x, y)
    result = elementwise("add", product.output, mask)
    return [product, result], [result.output]


def alone(x: Any, y: Any) -> Any:
    product = MatmulOp.on(x, y)
    return [product], [product.output]


def test_dense_layer_of_any_batch_and_length() -> None:
    shapes = [(BATCH, LENGTH, 96), (1, 96, 200), (1, 1, 200)]
    kernel = ChosenKernel(shapes, dense, LIKELY, known=(1,))
    assert kernel.family == "gemm" and not kernel.choice.operands[1].is_row_major
    for batch, length in itertools.product((0, 1, 2), (0, 1, 7, 31, 128)):
        kernel.check(2e-5, batch=batch, length=length)


@pytest.mark.parametrize("batch", [1, 64])
def test_dense_layer_of_any_number_of_rows(batch: int) -> None:
    kernel = ChosenKernel([(BATCH, 96), (96, 40), (1, 40)], dense, {"batch": batch}, known=(1,))
    for rows in (*range(9), 61, 97):
        kernel.check(2e-5, batch=rows)


def test_scores_of_any_batch_and_length() -> None:
    shapes = [(BATCH, 3, LENGTH, 16), (BATCH, 3, 16, LENGTH), (BATCH, 1, 1, LENGTH)]
    kernel = ChosenKernel(shapes, masked, LIKELY, family="gemm")
    for batch, length in itertools.product((0, 1, 3), (1, 2, 31, 67)):
        kernel.check(2e-5, batch=batch, length=length)


@pytest.mark.parametrize("tag", ["abdc", "dabc"])
@pytest.mark.parametrize("depth", [3, 64])
def test_scores_of_few_rows_with_keys_as_they_lie(depth: int, tag: str) -> None:
    keys, likely = symbol("keys"), {"batch": 1, "length": 1, "keys": 1000}
    shapes = [(BATCH, 3, LENGTH, depth), (BATCH, 3, depth, keys), (BATCH, 1, 1, keys)]
    tags = ("abcd", tag, "abcd", "abcd")
    kernel = ChosenKernel(shapes, masked, likely, family="gemm-dots", layouts=tags)
    for batch, length, count in itertools.product((0, 1, 3), (0, 1, 5), (1, 2, 31, 300)):
        kernel.check(2e-5, batch=batch, length=length, keys=count)


def test_sums_of_few_rows_over_a_cache_of_tokens() -> None:
    keys, likely = symbol("keys"), {"batch": 1, "length": 1, "keys": 1000}
    shapes = [(BATCH, 3, LENGTH, keys), (BATCH, 3, keys, 24)]
    tags = ("abcd", "cabd", "abcd")
    kernel = ChosenKernel(shapes, alone, likely, family="gemm", layouts=tags)
    for batch, length, count in itertools.product((1, 3), (0, 1, 9), (0, 1, 31, 300)):
        kernel.check(2e-5, batch=batch, length=length, keys=count)


def test_sums_of_any_length() -> None:
    shapes = [(BATCH, 3, LENGTH, LENGTH), (BATCH, 3, LENGTH, 16)]
    kernel = ChosenKernel(shapes, alone, LIKELY, family="gemm")
    for batch, length in itertools.product((1, 3), (0, 1, 2, 31, 67)):
        kernel.check(2e-5, batch=batch, length=length)


def convolved(zeros: int) -> Any:
    def build(x: Any, weight: Any, bias: Any) -> Any:
        steps = {"strides": [1, 1], "dilations": [1, 1]}
        conv = ConvOp.get(x, weight, groups=1, pad_low=[0, 0], pad_high=[0, 0], **steps)
        conv.zeros_low = conv.zeros_high = integers([zeros, zeros])
        result = elementwise("add", conv.output, bias)
        return [conv, result], [result.output]

    return build


@pytest.mark.parametrize(("taps", "extent"), [(1, 7), (3, 9)])
@pytest.mark.parametrize("tag", ["acdb", "abcd", f"aBcd{LANES}b"])
def test_convolution_of_any_number_of_images(tag: str, taps: int, extent: int) -> None:
    weight = "bcda" if tag == "abcd" else f"Acdb{2 * LANES}a"
    channels, outputs = LANES, 2 * LANES
    shapes = [
        (BATCH, channels, extent, extent),
        (outputs, channels, taps, taps),
        (1, outputs, 1, 1),
    ]
    zeros = taps // 2
    tags = (tag, weight, "abcd", tag)
    kernel = ChosenKernel(
        shapes, convolved(zeros), {"batch": 1}, family="conv-direct", layouts=tags
    )
    for batch in (0, 1, 2, 5):
        x, *others = kernel.arrays(batch=batch)
        if zeros:
            x[:, :, (0, -1)] = x[..., (0, -1)] = 0
        kernel.check(2e-5, [x, *others], batch=batch)


def strided(x: Any, weight: Any, bias: Any) -> Any:
    steps = {"strides": [2, 1], "dilations": [1, 1]}
    conv = ConvOp.get(x, weight, groups=1, pad_low=[0, 0], pad_high=[0, 0], **steps)
    result = elementwise("add", conv.output, bias)
    return [conv, result], [result.output]


@pytest.mark.parametrize("taps", [1, 3])
@pytest.mark.parametrize("build", [convolved(0), strided], ids=["dense", "strided"])
@pytest.mark.parametrize("tag", ["acdb", "abcd"])
def test_convolution_of_images_of_any_extents(tag: str, build: Any, taps: int) -> None:
    weight = "bcda" if tag == "abcd" else f"Acdb{2 * LANES}a"
    outputs = 2 * LANES
    shapes = [(BATCH, 5, HEIGHT, WIDTH), (outputs, 5, taps, taps), (1, outputs, 1, 1)]
    tags, likely = (tag, weight, "abcd", tag), {"batch": 1, "height": 32, "width": 32}
    kernel = ChosenKernel(shapes, build, likely, family="conv-direct", layouts=tags)
    for batch, height, width in ((1, 3, 3), (2, 7, 19), (1, 16, 61), (0, 5, 5), (3, 4, 33)):
        kernel.check(2e-5, batch=batch, height=height, width=width)
