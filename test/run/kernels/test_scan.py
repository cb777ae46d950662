"""Scans by their family, in place and elsewhere."""

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

from braid.dialects.braid.scan import ScanOp
from braid.lowering.cpu.kernels.scan import ScanFamily
from test.machines import AVX512, HOST, SSE
from test.run.kernels.conftest import candidate_of, make_group
from test.schedules import emitted

FAMILY = ScanFamily(HOST)
UI8 = IntegerType(8, Signedness.UNSIGNED)
UI64 = IntegerType(64, Signedness.UNSIGNED)


def scan(kind: str, dim: int, exclusive: bool = False, reverse: bool = False):
    """Return a function that builds such an op."""

    def build(x):
        op = ScanOp.get(x, kind, dim, exclusive=exclusive, reverse=reverse)
        return [op], [op.output]

    return build


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.sampled_from([1, 2, 3, 7, 16, 37]), min_size=1, max_size=4),
    dim=st.integers(0, 3),
    kind=st.sampled_from(["add", "mul", "maximum", "minimum", "and", "or"]),
    exclusive=st.booleans(),
    reverse=st.booleans(),
    type=st.sampled_from([f32, f64, i8, i32, i64, UI8, UI64]),
)
def test_options(check, shape, dim, kind, exclusive, reverse, type) -> None:
    if kind in ("and", "or") and type in (f32, f64):
        kind = "add"
    build = scan(kind, dim % len(shape), exclusive, reverse)
    check(FAMILY, [TensorType(type, shape)], build, relative=1e-5)


@pytest.mark.parametrize("inner", [1, 5, 16, 127, 128, 129, 300])
@pytest.mark.parametrize("outer", [1, 7, 8, 9, 17])
def test_blocks(check, outer: int, inner: int) -> None:
    """Whole and partial numbers of rows and of vectors."""
    check(FAMILY, [[outer, 5, inner]], scan("add", 1))


@pytest.mark.parametrize("type", [f16, bf16])
@pytest.mark.parametrize("shape", [(3, 70), (70, 3), (70, 40)])
def test_halves(check, type, shape) -> None:
    """Are summed in f32, as the op says."""
    for dim in (0, 1):
        check(FAMILY, [TensorType(type, shape)], scan("add", dim), relative=1e-6)


@pytest.mark.parametrize("kind", ["add", "mul", "maximum", "minimum"])
@pytest.mark.parametrize("dim", [0, 1])
def test_extremes(check, kind: str, dim: int) -> None:
    """A NaN stays, and the first element is as it was, whatever is neutral."""
    x = np.array([[-0.0, np.inf, 1], [np.nan, -np.inf, 2], [1, 3, -np.inf]], np.float32)
    check(FAMILY, [list(x.shape)], scan(kind, dim), arrays=[x], relative=1e-6)


@pytest.mark.parametrize("machine", [AVX512, SSE])
def test_only_inclusive_scans_run_in_place(machine) -> None:
    types = [TensorType(f32, [8, 9])]
    for exclusive in (False, True):
        group = make_group(types, scan("add", 0, exclusive))
        kernel = emitted(candidate_of(ScanFamily(machine), group))
        assert kernel.in_place == (() if exclusive else ((0, 0),))


def test_empty_scans_are_left_alone() -> None:
    assert FAMILY.match(make_group([TensorType(f32, [0, 4])], scan("add", 0))) is None
