"""Matmuls whose K is split between blocks: parts, their sum, and the epilogue."""

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16, f32, i8

from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.contraction.kernel import Product
from braid.lowering.gpu.contraction.partial_sums import PartialSums
from braid.lowering.gpu.kernels.conv import ConvFamily
from braid.lowering.gpu.kernels.gemm import GemmFamily
from braid.lowering.gpu.launch.gpu_kernel import GpuKernel
from braid.support.errors import BraidError
from braid.targets.kernels.schedules import Entries
from braid.targets.machines.load import load_target
from test.run.fallback.conftest import random_input
from test.run.gpu.conftest import PLAIN, SMALL, check_group, gpu, run_kernel
from test.run.gpu.test_convolutions import convolution
from test.run.gpu.test_products import product
from test.schedules import emitted


def emitter(schedule: Entries) -> Callable[[FusedOp, str], GpuKernel]:
    def emit(group: FusedOp, symbol: str) -> GpuKernel:
        machine = gpu("sm_80")
        found = GemmFamily(machine).match(group) or ConvFamily(machine).match(group)
        assert found is not None
        made = emitted(found, schedule, symbol=symbol)
        assert isinstance(made, GpuKernel) and len(made.launches.launches) == 2
        return made

    return emit


def random_group(seed: int) -> tuple[FusedOp, Entries]:
    rng = np.random.default_rng(seed)
    element = (f32, bf16, f16, i8)[rng.integers(4)]
    schedule = {**(PLAIN if element == f32 else SMALL), "splits": int(rng.integers(2, 6))}
    is_float = element != i8
    if rng.integers(5) == 0:
        return convolution(
            element,
            (1, int(rng.choice([3, 8, 20])), 7, 6),
            (int(rng.integers(8, 20)), 3, 3),
            bias=bool(rng.integers(2)),
            residual=bool(rng.integers(2)),
        ), schedule
    m, n = (
        int(rng.choice([8, 16, 64])) if rng.integers(2) else int(rng.integers(1, 80))
        for _ in range(2)
    )
    depth = int(rng.choice([128, 256, 512])) if rng.integers(2) else int(rng.integers(1, 500))
    batch = ((), (2,))[rng.integers(2)]
    bias = (None, (*(1 for _ in batch), 1, n), (*batch, m, n))[rng.integers(3)]
    return product(
        element,
        (m, n, depth),
        batch=batch,
        transposed=bool(rng.integers(2)),
        bias=bias,
        # Of sums in the tens a tanh would show the last bits, beside which it is 1 at most.
        activation=("abs" if element == f32 else "tanh") if is_float and rng.integers(2) else None,
    ), schedule


@pytest.mark.parametrize("seed", range(3))
def test_random_groups(seed: int) -> None:
    group, schedule = random_group(seed)
    check_group(group, emitter(schedule), seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_many_random_groups(seed: int) -> None:
    group, schedule = random_group(seed)
    check_group(group, emitter(schedule), seed=seed, unaligned=seed % 10 == 0)


def test_unaligned_buffers() -> None:
    group = product(bf16, (9, 24, 200), bias=(1, 24))
    check_group(group, emitter({**SMALL, "splits": 3}), unaligned=True)


def test_results_are_the_same_each_time() -> None:
    """Parts are added in their order, which no block changes."""
    group = product(f32, (20, 30, 300))
    kernel = emitter({**PLAIN, "splits": 4})(group, "tested")
    arrays = [random_input(type, np.random.default_rng(0)) for type in group.inputs.types]
    first, second = (run_kernel(kernel, group, arrays)[0] for _ in range(2))
    assert np.array_equal(first, second)


@pytest.mark.parametrize(
    ("shape", "split"), [((128, 128, 16384), True), ((4096, 4096, 4096), False)]
)
def test_few_tiles_are_split(shape: tuple[int, int, int], split: bool) -> None:
    """And only these: where tiles are many, their parts would only cost memory."""
    machine = load_target("gpu-a100").device("gpu:0").machine
    found = GemmFamily(machine).match(product(bf16, shape, transposed=True))
    assert found is not None
    schedules = list(found.space(0))
    assert (schedules[0].splits > 1) == split
    assert all(own.splits == 1 for own in schedules) or split


# ---- Mutants ----


def _same_part(patch: pytest.MonkeyPatch) -> None:
    original = PartialSums.store
    patch.setattr(
        PartialSums,
        "store",
        lambda self, code, scratch, split, *rest: original(
            self, code, scratch, code.mul(split, 0), *rest
        ),
    )


def _one_part_less(patch: pytest.MonkeyPatch) -> None:
    original = PartialSums.total

    def total(self: PartialSums, *rest: object) -> object:
        fewer = PartialSums(self.splits - 1, *(getattr(self, n) for n in _FIELDS))
        return original(fewer, *rest)  # pyright: ignore

    patch.setattr(PartialSums, "total", total)


_FIELDS = ("batches", "rows", "columns", "is_integer")


def _shorter_parts(patch: pytest.MonkeyPatch) -> None:
    original = Product.turns.fget
    assert original is not None
    patch.setattr(Product, "turns", property(lambda self: max(original(self) - 1, 1)))


def _less_memory(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartialSums, "bytes", property(lambda self: self.splits * self._part - 16))


@pytest.mark.parametrize("mutate", [_same_part, _one_part_less, _shorter_parts, _less_memory])
def test_mutants_are_caught(
    mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    with pytest.raises((BraidError, AssertionError)):
        check_group(product(bf16, (64, 64, 400)), emitter({**SMALL, "splits": 3}))
