"""Products of bf16 by the instruction for pairs of them, added up in f32."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import TensorType, bf16, f32

from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.matmul import MatmulOp
from braid.lowering.cpu.kernels.contraction.arithmetic import HalfArithmetic
from braid.lowering.cpu.kernels.contraction.low_precision import LOW_PRECISION
from braid.lowering.cpu.kernels.conv_direct import ConvDirectFamily
from braid.lowering.cpu.kernels.gemm import GemmFamily
from test.machines import HOST, SSE
from test.run.groups import evaluate
from test.run.kernels.conftest import make_group

HAS_INSTRUCTION = HalfArithmetic.on(HOST, int(HOST.fact("vector_bytes")) // 4) is not None
needs_instruction = pytest.mark.skipif(
    not HAS_INSTRUCTION, reason="this CPU multiplies no pairs of bf16"
)


def product(a, b, bias):
    """With a bias and a maximum, rounded to bf16."""
    op = MatmulOp.on(a, b, accumulator=f32)
    biased = elementwise("add", op.output, bias)
    rounded = elementwise("cast", biased.output, element_type=bf16)
    return [op, biased, rounded], [rounded.output]


def convolution(stride: int, groups: int, dims: int = 2):
    def build(x, w):
        op = ConvOp.get(
            x,
            w,
            strides=[stride] * dims,
            dilations=[1] * dims,
            pad_low=[0] * dims,
            pad_high=[0] * dims,
            groups=groups,
            accumulator=f32,
        )
        return [op], [op.output]

    return build


@needs_instruction
@settings(max_examples=6, deadline=None)
@given(m=st.integers(1, 20), n=st.integers(1, 70), k=st.integers(1, 70))
def test_products(check, m: int, n: int, k: int) -> None:
    types = [TensorType(bf16, (m, k)), TensorType(bf16, (k, n)), TensorType(f32, (1, n))]
    check.tolerance = 4e-3  # of the rounded result
    check(GemmFamily(HOST, LOW_PRECISION), types, product, choices=[0, 2])


@needs_instruction
def test_batches_of_rows(check) -> None:
    types = [TensorType(bf16, (3, 5, 34)), TensorType(bf16, (1, 34, 35))]

    def build(a, b):
        op = MatmulOp.on(a, b, accumulator=f32)
        return [op], [op.output]

    check(GemmFamily(HOST, LOW_PRECISION), types, build, choices=[1])


@needs_instruction
@pytest.mark.parametrize(
    ("channels", "filters", "size", "stride", "groups"),
    [
        (3, 20, 3, 2, 1),
        (8, 64, 1, 1, 1),
        (16, 33, 3, 1, 1),
        (7, 5, 2, 1, 1),
        (16, 64, 3, 1, 2),
        (6, 60, 3, 1, 3),
    ],
)
def test_convolutions(check, channels, filters, size, stride, groups) -> None:
    types = [
        TensorType(bf16, (2, channels, 9, 8)),
        TensorType(bf16, (filters, channels // groups, size, size)),
    ]
    check(ConvDirectFamily(HOST, LOW_PRECISION), types, convolution(stride, groups), choices=[0])


@needs_instruction
@pytest.mark.parametrize("extents", [(31,), (4, 5, 9)], ids=["lines", "volumes"])
def test_convolutions_of_other_ranks(check, extents) -> None:
    dims = len(extents)
    types = [TensorType(bf16, (2, 7, *extents)), TensorType(bf16, (20, 7, *[3] * dims))]
    check(ConvDirectFamily(HOST, LOW_PRECISION), types, convolution(1, 1, dims), choices=[0])


@needs_instruction
def test_sums_are_not_rounded_between(check) -> None:
    """One large product and many that bf16 would lose in its sum."""
    types = [TensorType(bf16, (1, 1024)), TensorType(bf16, (1024, 16)), TensorType(f32, (1, 16))]
    a = np.ones((1, 1024), to_numpy(bf16))
    b = np.full((1024, 16), 2**-8, a.dtype)
    b[0] = 256
    arrays = [a, b, np.zeros((1, 16), np.float32)]
    np.testing.assert_array_equal(evaluate(make_group(types, product), arrays)[0], 260)
    check(GemmFamily(HOST, LOW_PRECISION), types, product, choices=[0], arrays=arrays)


def test_machines_without_the_instruction_have_no_kernel() -> None:
    types = [TensorType(bf16, (4, 8)), TensorType(bf16, (8, 16)), TensorType(f32, (1, 16))]
    assert GemmFamily(SSE, LOW_PRECISION).match(make_group(types, product)) is None
