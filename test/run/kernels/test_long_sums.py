"""Sums of many numbers consist of parts: compared with f64, and with parts of few numbers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import braid
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.reduction import ReduceOp
from braid.lowering.common import long_sums
from braid.lowering.cpu.kernels.conv_depthwise import ConvDepthwiseFamily
from braid.lowering.cpu.kernels.gemm import GemmFamily
from braid.lowering.cpu.kernels.gemm_dots import GemmDotsFamily
from braid.lowering.cpu.kernels.generic import GenericFamily
from braid.lowering.cpu.kernels.normalization import NormalizationFamily
from braid.lowering.cpu.kernels.pooling import PoolFamily
from braid.lowering.cpu.kernels.reduction import ReductionFamily
from braid.runtime.model import Model
from test.machines import HOST
from test.run.kernels.conftest import KernelCheck
from test.run.kernels.products import product

BOUND = 1e-4

A = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]


def compiled(op: str, *shapes: Shape, axes: list[int] | None = None, **attributes: Any) -> Model:
    """Return an ONNX op on operands of these shapes."""
    names = [f"x{number}" for number in range(len(shapes))]
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in zip(names, shapes, strict=True)
    ]
    known = [] if axes is None else [numpy_helper.from_array(np.array(axes), "axes")]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    node = helper.make_node(op, [*names, *(each.name for each in known)], ["y"], **attributes)
    graph = helper.make_graph([node], "sum", ports, [result], known)
    opset = [helper.make_opsetid("", 18)]
    return braid.compile(helper.make_model(graph, opset_imports=opset, ir_version=10), jobs=1)


def check_sum(exact: Callable[..., A], op: str, *shapes: Shape, **attributes: Any) -> None:
    """Compare an op on positive numbers with the results of `exact` in f64.

    Equal numbers have roundings that add up, random ones as are usual.
    """
    model, random = compiled(op, *shapes, **attributes), np.random.default_rng(0)
    equal = [np.full(shape, 0.1, np.float32) for shape in shapes]
    for operands in (equal, [random.random(shape, np.float32) for shape in shapes]):
        found = np.asarray(model(*operands))
        wanted = exact(*(x.astype(np.float64) for x in operands))
        np.testing.assert_allclose(found, wanted.reshape(found.shape), rtol=BOUND, atol=0)


@pytest.mark.parametrize(
    ("shape", "dims"),
    [
        ((1 << 22,), [0]),
        ((3, 1023, 1025), [1, 2]),
        ((1 << 18, 16), [0]),
        ((1 << 19, 3), [0]),
        ((4, 512, 512, 2), [1, 2]),
        ((512, 3, 512), [0, 2]),
    ],
)
def test_sums(shape: Shape, dims: list[int]) -> None:
    check_sum(lambda x: x.sum(tuple(dims)), "ReduceSum", shape, axes=dims)


def test_sums_of_squares() -> None:
    check_sum(lambda x: np.square(x).sum(0), "ReduceSumSquare", (1 << 19, 3), axes=[0])


@pytest.mark.parametrize("shape", [(1, 1, 2048, 2048), (1, 64, 250, 250)])
def test_averages_of_whole_images(shape: Shape) -> None:
    check_sum(lambda x: x.mean((2, 3)), "AveragePool", shape, kernel_shape=shape[2:])


@pytest.mark.parametrize("channels", [1, 20])
def test_averages_of_large_windows(channels: int) -> None:
    def exact(x: A) -> A:
        return x.reshape(channels, 300, 2, 300).mean((1, 3))

    sides = [300, 300]
    check_sum(exact, "AveragePool", (1, channels, 300, 600), kernel_shape=sides, strides=sides)


@pytest.mark.parametrize(("rows", "depth", "columns"), [(1, 1 << 22, 1), (5, 1 << 18, 20)])
def test_products(rows: int, depth: int, columns: int) -> None:
    check_sum(lambda a, b: a @ b, "MatMul", (rows, depth), (depth, columns))


@pytest.mark.parametrize("groups", [1, 4, 8])
def test_convolutions(groups: int) -> None:
    def exact(x: A, weights: A) -> A:
        channels = np.repeat(x, 8 // groups, 1)
        return np.einsum("ncij,cij->nc", channels, weights[:, 0])

    check_sum(exact, "Conv", (1, groups, 400, 400), (8, 1, 400, 400), group=groups)


def test_normalizations() -> None:
    n = 1 << 22
    x = 1 + np.random.default_rng(0).random((1, n), np.float32) / 10
    wide = x.astype(np.float64)
    normal = (wide - wide.mean()) / np.sqrt(wide.var() + 1e-5)
    model = compiled("LayerNormalization", (1, n), (n,), (n,))
    found = model(x, np.ones(n, np.float32), np.zeros(n, np.float32))
    assert abs(found - normal).max() < BOUND
    found = compiled("Softmax", (1, n), axis=1)(x)
    np.testing.assert_allclose(found, np.exp(wide) / np.exp(wide).sum(), rtol=BOUND, atol=0)


@contextmanager
def short_parts() -> Iterator[None]:
    """Use sums of so few numbers that small tensors have nested parts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_sums, "LONGEST", 64)
        patch.setattr(long_sums, "_PART", 32)
        yield


@pytest.mark.parametrize(
    "family", [GenericFamily(HOST), ReductionFamily(HOST)], ids=["generic", "reduction"]
)
@settings(max_examples=12, deadline=None)
@given(
    shape=st.lists(st.integers(1, 40), min_size=1, max_size=3).map(tuple),
    data=st.data(),
)
def test_sums_of_short_parts(check, family, shape, data) -> None:
    rank = len(shape)
    dims = data.draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank, unique=True))

    def build(x):
        square = elementwise("mul", x, x)
        op = ReduceOp.get(square.results[0], "add", dims)
        return [square, op], [op.output]

    with short_parts():
        check(family, [shape], build)


@pytest.mark.parametrize("length", [65, 1000, 20000])
def test_sums_of_long_rows_side_by_side(check, length) -> None:
    def build(x):
        op = ReduceOp.get(x, "add", [0])
        return [op], [op.output]

    with short_parts():
        check(GenericFamily(HOST), [(length // 10, 5000 // (length // 64))], build)


@settings(max_examples=5, deadline=None)
@given(channels=st.integers(64, 100), lines=st.integers(1, 40), width=st.integers(1, 40))
def test_pools_of_short_parts(check, channels, lines, width) -> None:
    def build(x):
        op = ReduceOp.get(x, "add", [2, 3])
        return [op], [op.output]

    with short_parts():
        check(PoolFamily(HOST), [(1, channels, lines, width)], build)


@settings(max_examples=5, deadline=None)
@given(channels=st.integers(2, 40), window=st.tuples(st.integers(1, 20), st.integers(1, 20)))
def test_convolutions_of_short_parts(check, channels, window) -> None:
    def build(x, weight):
        op = ConvOp.get(
            x,
            weight,
            strides=(1, 1),
            dilations=(1, 1),
            pad_low=(0, 0),
            pad_high=(0, 0),
            groups=channels,
        )
        return [op], [op.output]

    with short_parts():
        shapes = [(1, channels, 22, 23), (channels, 1, *window)]
        check(ConvDepthwiseFamily(HOST), shapes, build)


@settings(max_examples=5, deadline=None)
@given(m=st.integers(1, 9), n=st.integers(1, 70), k=st.integers(60, 5000))
def test_products_of_short_parts(m, n, k) -> None:
    # The sums for comparison are in f32, too, in another order.
    check = KernelCheck(tolerance=1e-5)
    with short_parts():
        check(GemmFamily(HOST), [(m, k), (k, n)], product)
        check(GemmDotsFamily(HOST), [(m, k), (k, n)], product)


@pytest.mark.parametrize("length", [4097, 30000])
def test_normalizations_of_short_parts(check, length) -> None:
    def build(x, scale, bias):
        op = LayerNormOp.get(x, scale, bias, first_dim=1, epsilon=1e-5)
        return [op], [op.output]

    with short_parts():
        check(NormalizationFamily(HOST), [(2, length), (1, length), (1, length)], build)


@pytest.mark.parametrize("columns", [3, 20])
def test_softmax_down_columns_of_short_parts(check, columns) -> None:
    def build(x):
        op = SoftmaxOp.get(x, 1)
        return [op], [op.output]

    with short_parts():
        check(NormalizationFamily(HOST), [(2, 4097, columns)], build)


@given(st.lists(st.integers(1, 1 << 13), max_size=4))
def test_loops_add_few_numbers_one_by_one(extents) -> None:
    """As loops over nested parts would, which are made here."""
    assert long_sums.additions_of(extents) == _most(extents) <= long_sums.LONGEST


def _most(extents: list[int]) -> int:
    added = 1
    for extent in reversed(extents):
        steps = extent
        while long_sums.is_long(steps, added):
            length = long_sums.part_steps(steps, added)
            assert length < steps or added > 1
            assert length * added <= long_sums.LONGEST
            steps, added = -(-steps // length), long_sums.OF_PART
        added *= steps
    return added
