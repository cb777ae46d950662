"""Elements by rank: rounds of chunks, ties, special numbers, any dim and type; and mutants."""

from collections.abc import Callable
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
    i1,
    i8,
    i32,
    i64,
)

from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.sorting import TopKOp
from braid.lowering.gpu.gpu_kernel import GpuKernel
from braid.lowering.gpu.kernels import top_k
from braid.lowering.gpu.kernels.contraction.code import Code
from braid.lowering.gpu.kernels.top_k import TopKFamily
from braid.support.errors import BraidError
from test.run.fallback.conftest import make_group
from test.run.gpu.conftest import check_group, gpu

ui8, ui16 = (IntegerType(width, Signedness.UNSIGNED) for width in (8, 16))


def group_of(element: Any, shape: tuple[int, ...], k: int, dim: int, largest: bool) -> FusedOp:
    type = TensorType(element, shape)
    return make_group([type], lambda x: [TopKOp.get(x, k, dim, largest=largest)], (), True)


def emit(group: FusedOp, symbol: str) -> GpuKernel:
    found = TopKFamily(gpu("sm_80")).match(group)
    assert found is not None
    kernel = found.emit(symbol, {})
    assert isinstance(kernel, GpuKernel)
    return kernel


def numbers(element: Any, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """With many ties, and for floats infinities, NaN and both zeros."""
    dtype = to_numpy(element)
    if np.issubdtype(dtype, np.integer):
        bounds = np.iinfo(dtype)
        found = rng.integers(max(bounds.min, -50), 50, shape)
        return np.where(rng.integers(0, 9, shape) == 0, rng.choice([bounds.min, bounds.max]), found)
    special = rng.choice([np.inf, -np.inf, np.nan, 0.0, -0.0], shape)
    return np.where(rng.integers(0, 6, shape) == 0, special, rng.integers(-30, 30, shape) / 4)


def compare(group: FusedOp, inputs: Any, outputs: Any) -> None:
    """Values and places are those of the op, NaN too."""
    op = group.body.block.first_op
    assert isinstance(op, TopKOp)
    for actual, expected in zip(outputs, op.evaluate(*inputs), strict=True):
        assert actual.dtype == expected.dtype
        wide = [own.astype(np.float64) for own in (actual, expected)]
        np.testing.assert_array_equal(*wide, "braid.top_k")


def random_case(seed: int) -> tuple[FusedOp, Any]:
    rng = np.random.default_rng(seed)
    element = (f32, f32, f16, bf16, i8, i32, ui8, ui16)[rng.integers(8)]
    shape = tuple(int(n) for n in rng.integers(1, 5, rng.integers(0, 3)))
    dim, extent = int(rng.integers(len(shape) + 1)), int(rng.integers(1, 700))
    shape = (*shape[:dim], extent, *shape[dim:])
    k = int(rng.choice([1, min(5, extent), extent, rng.integers(1, extent + 1)]))
    group = group_of(element, shape, k, dim, bool(rng.integers(2)))
    return group, numbers(element, shape, rng).astype(to_numpy(element))


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(n, marks=pytest.mark.slow) for n in range(6, 206))]
)
def test_random_rows(seed: int) -> None:
    group, values = random_case(seed)
    check_group(group, emit, {0: values}, compare=compare)


@pytest.mark.parametrize(
    ("element", "extent", "k", "rounds"),
    [(f32, 10_007, 3, 1), (i8, 600, 16, 1), (f16, 4097, 200, 3), (i8, 20_001, 400, 4)],
)
def test_long_rows(element: Any, extent: int, k: int, rounds: int) -> None:
    """Rounds of chunks, of which the last one may have fewer elements than go on."""
    rng = np.random.default_rng(0)
    shape = (2, extent)
    values = numbers(element, shape, rng).astype(to_numpy(element))
    group = group_of(element, shape, k, 1, True)
    kernel = check_group(group, emit, {0: values}, compare=compare)
    assert len(kernel.launches.launches) == rounds + 1


def test_what_is_left_to_others() -> None:
    family = TopKFamily(gpu("sm_80"))
    assert family.match(group_of(f64, (3, 8), 2, 1, True)) is None
    assert family.match(group_of(i1, (3, 8), 2, 1, True)) is None
    assert family.match(group_of(f32, (3, 8), 0, 1, True)) is None


# ---- Mutants ----

Mutate = Callable[[pytest.MonkeyPatch], None]


def _without_barrier(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Code, "barrier", lambda _: None)


def _of_fewer(patch: pytest.MonkeyPatch) -> None:
    original = top_k._places
    patch.setattr(
        top_k,
        "_places",
        lambda code, shared, count, own, before: original(
            code, code.at(shared, 8), count - 1, own, before
        ),
    )


def _missing_first(patch: pytest.MonkeyPatch) -> None:
    """Missing elements are above those that are below 0."""
    original = top_k._TopK._rank

    def rank(self: Any, code: Code, *given: Any) -> Any:
        return original(self, code, *given[:-1], code.number((1 << 63) - 1, i64))

    patch.setattr(top_k._TopK, "_rank", rank)


MUTANTS: dict[str, tuple[Mutate, str]] = {
    "no barriers": (_without_barrier, "race|no thread of the block has written"),
    "one is not compared": (_of_fewer, "top_k|differ|equal|race"),
    "missing ones come first": (_missing_first, "top_k|differ|equal|offset"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate, reason = MUTANTS[name]
    mutate(monkeypatch)
    values = np.random.default_rng(0).permutation(4097).astype(np.int32) - 5000
    with pytest.raises((BraidError, AssertionError), match=reason):
        check_group(group_of(i32, (4097,), 300, 0, True), emit, {0: values}, compare=compare)
