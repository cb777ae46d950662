"""Cumulative reductions: random shapes, kinds and types, along any dim; and mutants."""

from typing import Any

import numpy as np
import pytest
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
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.scan import ScanOp
from braid.lowering.gpu.kernels import scan
from braid.lowering.gpu.kernels.scan import ScanFamily
from braid.lowering.gpu.launch.gpu_kernel import GpuKernel
from braid.support.errors import BraidError
from test.run.fallback.conftest import make_group
from test.run.gpu.conftest import check_group, gpu
from test.run.gpu.mutants import Mutate, without_barrier
from test.schedules import emitted

ui8 = IntegerType(8, Signedness.UNSIGNED)
ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}


RNG = np.random.default_rng(0)


def group_of(
    element: Any, shape: tuple[int, ...], kind: str, dim: int, exclusive: bool, reverse: bool
) -> FusedOp:
    type = TensorType(element, shape)

    def build(x: Any) -> Any:
        return [ScanOp.get(x, kind, dim, exclusive=exclusive, reverse=reverse)]

    return make_group([type], build, ())


def emit(group: FusedOp, symbol: str) -> GpuKernel:
    found = ScanFamily(gpu("sm_80")).match(group)
    assert found is not None
    kernel = emitted(found, symbol=symbol)
    assert isinstance(kernel, GpuKernel)
    return kernel


def compare(group: FusedOp, inputs: Any, outputs: Any) -> None:
    """Integers and extremes are exact; errors of others correspond to the number of roundings."""
    op = group.body.block.first_op
    assert isinstance(op, ScanOp)
    ((actual,), (x,)) = outputs, inputs
    if op.kind.data in ("maximum", "minimum") or actual.dtype.kind in "iu":
        (expected,) = op.evaluate(x)
        np.testing.assert_array_equal(*(a.astype(np.float64) for a in (actual, expected)))
        return
    (expected,), (sizes,) = (op.evaluate(a.astype(np.float64)) for a in (x, np.abs(x)))
    depth = x.shape[op.dim.value.data]
    own = ROUNDING[actual.dtype.name]
    sums = min(own, 2.0**-24)
    allowed = own * np.abs(expected) + 2 * depth * sums * sizes
    assert (np.abs(actual.astype(np.float64) - expected) <= allowed).all()


def random_case(seed: int) -> tuple[FusedOp, Any]:
    rng = np.random.default_rng(seed)
    element = (f32, f32, f16, bf16, f64, i8, i32, i64, ui8)[rng.integers(9)]
    shape = tuple(int(n) for n in rng.integers(1, 5, rng.integers(0, 3)))
    dim, extent = int(rng.integers(len(shape) + 1)), int(rng.integers(1, 800))
    shape = (*shape[:dim], extent, *shape[dim:])
    kind = ("add", "mul", "maximum", "minimum")[rng.integers(4)]
    group = group_of(element, shape, kind, dim, bool(rng.integers(2)), bool(rng.integers(2)))
    values = rng.integers(0 if element == ui8 else -9, 9, shape).astype(np.float64)
    if element in (f32, f16, bf16, f64):
        values = 1 + values / 400 if kind == "mul" else values / 8
    return group, values.astype(to_numpy(element))


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(n, marks=pytest.mark.slow) for n in range(6, 206))]
)
def test_random_scans(seed: int) -> None:
    group, values = random_case(seed)
    kernel = check_group(group, emit, {0: values}, compare=compare)
    assert len(kernel.launches.launches) == 1 and kernel.scratch_bytes == 0


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("element", [f16, i8, f64], ids=str)
def test_tiles_that_are_read_wide(element: Any, reverse: bool, exclusive: bool) -> None:
    group = group_of(element, (2, 4112), "maximum", 1, exclusive, reverse)
    values = RNG.integers(-100, 100, (2, 4112)).astype(to_numpy(element))
    values[:, ::7] += (np.arange(588) // 40).astype(values.dtype)
    check_group(group, emit, {0: values}, compare=compare)


def test_nan_goes_on() -> None:
    values = np.arange(600, dtype=np.float32)
    values[300] = np.nan
    for kind in ("add", "maximum"):
        group = group_of(f32, (600,), kind, 0, False, False)
        check_group(group, emit, {0: values}, compare=lambda *own: _nan_from(own[2][0], 300))


def _nan_from(result: Any, place: int) -> None:
    assert np.isfinite(result[:place]).all() and np.isnan(result[place:]).all()


# ---- Mutants ----


def _half_of_a_warp(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scan, "_WARP", 16)


MUTANTS: dict[str, tuple[Mutate, str]] = {
    "no barrier behind totals": (without_barrier(0), "race|no thread of the block has written"),
    "no barrier behind a tile": (without_barrier(1), "race"),
    "half of a warp": (_half_of_a_warp, "a shuffle for lanes"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate, reason = MUTANTS[name]
    mutate(monkeypatch)
    group = group_of(i32, (3000,), "add", 0, False, False)
    values = np.arange(1, 3001, dtype=np.int32)
    with pytest.raises((BraidError, AssertionError), match=reason):
        check_group(group, emit, {0: values}, compare=compare)
