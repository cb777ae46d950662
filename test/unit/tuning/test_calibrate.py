"""Measuring this machine: what is run computes what it says, and figures are plausible."""

import time
from pathlib import Path

import numpy as np
import pytest

from braid.lowering.cpu.call import CallableKernel
from braid.targets.machines.calibration import RATES, SHARES, TIMES, flops_fact
from braid.targets.machines.cpus import NATIVE, cpu_machine
from braid.tuning import calibrate as module
from braid.tuning import rate_kernels
from braid.tuning.calibrate import cache_sizes, calibrate, joining, memory_levels
from braid.tuning.rate_kernels import TYPES, RateKernel, multiply_adds, scaled_copy
from braid.tuning.rate_programs import launching_program, parallel_program

HOST = cpu_machine(NATIVE)
NUMPY = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i32": np.int32, "i8": np.int8}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))


def arrays_of(kernel: RateKernel) -> list[np.ndarray]:
    return [np.ones(count, np.dtype(name)) for name, count in kernel.arguments]


@pytest.mark.parametrize("element_type", NUMPY)
def test_multiply_adds_are_done(element_type: str) -> None:
    grid = 5
    rate = multiply_adds(element_type, HOST, grid)
    x, y = arrays_of(rate)
    lanes = int(HOST.fact("vector_bytes")) // x.itemsize
    count = len(x) // lanes
    assert rate.amount == 2 * grid * len(x) and count >= 12
    assert x.dtype == NUMPY[element_type]
    x = np.random.default_rng(0).integers(-1, 2, len(x)).astype(x.dtype)
    CallableKernel(rate.kernel)(x, y)
    rows = x.reshape(count, lanes)
    expected = rows.copy()
    for _ in range(grid):
        expected = expected * rows[0] + rows[1]
    np.testing.assert_array_equal(y.reshape(count, lanes), expected)


@pytest.mark.parametrize("name", ["x86-64", "x86-64-v3", "x86-64-v4", "armv8-a", "neoverse-n1"])
@pytest.mark.parametrize("element_type", TYPES)
def test_kernels_are_for_the_machine(name: str, element_type: str) -> None:
    machine = cpu_machine(name)
    rate = multiply_adds(element_type, machine, 1)
    text = str(rate.kernel.module)
    fused = {"x86-64": set[str](), "neoverse-n1": {"f16", "f32", "f64"}}.get(name, {"f32", "f64"})
    assert ("vector.fma" in text) == (element_type in fused)
    assert text.count("vector.store") < machine.fact("vector_registers")
    scaled_copy(1 << 16, machine, 1).kernel.module.verify()


@pytest.mark.parametrize("bytes", [1, 4096, 24_576, 100_000])
def test_copies_move_what_they_say(bytes: int) -> None:
    rate = scaled_copy(bytes, HOST, 3)
    x, factor, y = arrays_of(rate)
    assert rate.amount == 3 * (x.nbytes + y.nbytes)
    assert abs(x.nbytes + y.nbytes - bytes) <= 8 * 4 * len(factor)
    x = np.arange(len(x), dtype=np.float32)
    CallableKernel(rate.kernel)(x, factor * 3, y)
    np.testing.assert_array_equal(y, 3 * x)


@pytest.mark.parametrize("threads", [2, 3, 16])
@pytest.mark.parametrize("join", [0.0, 4e-6])
@pytest.mark.parametrize("efficiency", [0.25, 0.8, 1.0])
def test_joining_inverts_the_pool(threads: int, join: float, efficiency: float) -> None:
    alone = (2e-6, 1e-4)
    small, large = (join + s / (1 + (threads - 1) * efficiency) for s in alone)
    found = joining(threads, alone, (small, large))
    assert found == pytest.approx((join, efficiency), rel=1e-6, abs=1e-12)


def test_threads_that_do_not_help_have_figures_too() -> None:
    join, efficiency = joining(2, (2e-6, 1e-4), (5e-5, 3e-4))
    assert join > 0 and 0 < efficiency < 0.1
    assert joining(2, (2e-6, 1e-4), (5e-6, 1e-6))[1] == 1.0


def test_levels_get_larger() -> None:
    sizes = [level.bytes for level in memory_levels(HOST)]
    assert sizes == sorted(sizes) and len(set(sizes)) == len(sizes)
    assert {level.fact for level in memory_levels(HOST)} <= set(RATES)


def test_caches_that_nobody_tells_of(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "_CACHES", tmp_path)
    assert cache_sizes() == {}
    for index, (level, kind, size) in enumerate(
        [(1, "Data", "48K"), (1, "Instruction", "32K"), (2, "Unified", "2048K"), (3, "Unified", "")]
    ):
        directory = tmp_path / f"index{index}"
        directory.mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (directory / name).write_text(f"{text}\n")
    assert cache_sizes() == {1: 48 << 10, 2: 2 << 20}


def test_programs_run() -> None:
    launching_program(3, 5).run()
    parallel_program(2, 1000, 2).run()


def test_a_calibration_has_all_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short one: what is measured is checked by the slow test."""
    for name, value in {
        "ROUNDS": 1,
        "_KERNEL_SECONDS": 1e-3,
        "_REPEATED_BYTES": 1 << 20,
        "_REPEATED_OPS": 1000,
        "_LAUNCHES": 2,
        "_LAUNCHING_RUNS": 3,
        "_PARALLEL_KERNELS": 1,
        "_PARALLEL_RUNS": 3,
        "_MOST_BYTES": 1 << 24,
        "TYPES": ("f32", "i32"),
    }.items():
        monkeypatch.setattr(module, name, value)
    told: list[str] = []
    facts = calibrate(HOST, told.append).facts
    assert {"flops", "flops_i32", "launch_seconds", *RATES} <= set(facts)
    assert set(facts) <= {"flops", "flops_i32", *RATES, *TIMES, *SHARES}
    assert all(1e6 < facts[name] < 1e15 for name in ("flops", "flops_i32", *RATES))
    assert told[0].startswith("operations")


def test_types_without_code_are_left_out() -> None:
    good = multiply_adds("i32", HOST, 1000)
    text = """
      func.func @copy(%b: index, %e: index) {
        "unknown.op"() : () -> ()
        func.return
      }"""
    bad = RateKernel(rate_kernels._kernel("copy", text, 1), 1.0, (), "")
    timed = module._timed([("flops", bad), ("flops_i32", good)])
    assert [fact for fact, *_ in timed] == ["flops_i32"]


@pytest.mark.slow
def test_figures_agree_with_what_others_reach() -> None:
    """In less than a minute; numpy's products and copies are within reach of what was measured."""
    began = time.monotonic()
    facts = calibrate(HOST).facts
    assert time.monotonic() - began < 60
    assert facts["cached_bandwidth"] > facts["memory_bandwidth"]
    a = np.ones((1024, 1024), np.float32)
    x, y = np.ones(1 << 26, np.float32), np.zeros(1 << 26, np.float32)
    product = least(lambda: np.matmul(a, a))
    copy = least(lambda: np.copyto(y, x))
    cores = module.core_count()
    assert facts["flops"] > 0.6 * 2 * 1024**3 / product / cores
    assert 0.4 < facts["memory_bandwidth"] / (2 * x.nbytes / copy) < 2.5
    assert set(map(flops_fact, ("f32", "f64", "i32"))) <= set(facts)
    assert 0 < facts["launch_seconds"] < 20e-6


def least(run) -> float:
    times: list[float] = []
    for _ in range(7):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)
