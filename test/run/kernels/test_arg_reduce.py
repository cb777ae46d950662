"""Arg-reductions by their family."""

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

from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.dtypes import to_numpy
from braid.lowering.cpu.kernels.arg_reduce import ArgReduceFamily
from test.machines import AVX2, HOST, SSE
from test.run.kernels.conftest import make_group

FAMILY = ArgReduceFamily(HOST)
UI8 = IntegerType(8, Signedness.UNSIGNED)
UI32 = IntegerType(32, Signedness.UNSIGNED)
UI64 = IntegerType(64, Signedness.UNSIGNED)


def arg_reduce(kind: str, dim: int, last: bool = False):
    """Return a function that builds such an op."""

    def build(x):
        op = ArgReduceOp.get(x, kind, dim, select_last=last)
        return [op], [op.output]

    return build


@settings(max_examples=80, deadline=None)
@given(
    rows=st.sampled_from([1, 3]),
    extent=st.sampled_from([1, 2, 15, 16, 17, 63, 64, 65, 128, 129, 333]),
    kind=st.sampled_from(["max", "min"]),
    last=st.booleans(),
    values=st.sampled_from(["one", "few", "many"]),
    type=st.sampled_from([f32, f16, bf16, f64, i8, i32, i64, UI8, UI32, UI64]),
    seed=st.integers(0, 99),
)
def test_ties(check, rows, extent, kind, last, values, type, seed) -> None:
    """Data with the type's extremes among other values; the first or the last extreme counts."""
    rng, dtype, shape = np.random.default_rng(seed), to_numpy(type), (rows, extent)
    if type in (f32, f16, bf16, f64):
        pool = np.array([0.0, -0.0, -np.inf, np.inf, 1.0, -1.0])
    else:
        info = np.iinfo(dtype)
        pool = np.array([info.max, info.min, 0, 1], dtype)
    x = rng.choice(pool[: {"one": 1, "few": 2, "many": 9}[values]], shape).astype(dtype)
    check(FAMILY, [TensorType(type, shape)], arg_reduce(kind, 1, last), arrays=[x])


@pytest.mark.parametrize("family", [FAMILY, ArgReduceFamily(AVX2), ArgReduceFamily(SSE)])
@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("type", [f32, f64])
def test_nan_is_extreme(check, family, kind: str, last: bool, type) -> None:
    x = np.random.default_rng(0).normal(size=(4, 200)).astype(to_numpy(type))
    x[1, [7, 150]] = np.nan
    x[2, 199] = -np.nan
    x[3, 0] = np.nan
    check(family, [TensorType(type, [4, 200])], arg_reduce(kind, 1, last), arrays=[x])


def test_what_is_left_to_others() -> None:
    """Other dims than the innermost one."""
    assert FAMILY.match(make_group([TensorType(f32, [3, 8])], arg_reduce("max", 0))) is None
