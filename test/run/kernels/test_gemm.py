"""Matrix products by the GEMM family."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import TensorType, bf16, f16, f32, i1

from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.matmul import MatmulOp
from braid.lowering.cpu.kernels.gemm import GemmFamily
from test.machines import AVX2, HOST, SSE
from test.run.kernels.products import product, with_epilogue

FAMILY = GemmFamily(HOST)


@settings(max_examples=25, deadline=None)
@given(
    m=st.integers(1, 40),
    n=st.integers(1, 70),
    k=st.integers(1, 40),
    choice=st.integers(0, 4),
    other=st.sampled_from(["full", "column", "scalar"]),
)
def test_products_with_epilogue(check, m, n, k, choice, other) -> None:
    others = {"full": (m, n), "column": (m, 1), "scalar": (1, 1)}
    shapes = [(m, k), (k, n), (1, n), others[other]]
    check(FAMILY, shapes, with_epilogue, choices=[choice])


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3, 5, 7), (2, 3, 7, 19)),
        ((1, 3, 5, 7), (2, 1, 7, 19)),
        ((4, 7, 9), (1, 9, 33)),
        ((1, 7, 9), (4, 9, 33)),
        ((5, 1, 8), (5, 8, 3)),
        ((2, 3, 1, 4), (1, 3, 4, 16)),
    ],
)
def test_batches(check, a, b) -> None:
    check(FAMILY, [a, b], product, choices=[0, 4])


@pytest.mark.parametrize("columns_outside", [0, 1])
@pytest.mark.parametrize("unroll", [1, 3, 64])
def test_schedules(check, columns_outside, unroll) -> None:
    schedule = {"rows": 4, "vectors": 2, "unroll": unroll, "columns_outside": columns_outside}
    check(FAMILY, [(9, 10), (10, 37)], product, choices=[4], schedule=schedule)


@pytest.mark.parametrize("machine", [AVX2, SSE])
def test_narrow_vectors(check, machine) -> None:
    shapes = [(13, 20), (20, 37), (1, 37), (13, 37)]
    check(GemmFamily(machine), shapes, with_epilogue, choices=[0])


@pytest.mark.parametrize("kind", [f16, bf16])
@settings(max_examples=6, deadline=None)
@given(m=st.integers(1, 20), n=st.integers(1, 70), k=st.integers(1, 40), choice=st.integers(0, 4))
def test_halves_on_the_right(check, kind, m, n, k, choice) -> None:
    """They are converted as they are loaded, from packed blocks and from rows."""

    def build(a, b, bias, other):
        wide = elementwise("cast", b, element_type=f32)
        ops, results = with_epilogue(a, wide.output, bias, other)
        return [wide, *ops], results

    types = [(m, k), TensorType(kind, (k, n)), (1, n), (m, n)]
    check(FAMILY, types, build, choices=[choice])


@pytest.mark.parametrize(("machine", "kind"), [(AVX2, f16), (AVX2, bf16), (SSE, bf16)])
def test_halves_in_narrow_vectors(check, kind, machine) -> None:
    def build(a, b):
        wide = elementwise("cast", b, element_type=f32)
        ops, results = product(a, wide.output)
        return [wide, *ops], results

    check(GemmFamily(machine), [(3, 20), TensorType(kind, (20, 37))], build)


@pytest.mark.parametrize("shape", [(1, 37, 1), (3, 1, 41), (3, 37, 41), (1, 1, 1)])
def test_rows_that_are_cleared(check, shape) -> None:
    """As in attention whose keys are all masked, by stored conditions."""

    def build(a, b, condition):
        made = MatmulOp.on(a, b)
        zero = ConstantOp.of(np.zeros((1, 1, 1), np.float32))
        cleared = elementwise("select", condition, zero.output, made.output)
        return [made, zero, cleared], [cleared.output]

    types = [TensorType(f32, (3, 37, 19)), TensorType(f32, (3, 19, 41)), TensorType(i1, shape)]
    random = np.random.default_rng(0)
    arrays = [random.normal(size=t.get_shape()).astype(np.float32) for t in types[:2]]
    check(FAMILY, types, build, arrays=[*arrays, random.random(shape) < 0.5])
