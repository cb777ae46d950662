"""Reductions by their family: any dims, kinds and types, with elementwise ops around them."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import (
    Float64Type,
    IntegerType,
    Signedness,
    TensorType,
    bf16,
    f16,
    f32,
    i32,
    i64,
)
from xdsl.ir import Attribute

from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import is_float, to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.relayout import Array
from braid.lowering.cpu.kernels.reduction import ReductionFamily
from test.machines import AVX2, HOST, SSE, distinct
from test.pairs import all_pairs
from test.run.kernels.conftest import make_group

DISTINCT = distinct(HOST, AVX2, SSE)
MACHINES = pytest.mark.parametrize("machine", DISTINCT, ids=lambda machine: machine.name)
FAMILY = ReductionFamily(HOST)
U8 = IntegerType(8, Signedness.UNSIGNED)
U32 = IntegerType(32, Signedness.UNSIGNED)
EXTENTS = st.one_of(st.integers(1, 9), st.sampled_from([15, 16, 17, 33, 49, 64, 65, 130]))


def reduced(kind: str, dims: Sequence[int]):
    def build(x):
        op = ReduceOp.get(x, kind, dims)
        return [op], [op.output]

    return build


@MACHINES
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_dims(check, machine, data) -> None:
    shape = data.draw(st.lists(EXTENTS, min_size=1, max_size=4).filter(lambda s: np.prod(s) < 1e6))
    dims = data.draw(st.sets(st.integers(0, len(shape) - 1)))
    type = data.draw(st.sampled_from([f32, f32, Float64Type(), i32, i64, U32]))
    kinds = ["add", "maximum", "minimum"]
    kind = data.draw(
        st.sampled_from(kinds if type in (f32, Float64Type()) else [*kinds, "and", "or"])
    )
    build, types = reduced(kind, sorted(dims)), [TensorType(type, shape)]
    if kind == "add" and is_float(type):  # of one sign, so that sums are as exact as their parts
        x = np.random.default_rng(0).uniform(0, 2, shape).astype(to_numpy(type))
        check(ReductionFamily(machine), types, build, arrays=[x], relative=1e-5)
    else:
        check(ReductionFamily(machine), types, build)


@MACHINES
@pytest.mark.parametrize("dims", [[0], [1], [2], [0, 2], [1, 2], [0, 1], [0, 1, 2], []])
def test_products(check, machine, dims: list[int]) -> None:
    x = np.random.default_rng(0).uniform(0.9, 1.1, (17, 5, 19)).astype(np.float32)
    check(ReductionFamily(machine), [x.shape], reduced("mul", dims), arrays=[x], relative=1e-4)


@pytest.mark.parametrize(
    ("machine", "length", "shape", "type", "kind", "has_outer"),
    [
        (*case, *rest)
        for *case, rest in all_pairs(
            DISTINCT,
            [2, 3, 4, 5],
            [(1,), (7,), (16,), (37,), (3, 21)],
            [(f32, "add", False), (i64, "maximum", False), (f32, "minimum", True)],
        )
    ],
)
def test_rows_of_few_elements(check, machine, length, shape, type, kind, has_outer) -> None:
    dims = [0, len(shape)] if has_outer else [len(shape)]
    check(ReductionFamily(machine), [TensorType(type, (*shape, length))], reduced(kind, dims))


@pytest.mark.parametrize(
    ("machine", "kind", "dims"),
    all_pairs(DISTINCT, ["maximum", "minimum", "add"], [[0], [1], [0, 1]]),
)
def test_nan_goes_through(check, machine, kind: str, dims: list[int]) -> None:
    cases: list[list[Array]] = []
    for row, column in ((0, 0), (7, 40), (36, 66), (18, 31)):
        x = np.random.default_rng(0).uniform(-1, 1, (37, 67)).astype(np.float32)
        x[row, column], x[1], x[:, 3] = np.nan, np.inf, -np.inf
        cases.append([x])
    family, types = ReductionFamily(machine), [TensorType(f32, (37, 67))]
    check(family, types, reduced(kind, dims), arrays=cases[0], more=cases[1:])


@pytest.mark.parametrize("kind", [f16, bf16, U8, IntegerType(8), i32], ids=str)
@pytest.mark.parametrize("dims", [[0], [1], [0, 2], [2]])
def test_what_is_converted_before(check, kind: Attribute, dims: list[int]) -> None:
    def build(x):
        wide = elementwise("cast", x, element_type=f32)
        op = ReduceOp.get(wide.output, "add", dims)
        return [wide, op], [op.output]

    check(FAMILY, [TensorType(kind, (5, 33, 18))], build)


@pytest.mark.parametrize("dims", [[0], [1], [0, 2], [2]])
def test_sums_of_bytes(check, dims: list[int]) -> None:
    def build(x):
        op = ReduceOp.get(x, "add", dims, accumulator=i32)
        return [op], [op.output]

    check(FAMILY, [TensorType(U8, (5, 33, 18))], build)


@MACHINES
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_ops_around(check, machine, data) -> None:
    """The root of the mean square of differences from a tensor that is repeated, and a bias."""
    shape = data.draw(st.lists(EXTENTS, min_size=3, max_size=3).filter(lambda s: np.prod(s) < 1e5))
    dims = sorted(data.draw(st.sets(st.integers(0, 2))))
    kept = [1 if dim in dims else extent for dim, extent in enumerate(shape)]
    other = [extent if data.draw(st.booleans()) else 1 for extent in shape]
    bias = [extent if data.draw(st.booleans()) else 1 for extent in kept]

    def build(x, y, b):
        difference = elementwise("sub", x, y)
        square = elementwise("mul", difference.output, difference.output)
        total = ReduceOp.get(square.output, "add", dims)
        share = ConstantOp.of(np.full([1, 1, 1], 1 / np.prod([shape[d] for d in dims]), np.float32))
        mean = elementwise("mul", total.output, share.output)
        root = elementwise("sqrt", mean.output)
        biased = elementwise("add", root.output, b)
        return [difference, square, total, share, mean, root, biased], [root.output, biased.output]

    random, shapes = np.random.default_rng(0), [shape, other, bias]
    ranges = ((1, 2), (-2, 0), (0, 1))  # Nothing cancels.
    arrays = [
        random.uniform(*ends, extents).astype(np.float32)
        for ends, extents in zip(ranges, shapes, strict=True)
    ]
    check(ReductionFamily(machine), shapes, build, arrays=arrays, relative=1e-5)


@pytest.mark.parametrize("dims", [[0], [1], [0, 1]])
def test_lanes_that_are_off_are_neutral(check, dims: list[int]) -> None:
    def build(x):
        power = elementwise("exp", x)
        op = ReduceOp.get(power.output, "add", dims)
        logarithm = elementwise("log", op.output)
        return [power, op, logarithm], [logarithm.output]

    check(FAMILY, [(21, 37)], build)


def test_results_of_what_is_not_reduced_are_refused() -> None:
    def build(x):
        root = elementwise("sqrt", x)
        op = ReduceOp.get(root.output, "add", [0])
        other = elementwise("add", op.output, root.output)
        return [root, op, other], [other.output]

    assert FAMILY.match(make_group([TensorType(f32, (1, 5))], build)) is None


@pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
def test_empty_tensors_are_refused(shape) -> None:
    assert FAMILY.match(make_group([TensorType(f32, shape)], reduced("add", [0]))) is None
