"""Selections by their family: the same elements, in the same order, as the op's semantics say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import (
    IntegerType,
    Signedness,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i8,
    i32,
    i64,
)

from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.sorting import TopKOp
from braid.lowering.cpu.kernels.top_k import TopKFamily
from test.machines import AVX2, HOST, SSE, distinct
from test.run.kernels.conftest import make_group

FAMILY = TopKFamily(HOST)
UI8 = IntegerType(8, Signedness.UNSIGNED)
UI32 = IntegerType(32, Signedness.UNSIGNED)
UI64 = IntegerType(64, Signedness.UNSIGNED)


def top_k(k: int, dim: int, *, largest: bool = True, results=(0, 1)):
    """Return a function that builds such an op."""

    def build(x):
        op = TopKOp.get(x, k, dim, largest=largest)
        return [op], [op.results[i] for i in results]

    return build


def with_ties(type, seed: int):
    """Few different numbers; of floats some NaN, infinities and zeros of both signs."""
    rng = np.random.default_rng(seed)
    dtype, shape = to_numpy(type.element_type), type.get_shape()
    special = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 3e-40, 1 + 1e-15]
    if type.element_type in (f32, f16, bf16, f64):
        usual = rng.normal(size=shape)
        chosen = np.where(rng.integers(0, 4, shape) == 0, rng.choice(special, shape), usual)
        return chosen.astype(dtype)
    info = np.iinfo(dtype)
    return rng.choice(np.array([info.min, info.min + 1, 0, 1, info.max, 77], dtype), shape)


@settings(max_examples=40, deadline=None)
@given(
    outer=st.sampled_from([1, 3]),
    extent=st.sampled_from([1, 2, 15, 16, 17, 63, 64, 65, 100, 129, 200, 333]),
    inner=st.sampled_from([1, 1, 3]),
    k=st.sampled_from([1, 2, 5, 32, 33, 100, 333]),
    largest=st.booleans(),
    type=st.sampled_from([f32, f16, bf16, f64, i8, i32, i64, UI8, UI32, UI64]),
    seed=st.integers(0, 99),
)
def test_shapes_and_types(check, outer, extent, inner, k, largest, type, seed) -> None:
    tensor = TensorType(type, [outer, extent, inner])
    arrays = [with_ties(tensor, seed)]
    check(FAMILY, [tensor], top_k(min(k, extent), 1, largest=largest), arrays=arrays)


@pytest.mark.parametrize("machine", distinct(HOST, AVX2, SSE), ids=lambda machine: machine.name)
@pytest.mark.parametrize("k", [1, 7, 40])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("type", [f32, f64])
def test_long_rows(check, machine, k: int, largest: bool, type) -> None:
    """Candidates are sorted many times, or never after the first ones: rows in any order."""
    x = np.random.default_rng(k).normal(size=(7, 5003)).astype(to_numpy(type))
    x[2:4] = np.sort(x[2:4], axis=1)
    x[4:6] = np.sort(x[4:6], axis=1)[:, ::-1]
    x[6] = 1
    check(
        TopKFamily(machine), [TensorType(type, x.shape)], top_k(k, 1, largest=largest), arrays=[x]
    )


@pytest.mark.parametrize("results", [(0,), (1,), (1, 0)])
def test_results(check, results) -> None:
    """Not all of them have to be asked for, in any order."""
    check(FAMILY, [[4, 50]], top_k(3, 1, results=results))


def test_what_is_left_to_others() -> None:
    assert FAMILY.match(make_group([TensorType(f32, [3, 8])], top_k(0, 1))) is None
