"""Elements by rank: rounds of chunks, ties, special numbers, any dim and type; and mutants."""

from collections.abc import Callable, Sequence
from dataclasses import replace
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
from braid.lowering.gpu.contraction.code import Code
from braid.lowering.gpu.kernels import radix_select, top_k
from braid.lowering.gpu.kernels.radix_select import Digits, Selection
from braid.lowering.gpu.kernels.top_k import TopKFamily
from braid.lowering.gpu.launch.gpu_kernel import GpuKernel
from braid.support.errors import BraidError
from test.run.fallback.conftest import make_group
from test.run.gpu.conftest import check_group, gpu, spilled_bytes
from test.run.gpu.mutants import Mutate, without_barrier
from test.schedules import emitted

ui8, ui16 = (IntegerType(width, Signedness.UNSIGNED) for width in (8, 16))


def group_of(element: Any, shape: tuple[int, ...], k: int, dim: int, largest: bool) -> FusedOp:
    type = TensorType(element, shape)
    return make_group([type], lambda x: [TopKOp.get(x, k, dim, largest=largest)], (), True)


def emit(group: FusedOp, symbol: str) -> GpuKernel:
    found = TopKFamily(gpu("sm_80")).match(group)
    assert found is not None
    kernel = emitted(found, symbol=symbol)
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
    [
        *[(f32, 10_007, 3, 1), (i8, 600, 16, 1), (f16, 4097, 200, 1), (bf16, 2000, 1900, 0)],
        *[(i8, 20_001, 400, 2), (f32, 2049, 17, 1)],
        pytest.param(ui16, 12_289, 4097, 0, marks=pytest.mark.slow),
    ],
)
def test_long_rows(element: Any, extent: int, k: int, rounds: int) -> None:
    """Rounds of chunks; the last one may have fewer elements than continue."""
    rng = np.random.default_rng(0)
    shape = (2 if rounds else 1, extent)  # without rounds, a block passes over all of a row
    values = numbers(element, shape, rng).astype(to_numpy(element))
    group = group_of(element, shape, k, 1, True)
    kernel = check_group(group, emit, {0: values}, compare=compare)
    assert len(kernel.launches.launches) == rounds + 1


def rounds_of(sizes: Sequence[int]) -> Mutate:
    """Chunks of these sizes in rounds, and then of all that is left."""

    def rounds(self: Any) -> tuple[float, tuple[Any, ...]]:
        made: list[Any] = []
        count = self._extent
        for size in sizes:
            chunks = -(-count // size)
            left = (chunks - 1) * self._k + min(self._k, count - (chunks - 1) * size)
            made.append(top_k._Round(count, size, left))
            count = left
        return 0.0, tuple(made)

    return lambda patch: patch.setattr(top_k._TopK, "_plan", property(rounds))


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(n, marks=pytest.mark.slow) for n in range(6, 206))]
)
def test_random_rounds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of any size, whatever is fastest, with equal numbers around the last one."""
    rng = np.random.default_rng(seed)
    element = (f32, f16, bf16, i8, i32, ui8, ui16)[seed % 7]
    extent = int(rng.integers(18, 900))
    k = int(rng.integers(17, extent))
    sizes = [int(rng.integers(k, extent + 1)) for _ in range(rng.integers(1, 3))]
    rounds_of(sizes)(monkeypatch)
    shape, dim = [((extent,), 0), ((2, extent), 1), ((extent, 2), 0)][seed % 3]
    values = numbers(element, shape, rng).astype(to_numpy(element))
    if rng.integers(2):
        values = rng.choice(values.ravel()[: 1 + seed % 3], shape)
    group = group_of(element, shape, k, dim, bool(rng.integers(2)))
    check_group(group, emit, {0: values}, compare=compare)


@pytest.fixture(scope="module")
def largest() -> list[GpuKernel]:
    """Of the largest chunks, with the most digits, and by warps."""
    return [emit(group_of(f32, (64, 128_256), k, 1, True), "tested") for k in (8, 100)]


@pytest.mark.parametrize("architecture", ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120"])
def test_nothing_is_spilled(largest: list[GpuKernel], architecture: str) -> None:
    assert [spilled_bytes(kernel, architecture) for kernel in largest] == [0, 0]


@pytest.mark.parametrize(("extent", "k"), [(1_000_000, 1000), (1 << 30, 3200), (1 << 24, 1365)])
def test_few_plans_are_compared(extent: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of a million elements came to the same counts in millions of ways."""
    compared: list[int] = []
    comparing = top_k._TopK._comparing

    def counted(self: Any, count: int) -> float:
        compared.append(count)
        return comparing(self, count)

    monkeypatch.setattr(top_k._TopK, "_comparing", counted)
    found = TopKFamily(gpu("sm_90a")).match(group_of(f32, (1, extent), k, 1, largest=True))
    assert found is not None and found.seconds(found.layouts[0]) > 0
    assert len(compared) == len(set(compared)) < 200
    assert len(found._rounds) < 50


def test_what_is_left_to_others() -> None:
    family = TopKFamily(gpu("sm_80"))
    assert family.match(group_of(f64, (3, 8), 2, 1, True)) is None
    assert family.match(group_of(i1, (3, 8), 2, 1, True)) is None
    assert family.match(group_of(f32, (3, 8), 0, 1, True)) is None


# ---- Mutants ----


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
    original = top_k._TopK._or_missing

    def rank(self: Any, code: Code, *given: Any) -> Any:
        return original(self, code, *given[:-1], code.number((1 << 63) - 1, i64))

    patch.setattr(top_k._TopK, "_or_missing", rank)


def _to_all_buckets(patch: pytest.MonkeyPatch) -> None:
    """Return code that clears a histogram except for its last bucket."""
    original = Selection._clear

    def clear(self: Any, code: Code) -> None:
        original(replace(self, thread=code.add(self.thread, 1)), code)

    patch.setattr(Selection, "_clear", clear)


def _digits(change: Callable[[Digits], Digits]) -> Mutate:
    original = Digits.of

    def of(type: Any, extent: int) -> Digits:
        return change(original(type, extent))

    return lambda patch: patch.setattr(Digits, "of", staticmethod(of))


def _inside_of_all(patch: pytest.MonkeyPatch) -> None:
    """Threads behind the end of a chunk count what they have."""
    original = Selection.first

    def first(self: Any, code: Code, *given: Any) -> Any:
        every = [code.number(1, i1)] * len(self.inside)
        return original(replace(self, inside=every), code, *given)

    patch.setattr(Selection, "first", first)


def _from_own_lane(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(radix_select, "_from_lane", lambda code, value, lane: value)


def _without_atomics(patch: pytest.MonkeyPatch) -> None:
    def counted(code: Code, counter: Any) -> Any:
        before = code.load(counter, i32, 4)
        code.store(code.add(before, 1), counter, 4)
        return before

    patch.setattr(radix_select, "_counted", counted)


MUTANTS: dict[str, tuple[Mutate, str]] = {
    "no barriers": (_without_barrier, "race|no thread of the block has written"),
    "one is not compared": (_of_fewer, "top_k|differ|equal|race"),
    "missing ones come first": (_missing_first, "top_k|differ|equal|offset"),
}


SELECTION_MUTANTS: dict[str, tuple[Mutate, str]] = {
    "counts before all are cleared": (without_barrier(0), "race|no thread of the block"),
    "finds a digit before all are counted": (without_barrier(1), "race"),
    "the second digit likewise": (without_barrier(2), "race"),
    "one count is not cleared": (_to_all_buckets, "no thread of the block has written"),
    "counts that are not atomic": (_without_atomics, "race"),
    "the digit of another lane": (_from_own_lane, "top_k|differ|equal|offset|divergent"),
    "no digits of indices": (_digits(lambda d: replace(d, places=d.places[:4])), "offset|top_k"),
    "unsigned numbers": (_digits(lambda d: replace(d, signed=False)), "top_k"),
    "those behind the end": (_inside_of_all, "top_k|no thread|offset"),
}


@pytest.mark.parametrize("name", SELECTION_MUTANTS)
def test_mutants_of_selections_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate, reason = SELECTION_MUTANTS[name]
    rounds_of([700])(monkeypatch)
    mutate(monkeypatch)
    values = np.random.default_rng(0).integers(-30, 30, (700,)).astype(np.int32)
    with pytest.raises((BraidError, AssertionError), match=reason):
        check_group(group_of(i32, (700,), 100, 0, True), emit, {0: values}, compare=compare)


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate, reason = MUTANTS[name]
    mutate(monkeypatch)
    values = np.random.default_rng(0).permutation(4097).astype(np.int32) - 5000
    with pytest.raises((BraidError, AssertionError), match=reason):
        check_group(group_of(i32, (4097,), 300, 0, True), emit, {0: values}, compare=compare)
