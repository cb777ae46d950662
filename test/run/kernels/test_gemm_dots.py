"""Matmuls with few rows and a column-major right operand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import TensorType, bf16, f16, f32

from braid.dialects.braid.elementwise import elementwise
from braid.lowering.cpu.kernels.gemm_dots import GemmDotsFamily
from test.machines import AVX2, HOST, SSE
from test.run.kernels.conftest import make_group
from test.run.kernels.products import product, with_epilogue

FAMILY = GemmDotsFamily(HOST)


def of_halves(a, b, bias, other):
    wide = elementwise("cast", b, element_type=f32)
    ops, results = with_epilogue(a, wide.output, bias, other)
    return [wide, *ops], results


@settings(max_examples=25, deadline=None)
@given(
    m=st.integers(1, 9),
    n=st.integers(1, 300),
    k=st.integers(1, 200),
    other=st.sampled_from(["full", "column", "scalar"]),
)
def test_products_with_epilogue(check, m, n, k, other) -> None:
    others = {"full": (m, n), "column": (m, 1), "scalar": (1, 1)}
    check(FAMILY, [(m, k), (k, n), (1, n), others[other]], with_epilogue)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3, 5, 7), (2, 3, 7, 19)),
        ((1, 3, 5, 64), (2, 1, 64, 150)),
        ((4, 7, 9), (1, 9, 33)),
        ((1, 7, 9), (4, 9, 33)),
        ((5, 1, 1), (5, 1, 3)),
        ((2, 3, 1, 32), (1, 3, 32, 1)),
    ],
)
def test_batches(check, a, b) -> None:
    check(FAMILY, [a, b], product)


@pytest.mark.parametrize("k", [1, 15, 16, 17, 128, 129, 144, 160, 1000])
def test_depths(check, k) -> None:
    """With and without a loop, with odd numbers of steps, and with less than one step."""
    check(FAMILY, [(2, k), (k, 21)], product)


@pytest.mark.parametrize("machine", [AVX2, SSE])
def test_narrow_vectors(check, machine) -> None:
    shapes = [(3, 21), (21, 139), (1, 139), (3, 139)]
    check(GemmDotsFamily(machine), shapes, with_epilogue)


@pytest.mark.parametrize(
    ("machine", "kind"), [(HOST, f16), (HOST, bf16), (AVX2, f16), (AVX2, bf16), (SSE, bf16)]
)
@pytest.mark.parametrize("shape", [(1, 37, 21), (3, 16, 64), (2, 150, 133)])
def test_halves(check, shape, kind, machine) -> None:
    m, n, k = shape
    types = [(m, k), TensorType(kind, (k, n)), (1, n), (m, n)]
    check(GemmDotsFamily(machine), types, of_halves)


def test_more_rows_are_for_others() -> None:
    assert (
        FAMILY.match(make_group([TensorType(f32, (65, 4)), TensorType(f32, (4, 9))], product))
        is None
    )


def test_halves_without_an_instruction_are_for_others() -> None:
    group = make_group(
        [TensorType(f32, (1, 8)), TensorType(f16, (8, 9)), *[TensorType(f32, (1, 9))] * 2],
        of_halves,
    )
    assert GemmDotsFamily(AVX2).match(group) is not None
    assert GemmDotsFamily(SSE).match(group) is None
