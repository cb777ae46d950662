"""Stages of several devices that take turns: results in order, whoever is faster or fails."""

import subprocess
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import braid
from braid.support.errors import BraidError
from test.run.streams.conftest import FIRST, SECOND, chain, inputs, parse, placed
from test.run.streams.test_from_c import norms, stream_model  # noqa: F401  a fixture
from test.run.streams.test_soak import check_long_soak, check_soak
from test.run.streams.test_streams import check, expected, wait_until_gone

BOTH = f"{FIRST}+{SECOND}"
TURNS = "cpu:1+cpu:2"


@pytest.fixture
def turns(faulty_target: str, monkeypatch: pytest.MonkeyPatch) -> braid.Model:
    """Return the chain of `faulty`, whose plugin launches run on two devices in turn."""
    monkeypatch.setenv("BRAID_DEVICE_PATH", str(Path(faulty_target).parent))
    text = chain(TURNS, FIRST, TURNS, FIRST, TURNS)
    return braid.compile(parse(text), target=faulty_target)


def test_two_devices_take_turns(tmp_path: Path) -> None:
    model = braid.compile(parse(chain(BOTH, BOTH, BOTH)), target="host-2")
    requests = inputs(100)
    wanted = expected(model, requests)
    interpreted = braid.interpret(parse(chain(FIRST, FIRST, FIRST)))
    check(expected(interpreted, requests), wanted)
    check(list(model.stream(requests)), wanted)
    model.save(tmp_path / "m.braid")
    loaded = braid.load(tmp_path / "m.braid")
    with loaded.stream(requests) as stream:
        check([next(stream) for _ in requests], wanted)
        (stage,) = stream.stages()
    assert (stage.device, stage.replicas, stage.count) == (FIRST, (SECOND,), 100)
    wait_until_gone()


PRODUCTS = """
!t = tensor<128x128xf32>
func.func @main(%x: !t {braid.name = "x"}) -> (!t {braid.name = "y"}) {
  %a = braid.matmul %x, %x : (!t, !t) -> !t
  %b = braid.matmul %a, %x : (!t, !t) -> !t
  %y = braid.matmul %b, %a : (!t, !t) -> !t
  func.return %y : !t
}
"""


def test_throughput_is_the_strategy_that_lets_them() -> None:
    """Unless that would not pay: what is moved takes longer than a few additions."""
    model = braid.compile(parse(PRODUCTS), target="host-2", partition="throughput")
    rng = np.random.default_rng(0)
    requests = [rng.normal(size=(128, 128)).astype(np.float32) for _ in range(40)]
    check(list(model.stream(requests)), expected(model, requests))
    (stage,) = model.stream([]).stages()
    assert {stage.device, *stage.replicas} == {FIRST, SECOND}
    latency = braid.compile(parse(PRODUCTS), target="host-2", partition="latency")
    assert latency.stream([]).stages()[0].replicas == ()
    few = chain(FIRST, FIRST).replace(' {braid.device = "cpu:0"}', "")
    alone = braid.compile(parse(few), target="host-2", partition="throughput")
    assert alone.stream([]).stages()[0].replicas == ()


def test_results_stay_in_order_under_delays(
    turns: braid.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = inputs(150)
    wanted = expected(turns, requests)
    monkeypatch.setenv("FAULTY_DELAYS", "400")
    check(list(turns.stream(requests)), wanted)
    results = list(turns.stream(requests, copy=False))
    check(results, wanted)


def test_a_replica_that_fails(turns: braid.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both devices run requests: both fail. The stream ends with the first request that did."""
    requests = inputs(120)
    wanted = expected(turns, requests)
    monkeypatch.setenv("FAULTY_FAILS", "200")
    monkeypatch.setenv("FAULTY_DELAYS", "300")
    results = list(turns.stream(requests, return_errors=True))
    failed = [str(result) for result in results if isinstance(result, BraidError)]
    assert 0 < len(failed) < 120 and all("'@cluster_" in text for text in failed)
    assert {device for text in failed for device in ("cpu:1", "cpu:2") if device in text} == {
        "cpu:1",
        "cpu:2",
    }
    for result, array in zip(results, wanted, strict=True):
        if not isinstance(result, BraidError):
            np.testing.assert_array_equal(np.asarray(result), array)
    for _ in range(10):
        taken: list[object] = []
        with pytest.raises(BraidError, match=r"'@cluster_\d' on 'cpu:[12]'.*by chance"):
            taken.extend(turns.stream(requests))
        check(taken, wanted[: len(taken)])
    monkeypatch.delenv("FAULTY_FAILS")
    check(list(turns.stream(requests)), wanted)
    wait_until_gone()


def test_a_replica_that_hangs(turns: braid.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    x = inputs(1)[0]
    y = np.asarray(turns(x))
    monkeypatch.setenv("FAULTY_HANGS_AT", "16")
    taken: list[object] = []
    with pytest.raises(BraidError, match=r"'@cluster_\d' on 'cpu:[12]' has not ended in 0.3 s"):
        taken.extend(turns.stream([x] * 60, deadline=0.3))
    check(taken, [y] * len(taken))


def test_c_streams_take_turns(
    stream_model: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    model = braid.compile(parse(chain(BOTH, FIRST, BOTH)), target="host-2")
    model.save(tmp_path / "m.braid")
    command = [stream_model, tmp_path / "m.braid", "60"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    numbers, said = zip(*(line.split(": ") for line in done.stdout.splitlines()), strict=True)
    assert [int(number) for number in numbers] == list(range(60))
    assert [float(norm) for norm in said] == pytest.approx(norms(model, 60), rel=1e-5)
    assert done.stderr.count("on cpu:0 and cpu:1: 60 times") == 2


def weighted(*devices: str) -> str:
    """Matmuls with separate weights, one after the other."""
    rng = np.random.default_rng(0)
    lines, value = [], "%x"
    for number, device in enumerate(devices):
        rows = ", ".join(
            "[" + ", ".join(f"{v:.3f}" for v in row) + "]" for row in rng.normal(size=(4, 4))
        )
        lines.append(f"  %w{number} = braid.constant {{value = dense<[{rows}]> : !t}} : !t")
        lines.append(
            f"  %v{number} = braid.matmul {value}, %w{number} {{{placed(device)}}} : (!t, !t) -> !t"
        )
        value = f"%v{number}"
    head = 'func.func @main(%x: !t {braid.name = "x"}) -> (!t {braid.name = "y"}) {'
    return "\n".join(["!t = tensor<4x4xf32>", head, *lines, f"  func.return {value} : !t", "}"])


def test_weights_of_devices_that_take_turns(
    faulty_target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One has functions of its own in addition to shared ones, and pairs overlap."""
    monkeypatch.setenv("BRAID_DEVICE_PATH", str(Path(faulty_target).parent))
    devices = (TURNS, "cpu:2", FIRST, "cpu:2+cpu:1", "cpu:1")
    model = braid.compile(parse(weighted(*devices)), target=faulty_target)
    interpreted = braid.interpret(parse(weighted(*[FIRST] * 5)))
    rng = np.random.default_rng(1)
    requests = [rng.normal(size=(4, 4)).astype(np.float32) for _ in range(30)]
    (whole,) = [report for report in model.memory if report.function == "main"]
    assert whole.weights_bytes <= 5 * 64 + 4096 * 2  # each once, at a multiple of 4096 by device
    results = [np.asarray(y) for y in model.stream(requests)]
    for x, y in zip(requests, results, strict=True):
        np.testing.assert_allclose(y, np.asarray(interpreted(x)), rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(y, np.asarray(model(x)))


@settings(max_examples=3, deadline=None, phases=[Phase.generate])
@given(st.integers(0, 1 << 30))
def test_random_chains(faulty_target: str, seed: int) -> None:
    check_random_chain(faulty_target, seed)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, phases=[Phase.generate])
@given(st.integers(0, 1 << 30))
def test_sixty_random_chains(faulty_target: str, seed: int) -> None:
    check_random_chain(faulty_target, seed)


def check_random_chain(target: str, seed: int) -> None:
    """Devices at random, alone and in turn, some late."""
    random = Random(seed)
    devices = [random.choice((FIRST, SECOND, TURNS, TURNS)) for _ in range(random.randint(1, 7))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BRAID_DEVICE_PATH", str(Path(target).parent))
        model = braid.compile(parse(chain(*devices)), target=target)
        interpreted = braid.interpret(parse(chain(*[FIRST] * len(devices))))
        requests = inputs(60)
        wanted = expected(interpreted, requests)
        patch.setenv("FAULTY_DELAYS", random.choice(("0", "200", "700")))
        check(list(model.stream(requests)), wanted)


def test_three_hundred(turns: braid.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    check_soak(turns, monkeypatch)


@pytest.mark.slow
def test_ten_thousand(turns: braid.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    check_long_soak(turns, monkeypatch)
