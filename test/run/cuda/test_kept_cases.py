"""Kernels that run on a GPU as models of their own, and that are kept and run elsewhere."""

import gc
import json
import os
import re
import time
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, bf16, f32

from benchmarks.case_process import READY, CaseLost, CaseProcess, run_side_by_side
from benchmarks.command import status_of
from benchmarks.gpu_replay import Replayed, main, replay, replay_all
from benchmarks.kept_cases import KeptCase, kept_names
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.fallback.emit_fallback import emit_fallback
from braid.support.errors import BraidError
from test.run.cuda.conftest import TARGET, Driver
from test.run.fallback.conftest import make_group, random_input
from test.run.gpu import test_hopper_products as hopper
from test.run.gpu.conftest import compare_with_bounds, run_kernel
from test.run.gpu.kernel_models import BesidesEmulator, GpuTarget
from test.run.gpu.test_products import product
from test.run.gpu.test_rows import softmax
from test.run.gpu.test_transposed_nests import transposed


def take(besides: BesidesEmulator, group: FusedOp, unaligned: bool = False) -> None:
    kernel = emit_fallback(group, "tested")
    inputs = [random_input(type, np.random.default_rng(0)) for type in group.inputs.types]
    outputs = run_kernel(kernel, group, inputs)
    compare = partial(compare_with_bounds, group, inputs)
    besides.take(kernel, group, inputs, outputs, compare, unaligned)


@pytest.mark.parametrize("unaligned", [False, True])
def test_kernels_run_on_the_gpu_too(driver: Driver, unaligned: bool) -> None:
    """Of several operands, in layouts; with entries for buffers that begin anywhere."""
    besides = BesidesEmulator(GpuTarget(TARGET))
    take(besides, transposed(bf16, (18, 24), (1, 0)), unaligned)
    take(besides, product(f32, (9, 7, 5), transposed=True, bias=(1, 7)), unaligned)
    gc.collect()
    driver.check()
    assert driver.calls().count("cuGraphLaunch") == 4


def test_wrong_results_of_the_gpu_are_seen(driver: Driver) -> None:
    """Only it has this, since the model differs from the emulated kernel."""
    group = softmax(f32, 3, 40)
    other = make_group([TensorType(f32, (3, 40))], lambda x: [elementwise("abs", x)], ())
    inputs = [random_input(type, np.random.default_rng(0)) for type in group.inputs.types]
    with pytest.raises(AssertionError, match="softmax"):
        BesidesEmulator(GpuTarget(TARGET)).take(
            emit_fallback(other, "tested"),
            group,
            inputs,
            [np.zeros((3, 40), np.float32)],
            partial(compare_with_bounds, group, inputs),
        )


def test_what_a_target_has_not_is_left_out(driver: Driver) -> None:
    """Kernels of Hopper on other GPUs."""
    group = hopper.product_group(bf16, (64, 64, 64))
    kernel = hopper.emitter(hopper.SMALL)(group, "tested")
    BesidesEmulator(GpuTarget(TARGET)).take(kernel, group, [], [], lambda _: pytest.fail("it ran"))
    assert not GpuTarget(TARGET).has_tensor_maps and GpuTarget("gpu-h100").has_tensor_maps


@pytest.fixture
def kept(driver: Driver, tmp_path: Path) -> Path:
    """Three cases: one is right, one has other results expected, and one is damaged."""
    besides = BesidesEmulator(GpuTarget(TARGET), tmp_path / "kept")
    for group in (transposed(bf16, (18, 24), (1, 0)), softmax(f32, 3, 40), softmax(f32, 2, 30)):
        take(besides, group)
    right, wrong, damaged = kept_names(tmp_path / "kept")
    with np.load(tmp_path / "kept" / f"{wrong}.npz") as arrays:
        changed = dict(arrays)
    changed["result0"].view(np.float32)[41] += 0.01
    np.savez(tmp_path / "kept" / f"{wrong}.npz", **changed)
    path = tmp_path / "kept" / f"{damaged}.braid"
    path.write_bytes(path.read_bytes()[:1000])
    assert right.startswith("test_kept_cases_test_")
    return tmp_path / "kept"


def test_kept_cases_are_replayed(
    kept: Path, driver: Driver, capsys: pytest.CaptureFixture[str]
) -> None:
    """In separate processes; the exit status says whether all are right."""
    record = kept / "found.json"
    command = [str(kept), "--jobs", "2", "--json", str(record)]
    assert status_of(main, command) == 1
    lines = capsys.readouterr().out.splitlines()
    names = kept_names(kept)
    assert any(line.startswith(f"WRONG {names[1]}: ") and "at [1, 1]" in line for line in lines)
    assert any(line.startswith(f"WRONG {names[2]}: ") and "error" in line for line in lines)
    assert lines[-1].endswith("1 right, 1 wrong, 1 without results")
    found = {own["name"]: own for own in json.loads(record.read_text())}
    assert [found[name]["right"] for name in names] == [True, False, False]
    assert [found[name]["lost"] for name in names] == [False, False, True]
    assert status_of(main, [*command, "--only", names[0]]) == 0
    assert driver.violations() == []
    with pytest.raises(SystemExit):
        status_of(main, [*command, "--only", "nothing"])
    assert "'nothing' names none of 3 cases" in capsys.readouterr().err


def test_damaged_arrays(kept: Path, driver: Driver) -> None:
    name, other = kept_names(kept)[:2]
    path = kept / f"{name}.npz"
    for contents in (path.read_bytes()[:-40], (kept / f"{other}.npz").read_bytes(), b""):
        path.write_bytes(contents)
        with pytest.raises(BraidError, match=re.escape(str(path))):
            KeptCase.of(kept, name)
    path.unlink()
    with pytest.raises(BraidError, match="cannot open"):
        KeptCase.of(kept, name)


def test_what_differs(kept: Path, driver: Driver) -> None:
    """NaNs, infinities and signs of integers, and equal numbers."""
    case = KeptCase.of(kept, kept_names(kept)[0])
    (expected,) = case.results
    assert case.difference([expected]).of_allowed == 0
    for value in (np.nan, np.inf):
        changed = expected.copy()
        changed[3, 5] = value
        found = case.difference([changed])
        assert found.wrong == 1 and found.place == (3, 5) and found.of_allowed == np.inf
    near = expected.copy()
    near[0, 0] = np.float32(near[0, 0]) + 0.01
    assert 0 < case.difference([near]).of_allowed < 1
    assert [a.shape for a in case.others()] == [a.shape for a in case.inputs]
    assert not np.array_equal(case.others()[0], case.inputs[0])


def test_other_bits_are_a_race(kept: Path, driver: Driver) -> None:
    """Within the tolerance too."""
    case = KeptCase.of(kept, kept_names(kept)[0])
    assert replay("equal", case, 3).right
    runs = iter(range(9))

    def run(inputs: object) -> list[object]:
        last = case.results[0].copy()
        last[0, 0] = np.float32(last[0, 0]) + 0.01 * (next(runs) == 3)
        return [last]

    found = replay("other", replace(case, model=SimpleNamespace(run=run)), 4)  # type: ignore[arg-type]
    assert not found.right and found.note.startswith("other bits in run 2: ") and not found.lost


def echo(channel: Connection) -> None:
    channel.send(READY)
    while (request := channel.recv()) is not None:
        if request == "dies":
            os._exit(7)
        if request == "hangs":
            time.sleep(1000)
        channel.send(request)


def test_side_by_side() -> None:
    """A crash or a hang costs one request, and none is begun after the deadline."""
    requests = ["a", "dies", "b", "hangs", "c", "d"]
    processes = [CaseProcess(echo, method="fork") for _ in range(2)]
    found = {name: answer for _, name, answer in run_side_by_side(processes, requests, 2)}
    lost = {name: str(own) for name, own in found.items() if isinstance(own, CaseLost)}
    assert lost == {"dies": "the process ended with status 7", "hangs": "took too long"}
    assert all(found[name] == name for name in "abcd")
    late = [CaseProcess(echo, method="fork")]
    assert not list(run_side_by_side(late, ["a"], 2, time.monotonic()))


def lost_for_good(channel: Connection) -> None:
    """Behind the case that is broken there are no results."""
    channel.send(READY)
    broken = False
    while (name := channel.recv()) is not None:
        broken = broken or name == "broken"
        channel.send(Replayed(name, not broken, lost=broken))


def test_a_process_with_an_error_that_stays_is_another_one() -> None:
    process = CaseProcess(lost_for_good, method="fork")
    found = replay_all([process], ["a", "broken", "b"], 60)
    assert [own.right for own in found] == [True, False, True]
