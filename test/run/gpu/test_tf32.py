"""Products of f32 as tf32: what is multiplied is rounded exactly, and nothing else is."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from xdsl.dialects.builtin import f32

from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import Array
from braid.lowering.gpu.contraction.code import Code
from braid.lowering.gpu.contraction.problem import ElementKind
from braid.lowering.gpu.contraction.tensor_cores import TensorCores
from braid.lowering.gpu.kernels.conv import ConvFamily
from braid.lowering.gpu.kernels.gemm import GemmFamily
from braid.lowering.gpu.launch.gpu_kernel import GpuKernel
from braid.targets.kernels.schedules import Entries
from braid.targets.machines.gpus import with_architecture
from test.run.fallback.conftest import random_input
from test.run.gpu import kernel_models
from test.run.gpu.conftest import (
    SMALL,
    compare_with_bounds,
    conflicts,
    gpu,
    made_by_tiles,
    run_kernel,
    spilled_bytes,
)
from test.run.gpu.test_convolutions import convolution
from test.run.gpu.test_products import product
from test.schedules import emitted

MACHINE = with_architecture(gpu("sm_80"), "sm_80,+tf32")


def rounded(array: Array) -> Array:
    """To 10 bits behind the point, ties away from zero."""
    fraction, exponent = np.frexp(array.astype(np.float64))
    return np.ldexp(np.trunc(fraction * 2**11 + np.copysign(0.5, fraction)), exponent - 11).astype(
        np.float32
    )


def emit(group: FusedOp, schedule: Entries) -> GpuKernel:
    found = GemmFamily(MACHINE).match(group) or ConvFamily(MACHINE).match(group)
    assert found is not None and found.found.kind is ElementKind.TF32
    return made_by_tiles(emitted(found, schedule, symbol="tested"))


def check(group: FusedOp, schedule: Entries | None = None, seed: int = 0) -> None:
    """Check that the kernel's results are those of operands that are rounded first."""
    generator = np.random.default_rng(seed)
    arrays = [random_input(type, generator) for type in group.inputs.types]
    kernel = emit(group, schedule or SMALL)
    results = run_kernel(kernel, group, arrays)
    compare = partial(compare_with_bounds, group, [*map(rounded, arrays[:2]), *arrays[2:]])
    compare(results)
    if kernel_models.chosen is not None:
        kernel_models.chosen.take(kernel, group, arrays, results, compare)


def random_group(seed: int) -> tuple[FusedOp, Entries]:
    rng = np.random.default_rng(seed)
    schedule = {**SMALL, "depth": int(rng.choice([64, 128])), "stages": int(rng.integers(2, 5))}
    if rng.integers(4) == 0:
        return convolution(
            f32,
            (1, int(rng.integers(1, 20)), 9, 8),
            (int(rng.integers(8, 40)), 3, 2),
            stride=int(rng.integers(1, 3)),
            bias=bool(rng.integers(2)),
        ), schedule
    m, n, k = (
        int(rng.choice([8, 16, 64, 72])) if rng.integers(2) else int(rng.integers(1, 100))
        for _ in range(3)
    )
    batch = ((), (2,))[rng.integers(2)]
    return product(
        f32,
        (m, n, k),
        batch=batch,
        transposed=bool(rng.integers(2)),
        bias=(*(1 for _ in batch), 1, n) if rng.integers(2) else None,
        activation="tanh" if rng.integers(2) else None,
    ), schedule


@pytest.mark.parametrize("seed", range(3))
def test_random_groups(seed: int) -> None:
    check(*random_group(seed), seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_many_random_groups(seed: int) -> None:
    check(*random_group(seed), seed=seed)


def test_it_is_permitted_alone() -> None:
    found = GemmFamily(gpu("sm_80")).match(product(f32, (64, 64, 64)))
    assert found is not None and found.found.kind is ElementKind.F32


@pytest.mark.parametrize("transposed", [True, False])
def test_no_bank_conflicts(transposed: bool) -> None:
    conflicts()
    check(product(f32, (64, 64, 64), transposed=transposed))
    assert conflicts() == 0


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120"])
def test_default_schedules_spill_nowhere(architecture: str) -> None:
    machine = with_architecture(gpu(architecture), f"{architecture},+tf32")
    groups = [
        product(f32, shape, transposed=transposed)
        for shape in ((4096, 4096, 4096), (300, 200, 100), (2000, 2001, 1001))
        for transposed in (True, False)
    ]
    groups.append(convolution(f32, (1, 3, 225, 225), (32, 3, 3), stride=2, bias=True))
    for group in groups:
        found = GemmFamily(machine).match(group) or ConvFamily(machine).match(group)
        assert found is not None
        for schedule in found.space(0):
            assert spilled_bytes(emitted(found, schedule, symbol="tested"), architecture) == 0, (
                schedule
            )


# ---- Mutants ----


def _truncated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TensorCores, "_rounded", lambda self, code, values: values)


def _swapped(patch: pytest.MonkeyPatch) -> None:
    original = TensorCores._read_columns

    def read(self: TensorCores, code: Code, shared: object, step: int) -> list[object]:
        values = original(self, code, shared, step)  # pyright: ignore
        return [value for n in range(0, len(values), 2) for value in (values[n + 1], values[n])]

    patch.setattr(TensorCores, "_read_columns", read)


@pytest.mark.parametrize("mutate", [_truncated, _swapped])
def test_mutants_are_caught(
    mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    with pytest.raises(AssertionError):
        check(product(f32, (64, 64, 32)))
