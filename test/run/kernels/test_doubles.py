"""Kernels of f64 by the families of f32, with vectors of half as many lanes.

Everything is compared within a few units in the last place of sums: what were rounded to f32
anywhere would be wrong by a million times as much.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import TensorType, f64, i64

import braid
from braid.analysis.storage.strided_storage import set_overlap
from braid.dialects.braid.elementwise import ELEMENTWISE, elementwise
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.relayout import to_storage
from braid.lowering.cpu.call import CallableKernel
from braid.lowering.cpu.kernels.conv_depthwise import ConvDepthwiseFamily
from braid.lowering.cpu.kernels.conv_direct import ConvDirectFamily
from braid.lowering.cpu.kernels.conv_grouped import ConvGroupedFamily
from braid.lowering.cpu.kernels.conv_winograd import ConvWinogradFamily
from braid.lowering.cpu.kernels.elementwise import ElementwiseFamily
from braid.lowering.cpu.kernels.gemm import GemmFamily
from braid.lowering.cpu.kernels.gemm_dots import GemmDotsFamily
from braid.lowering.cpu.kernels.normalization import NormalizationFamily
from braid.lowering.cpu.kernels.pooling import PoolFamily
from test.machines import AVX2, HOST, SSE, distinct
from test.pairs import all_pairs
from test.run.kernels.conftest import (
    KernelCheck,
    candidate_of,
    evaluate,
    make_group,
    random_array,
)
from test.run.kernels.products import product, with_epilogue
from test.run.kernels.test_convolution import convolution, shapes_of
from test.schedules import emitted

MACHINES = distinct(HOST, AVX2, SSE)


@pytest.fixture(scope="module")
def exactly(check) -> KernelCheck:
    """Compare within some 50 units in the last place of the largest result."""
    return KernelCheck(1e-14)


def doubles(shapes):
    return [TensorType(f64, shape) for shape in shapes]


@pytest.mark.parametrize("machine", MACHINES)
@settings(max_examples=8, deadline=None)
@given(
    m=st.integers(1, 40),
    n=st.integers(1, 70),
    k=st.integers(1, 40),
    choice=st.integers(0, 4),
    other=st.sampled_from(["full", "column", "scalar"]),
)
def test_products_with_epilogue(exactly, machine, m, n, k, choice, other) -> None:
    others = {"full": (m, n), "column": (m, 1), "scalar": (1, 1)}
    types = doubles([(m, k), (k, n), (1, n), others[other]])
    exactly(GemmFamily(machine), types, with_epilogue, choices=[choice])


@pytest.mark.parametrize("machine", MACHINES)
@settings(max_examples=5, deadline=None)
@given(m=st.integers(1, 9), n=st.integers(1, 150), k=st.integers(1, 200))
def test_products_of_rows(exactly, machine, m, n, k) -> None:
    types = doubles([(m, k), (k, n), (1, n), (m, n)])
    exactly(GemmDotsFamily(machine), types, with_epilogue)


@pytest.mark.parametrize("family", [GemmFamily(HOST), GemmDotsFamily(HOST)])
@pytest.mark.parametrize(
    ("a", "b"),
    [((2, 3, 5, 7), (2, 3, 7, 19)), ((1, 3, 5, 7), (2, 1, 7, 19)), ((4, 7, 1), (1, 1, 33))],
)
def test_batches(exactly, family, a, b) -> None:
    exactly(family, doubles([a, b]), product)


@pytest.mark.parametrize("machine", MACHINES)
def test_right_operands_from_a_table(exactly, machine) -> None:
    def build(a, table, indices):
        slabs = GatherOp.get(table, indices, 0)
        ops, results = product(a, slabs.output)
        return [slabs, *ops], results

    types = [*doubles([(3, 5, 9), (4, 9, 21)]), TensorType(i64, (3,))]
    arrays = [random_array(type, 0) for type in types[:2]]
    exactly(GemmFamily(machine), types, build, arrays=[*arrays, np.array([2, 0, 3])])


@pytest.mark.parametrize("shapes", [[(64, 24), (24, 300)], [(23, 40), (40, 41)]])
def test_results_over_left_operands(check, shapes) -> None:
    family, types = GemmFamily(HOST), doubles(shapes)
    choice = candidate_of(family, make_group(types, product)).layouts[0]
    group = make_group(types, product, choice)
    arrays = [random_array(value.type, seed) for seed, value in enumerate(group.inputs)]
    (expected,) = evaluate(group, arrays)
    set_overlap(group, 0)
    candidate = candidate_of(family, group)
    kernel, found = emitted(candidate), candidate.overlap()
    assert found is not None and kernel.overlap == 0
    assert kernel.scratch_bytes == found.scratch_bytes
    result = np.full(expected.shape, 7.0)
    room = result.reshape(-1)[: arrays[0].size]
    room[...] = arrays[0].reshape(-1)
    CallableKernel(kernel)(room, to_storage(arrays[1], choice.operands[1]), result)
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-14 * np.abs(expected).max())


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("groups", "depth", "outputs", "strides"),
    [(1, 16, 32, (1, 1)), (1, 3, 21, (2, 2)), (2, 4, 8, (1, 1)), (3, 5, 3, (1, 2))],
)
def test_convolutions(exactly, machine, groups, depth, outputs, strides) -> None:
    channels, ones = groups * depth, (1, 1)
    shapes = shapes_of(2, channels, groups * outputs, (6, 21), (2, 3), strides, ones, depth)
    exactly(ConvDirectFamily(machine), doubles(shapes), convolution(strides, groups=groups))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("channels", "width", "stride"), [(48, 9, 1), (3, 71, 2), (35, 20, 2)])
def test_depthwise(exactly, machine, channels, width, stride) -> None:
    strides = (1, stride)
    shapes = shapes_of(2, channels, channels, (6, width), (3, 3), strides, (1, 1), 1)
    exactly(ConvDepthwiseFamily(machine), doubles(shapes), convolution(strides, groups=channels))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_groups_of_few_channels(exactly, machine, depth) -> None:
    shapes = shapes_of(2, 7 * depth, 14, (6, 20), (3, 3), (1, 2), (1, 1), depth)
    family = ConvGroupedFamily(machine)
    if family.unit.for_elements(8).lanes > 2:
        exactly(family, doubles(shapes), convolution((1, 2), groups=7))


@pytest.mark.parametrize(
    ("machine", "kind", "sizes"),
    all_pairs(MACHINES, ["max", "add"], [(48, 9, 1), (3, 71, 2), (35, 20, 2)]),
)
def test_pools(exactly, machine, kind, sizes) -> None:
    channels, width, stride = sizes

    def build(x):
        op = PoolOp.get(
            x, kind, (3, 3), strides=(1, stride), dilations=(1, 1), pad_low=(0, 0), pad_high=(0, 0)
        )
        return [op], [op.output]

    exactly(PoolFamily(machine), doubles([(2, channels, 6, width)]), build)


def test_winograd_is_for_f32() -> None:
    """Its results are less exact."""
    shapes = shapes_of(1, 16, 16, (8, 8), (3, 3), (1, 1), (1, 1), 16)
    assert ConvWinogradFamily(HOST).match(make_group(doubles(shapes), convolution())) is None


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("shape", [(5, 1), (5, 67), (3, 300), (3, 9, 5), (2, 37, 3), (2, 33, 70)])
def test_softmax(exactly, machine, shape) -> None:
    def build(x):
        op = SoftmaxOp.get(x, 1)
        return [op], [op.output]

    x = np.random.default_rng(0).uniform(-50, 50, shape)
    masked = x.copy()
    masked[:, shape[1] // 2 + 1 :] = -np.inf
    exactly(NormalizationFamily(machine), doubles([shape]), build, arrays=[x], more=[[masked]])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("length", [1, 7, 64, 333])
def test_layer_norm(exactly, machine, length) -> None:
    def build(x, scale, bias):
        op = LayerNormOp.get(x, scale, bias, first_dim=1, epsilon=1e-5)
        return [op], [op.output]

    types = doubles([(6, length), (1, length), (1, length)])
    exactly(NormalizationFamily(machine), types, build)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("cpu", ["native", "haswell"])
def test_attention(tmp_path, cpu, threads) -> None:
    """Compiled as a whole: matmuls of both kinds, a scale after one, softmax and a column."""
    q, k, v, w = (TensorType(f64, s) for s in ((3, 37, 19), (3, 45, 19), (3, 45, 23), (23, 1)))
    text = f"""
      func.func @main(%q: {q}, %k: {k}, %v: {v}, %w: {w}) -> tensor<111x1xf64> {{
        %c = braid.constant {{value = dense<0.25> : tensor<1x1x1xf64>}} : tensor<1x1x1xf64>
        %0 = braid.mul %k, %c : ({k}, tensor<1x1x1xf64>) -> {k}
        %1 = braid.transpose %0 {{permutation = array<i64: 0, 2, 1>}} : ({k}) -> tensor<3x19x45xf64>
        %2 = braid.matmul %q, %1 : ({q}, tensor<3x19x45xf64>) -> tensor<3x37x45xf64>
        %3 = braid.softmax %2 {{dim = 2 : i64}} : (tensor<3x37x45xf64>) -> tensor<3x37x45xf64>
        %4 = braid.matmul %3, %v : (tensor<3x37x45xf64>, {v}) -> tensor<3x37x23xf64>
        %5 = braid.reshape %4 : (tensor<3x37x23xf64>) -> tensor<111x23xf64>
        %6 = braid.matmul %5, %w : (tensor<111x23xf64>, {w}) -> tensor<111x1xf64>
        func.return %6 : tensor<111x1xf64>
      }}"""
    arrays = [random_array(type, seed) for seed, type in enumerate((q, k, v, w))]
    path = tmp_path / "attention.mlir"
    path.write_text(text)
    got = braid.compile(path, cpu=cpu, threads=threads, cache=False)(*arrays)
    scores = np.exp(arrays[0] @ np.swapaxes(arrays[1], 1, 2) * 0.25)
    weights = scores / scores.sum(-1, keepdims=True)
    exact = (weights @ arrays[2]).reshape(111, 23) @ arrays[3]
    np.testing.assert_allclose(np.asarray(got), exact, rtol=0, atol=1e-13 * np.abs(exact).max())


MOST_ULP = {"exp": 0.9, "log": 0.8, "tanh": 2.4, "sin": 1.7, "cos": 1.7}
"""Units in the last place of the exact result: the bounds in `docs/numerics.md`."""
_POINTS = np.array(
    [
        0, 5e-324, 1e-310, 2.0**-1022, 0.3466, 0.5, 0.7072, 1, 2, np.pi / 2, np.pi, 22, 700,
        709.78, 709.79, 745.2, 2.0**20, 1e22, 1.7e308, np.inf, np.nan,
    ]
)  # fmt: skip
_AROUND = np.concatenate([_POINTS, np.nextafter(_POINTS, 0), np.nextafter(_POINTS, np.inf)])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", MOST_ULP)
def test_functions(machine, name) -> None:
    """On numbers of all magnitudes and signs, compared with the C library in 80 bits."""
    rng = np.random.default_rng(0)
    usual = [rng.uniform(-end, end, 50_001) for end in (0.01, 1, 4, 100, 700, 2.0**20)]
    any_bits = rng.integers(0, 1 << 64, 200_001, dtype=np.uint64).view(np.float64)
    x = np.concatenate([_AROUND, -_AROUND, any_bits, *usual])
    got = elementwise_result(machine, name, x)
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(x.astype(np.longdouble))
        nearest = exact.astype(np.float64)
        finite = np.isfinite(nearest)
        assert np.array_equal(got[~finite], nearest[~finite], equal_nan=True)
        numbers = ~np.isnan(nearest)
        assert np.array_equal(np.signbit(got[numbers]), np.signbit(nearest[numbers]))
        errors = np.abs((got - exact) / np.spacing(np.abs(nearest)))
    worst = np.where(finite, errors, 0).argmax()
    assert errors[worst] <= MOST_ULP[name], x[worst]


@pytest.mark.parametrize(
    "name",
    ["tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf"],
)
def test_functions_of_the_library(name) -> None:
    x = np.random.default_rng(0).uniform(*((1, 9) if name == "acosh" else (-1, 1)), 37)
    exact = ELEMENTWISE[name].ROW.function(x)
    got = elementwise_result(HOST, name, x)
    np.testing.assert_allclose(got, exact, rtol=1e-15, atol=1e-16)


def elementwise_result(machine, name, x):
    def build(value):
        op = elementwise(name, value)
        return [op], [op.output]

    group = make_group(doubles([x.shape]), build)
    kernel = emitted(candidate_of(ElementwiseFamily(machine), group), {"unroll": 2})
    result = np.empty_like(x)
    CallableKernel(kernel)(x, result)
    return result


@pytest.mark.parametrize("name", ["tanh", "erf"])
def test_products_with_functions(exactly, name) -> None:
    """Also of calls of the C library, lane by lane: the product is by tiles all the same."""

    def build(a, b):
        ops, (made,) = product(a, b)
        op = elementwise(name, made)
        return [*ops, op], [op.output]

    exactly(GemmFamily(HOST), doubles([(7, 9), (9, 21)]), build)
