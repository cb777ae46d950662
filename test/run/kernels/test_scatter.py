"""Scatters by their family, in place and elsewhere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import IntegerType, Signedness, TensorType, f32, f64, i8, i32, i64
from xdsl.ir import Attribute

from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.scattering import REDUCTIONS, ScatterElementsOp, ScatterNdOp
from braid.lowering.cpu.kernels.scatter import ScatterFamily
from braid.targets.kernels.kernel_family import InPlace
from test.machines import HOST
from test.run.kernels.conftest import candidate_of, make_group, random_array
from test.schedules import emitted

FAMILY = ScatterFamily(HOST)
UI8 = IntegerType(8, Signedness.UNSIGNED)


def distinct_tuples(rng: np.random.Generator, data: list[int], at: list[int], length: int) -> Array:
    """Index tuples that all differ, some of whose entries count from the end."""
    count, space = int(np.prod(at)), int(np.prod(data[:length]))
    found = np.stack(np.unravel_index(rng.permutation(space)[:count], data[:length]), -1)
    negative = rng.integers(0, 2, found.shape)
    return (found - negative * np.array(data[:length])).reshape(*at, length)


@settings(max_examples=25, deadline=None)
@given(
    data=st.lists(st.sampled_from([1, 2, 3, 5, 17, 32]), min_size=1, max_size=4),
    length=st.integers(1, 4),
    count=st.integers(1, 7),
    reduction=st.sampled_from(REDUCTIONS),
    type=st.sampled_from([f32, f64, i8, i32, UI8]),
    index=st.sampled_from([i64, i32]),
    seed=st.integers(0, 99),
)
def test_slices(check, data, length, count, reduction, type, index, seed) -> None:
    length = min(length, len(data))
    at = [min(count, int(np.prod(data[:length])))]
    shapes = (data, [*at, length], [*at, *data[length:]])
    types = [TensorType(t, s) for t, s in zip((type, index, type), shapes, strict=True)]
    arrays = [random_array(t, seed) for t in types]
    tuples = distinct_tuples(np.random.default_rng(seed), data, at, length)
    arrays[1] = tuples.astype(to_numpy(index))

    def build(x, i, u):
        op = ScatterNdOp.get(x, i, u, reduction)
        return [op], [op.output]

    check(FAMILY, types, build, arrays=arrays)


@pytest.mark.parametrize("reduction", REDUCTIONS[1:])
@pytest.mark.parametrize("type", [f32, i32])
def test_updates_of_one_element(check, reduction: str, type: Attribute) -> None:
    """All of them count, also within a vector."""
    types = [TensorType(type, [5, 3]), TensorType(i64, [9, 3]), TensorType(type, [9, 3])]
    arrays = [random_array(t, n) for n, t in enumerate(types)]
    arrays[1] = np.random.default_rng(0).integers(-5, 5, (9, 3))

    def build(x, i, u):
        op = ScatterElementsOp.get(x, i, u, 0, reduction)
        return [op], [op.output]

    check(FAMILY, types, build, arrays=arrays)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_elements(check, dim: int) -> None:
    """Scatters to a part of the data: indices are smaller than it."""
    data, part = [4, 6, 5], [4, 6, 5]
    part[(dim + 1) % 3] -= 2
    types = [TensorType(f32, data), TensorType(i32, part), TensorType(f32, part)]
    rng = np.random.default_rng(dim)
    order = rng.permuted(
        np.broadcast_to(np.arange(data[dim]), (*part[:dim], *part[dim + 1 :], data[dim])), axis=-1
    )
    arrays = [random_array(t, n) for n, t in enumerate(types)]
    arrays[1] = np.ascontiguousarray(np.moveaxis(order, -1, dim), np.int32)

    def build(x, i, u):
        op = ScatterElementsOp.get(x, i, u, dim)
        return [op], [op.output]

    check(FAMILY, types, build, arrays=arrays)


@pytest.mark.parametrize(
    ("build", "pairs"),
    [
        (lambda x, i, u: ScatterNdOp.get(x, i, u), ((0, 0),)),
        (lambda u, i, x: ScatterNdOp.get(x, i, u), ((2, 0),)),
        (lambda x, i, _: ScatterNdOp.get(x, i, x), ()),
    ],
)
def test_results_over_data(build, pairs: tuple[InPlace, ...]) -> None:
    """Unless those are updates, too, as many as here."""

    def ops(*arguments):
        op = build(*arguments)
        return [op], [op.output]

    types = [TensorType(f32, [3, 4]), TensorType(i64, [3, 1]), TensorType(f32, [3, 4])]
    assert emitted(candidate_of(FAMILY, make_group(types, ops))).in_place == pairs
