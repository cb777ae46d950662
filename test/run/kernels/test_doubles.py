"""Products, convolutions and pools of f64, by the families of f32: vectors of half as many lanes.

Everything is compared within a few units in the last place of sums: what were rounded to f32
anywhere would be wrong by a million times as much.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import TensorType, f64, i64

from braid.analysis.storage.strided_storage import set_overlap
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.relayout import to_storage
from braid.lowering.cpu.call import CallableKernel
from braid.lowering.cpu.kernels.conv_depthwise import ConvDepthwiseFamily
from braid.lowering.cpu.kernels.conv_direct import ConvDirectFamily
from braid.lowering.cpu.kernels.conv_winograd import ConvWinogradFamily
from braid.lowering.cpu.kernels.gemm import GemmFamily
from braid.lowering.cpu.kernels.gemm_dots import GemmDotsFamily
from braid.lowering.cpu.kernels.pooling import PoolFamily
from test.machines import AVX2, HOST, SSE
from test.run.kernels.conftest import (
    KernelCheck,
    candidate_of,
    evaluate,
    make_group,
    random_array,
)
from test.run.kernels.products import product, with_epilogue
from test.run.kernels.test_convolution import convolution, shapes_of

MACHINES = [HOST, AVX2, SSE]


@pytest.fixture(scope="module")
def exactly(check) -> KernelCheck:
    """The comparison within some 50 units in the last place of the largest result."""
    return KernelCheck(1e-14)


def doubles(shapes):
    return [TensorType(f64, shape) for shape in shapes]


@pytest.mark.parametrize("machine", MACHINES)
@settings(max_examples=12, deadline=None)
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
@settings(max_examples=8, deadline=None)
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
    kernel, found = candidate.emit("kernel", {}), candidate.overlap()
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
@pytest.mark.parametrize("kind", ["max", "add"])
@pytest.mark.parametrize(("channels", "width", "stride"), [(48, 9, 1), (3, 71, 2), (35, 20, 2)])
def test_pools(exactly, machine, kind, channels, width, stride) -> None:
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
