"""Targets that name a backend which no package has: the host computes, at the target's rates."""

import re
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import braid
from braid.analysis.diagnostics.remarks import collect_remarks
from braid.driver.compile_source import emit_model
from braid.driver.options import CompileOptions
from braid.frontends.mlir import parse_mlir
from braid.support.errors import BraidError
from braid.tools.cli import main
from braid.universe import make_context
from test.run.models.conftest import conditional, convolutional, loop, transformer
from test.run.models.test_models import random_inputs

LINK = """
[[link]]
source = "{}"
destination = "{}"
bandwidth = 16e9
latency = 5e-6
"""
# Slow enough that the host has always computed before the time is up.
TARGET = """
name = "board"

[[device]]
name = "nobodys"
backend = "nobodys"
count = 2
start_seconds = 1e-3

[[device]]
name = "cpu:0"
backend = "cpu"

[[backend]]
name = "cpu"
operations = ["*"]
priority = 9

[[backend]]
name = "nobodys"
launch_seconds = 2e-6

[backend.operations]
conv = { priority = 1, types = ["f32"] }
matmul = 1
exp = 1
add = 2

[[backend.unit]]
name = "array"
resource = "flops"
rate = 1e9

[[backend.unit]]
name = "dma"
resource = "bytes"
rate = 2e7
"""
DEVICES = ("nobodys:0", "nobodys:1")
MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "convolutional": convolutional,
    "transformer": transformer,
    "conditional": conditional,
    "loop": loop,
}
# 2 · 256 KiB are moved at 20 MB/s, and the device starts: 27.2 ms for each exp.
CHAIN = """
func.func @main(%x: tensor<65536xf32> {braid.name = "x"}) -> (tensor<65536xf32> {braid.name = "y"}) {
  %a = braid.exp %x {braid.name = "a"} : (tensor<65536xf32>) -> tensor<65536xf32>
  %b = braid.neg %a {braid.name = "b"} : (tensor<65536xf32>) -> tensor<65536xf32>
  %c = braid.exp %b {braid.name = "c"} : (tensor<65536xf32>) -> tensor<65536xf32>
  func.return %c : tensor<65536xf32>
}
"""  # noqa: E501
EXP = 1e-3 + 2e-6 + 2 * 4 * 65536 / 2e7


@pytest.fixture
def board(tmp_path: Path) -> str:
    path = tmp_path / "board.toml"
    links = [LINK.format(*ends) for d in DEVICES for ends in (("cpu:0", d), (d, "cpu:0"))]
    path.write_text(TARGET + "".join(links))
    return str(path)


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    path = tmp_path / "chain.mlir"
    path.write_text(CHAIN)
    return path


def test_what_is_missing_and_the_way_out(board: str, chain: Path, tmp_path: Path, capsys) -> None:
    with pytest.raises(BraidError, match=r"(?s)no backend 'nobodys'.*'braid\.backends'.*emulate="):
        braid.compile(str(chain), target=board)
    output = tmp_path / "chain.braid"
    for command in (["compile", "-o", str(output)], ["run", "--random"], ["explain"]):
        assert main([command[0], str(chain), *command[1:], "--target", board]) == 1
        shown = capsys.readouterr().err
        assert "'nobodys'" in shown and "--emulate" in shown and "Traceback" not in shown
    assert not output.exists()


def test_a_launch_takes_as_long_as_the_target_says(board: str, chain: Path, tmp_path: Path) -> None:
    model = braid.compile(str(chain), target=board, emulate=True)
    x = np.random.default_rng(0).normal(size=65536).astype(np.float32)
    expected = np.exp(-np.exp(x))
    model.save(tmp_path / "m.braid")
    with pytest.raises(BraidError, match=r"'nobodys:0', which is missing.*BRAID_EMULATE=1"):
        braid.load(tmp_path / "m.braid")
    for each in (model, braid.load(tmp_path / "m.braid", emulate=True)):
        begin = time.perf_counter()
        np.testing.assert_allclose(each(x), expected, rtol=1e-5)
        assert time.perf_counter() - begin >= 2 * EXP
        times = each.launched_seconds()
        assert sum(times.get(name, 0.0) for name in DEVICES) == pytest.approx(2 * EXP, rel=1e-3)


STRATEGIES = ("priority", "latency", "throughput")
# Models that take seconds run with one strategy here, the others in the slow tests.
TAKEN = {"transformer": "latency", "convolutional": "throughput"}
CASES = [
    pytest.param(
        name,
        strategy,
        marks=[] if TAKEN.get(name, strategy) == strategy else [pytest.mark.slow],
        id=f"{name}-{strategy}",
    )
    for name in MODELS
    for strategy in STRATEGIES
]


@pytest.mark.parametrize(("name", "strategy"), CASES)
def test_models_compute_what_they_should(name: str, strategy, board: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    proto = MODELS[name]()
    onnx.save(proto, path)
    pins = ["op:matmul=nobodys:1"] if name != "convolutional" else ["op:conv=nobodys"]
    model = braid.compile(str(path), target=board, partition=strategy, pin=pins, emulate=True)
    assert set(model.devices) & set(DEVICES)
    for seed in range(2):
        inputs = random_inputs(proto, seed)
        expected = braid.interpret(str(path)).run_named(inputs)
        for output, actual in model.run_named(inputs).items():
            np.testing.assert_allclose(actual, expected[output], rtol=1e-4, atol=1e-5)
    assert sum(model.launched_seconds().get(name, 0.0) for name in DEVICES) >= 1e-3


def test_devices_that_take_turns_double_the_throughput(board: str) -> None:
    text = CHAIN.replace('{braid.name = "a"}', f'{{braid.device = "{DEVICES[0]}", REPLICAS}}')
    text = text.replace("REPLICAS", f'braid.replicas = ["{DEVICES[1]}"]')
    text = text.replace('{braid.name = "c"}', '{braid.device = "cpu:0"}')
    xs = [np.full(65536, n / 20, np.float32) for n in range(20)]
    fastest: list[float] = []
    for each in (text, re.sub(r", braid.replicas = \[.*?\]", "", text)):
        module = parse_mlir(make_context(), each, "chain.mlir").module
        model = braid.compile(module, target=board, emulate=True)
        seconds: list[float] = []
        for _ in range(3):  # the host may be busy with something else
            begin = time.perf_counter()
            results = list(model.stream(xs))
            seconds.append(time.perf_counter() - begin)
            for x, y in zip(xs, results, strict=True):
                np.testing.assert_allclose(y, np.exp(-np.exp(x)), rtol=1e-5)
        fastest.append(min(seconds))
    assert fastest[1] >= 20 * EXP and 10 * EXP <= fastest[0] < 0.75 * fastest[1]


def test_one_device_besides_the_host_is_emulated_as_well(chain: Path, tmp_path: Path) -> None:
    """Such a model is a single program elsewhere; here its time is not the host's."""
    target = tmp_path / "one.toml"
    backend = TARGET[TARGET.rindex("[[backend]]") : TARGET.index("[backend.operations]")]
    units = TARGET[TARGET.index("[[backend.unit]]") :]
    target.write_text(f'name = "one"\n{backend}operations = ["*"]\n{units}')
    model = braid.compile(str(chain), target=str(target), emulate=True)
    x = np.zeros(65536, np.float32)
    np.testing.assert_allclose(model(x), np.full(65536, np.exp(-1)), rtol=1e-5)
    assert model.launched_seconds()["nobodys:0"] >= 2 * 4 * 65536 / 2e7


def test_commands(board: str, chain: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    output = tmp_path / "chain.braid"
    options = ["--target", board, "--emulate"]
    assert main(["compile", str(chain), "-o", str(output), *options]) == 0
    assert main(["run", str(output), "--random", "--emulate"]) == 0
    assert main(["verify", str(chain), "--per-cluster", *options]) == 0
    assert "all 3 values that leave clusters agree" in capsys.readouterr().out
    assert main(["explain", str(chain), "--devices", "--measure", "5", *options]) == 0
    assert "nobodys:0" in capsys.readouterr().out
    assert main(["bench", str(chain), "--stream", "--runs", "5", *options]) == 0
    shown = capsys.readouterr().out
    stages = re.findall(r"on nobodys:\d.*: ([\d.]+) ms, expected ([\d.]+) ms", shown)
    assert len(stages) == 2
    for measured, expected in stages:
        assert float(expected) == pytest.approx(1e3 * EXP, rel=1e-3)
        assert float(measured) >= float(expected)
    monkeypatch.setenv("BRAID_EMULATE", "1")
    assert main(["compile", str(chain), "-o", str(output), "--target", board]) == 0


def test_stages_of_the_lowering(board: str, chain: Path) -> None:
    assert "braid.stage_seconds" in emit_model(
        str(chain), "mlir", CompileOptions(target=board, emulate=True)
    )
    with pytest.raises(BraidError, match="emulate=True"):
        emit_model(str(chain), "mlir", CompileOptions(target=board))


def test_the_host_is_not_emulated(chain: Path, board: str) -> None:
    text = Path(board).read_text().replace('name = "board"', 'name = "board"\nhost = "nobodys:0"')
    Path(board).write_text(text)
    with pytest.raises(BraidError, match="the host of target 'board', is of backend 'nobodys'"):
        braid.compile(str(chain), target=board, emulate=True)


def test_the_search_knows_the_rates(board: str, chain: Path) -> None:
    """The host is faster at everything, so that latency keeps everything there."""
    with collect_remarks() as remarks:
        model = braid.compile(str(chain), target=board, emulate=True, partition="latency")
    assert not set(model.devices) & set(DEVICES)
    assert any("best split" in remark.message for remark in remarks)
