"""Models that are split at random over the host and the device of a chip, by ids on their ops."""

import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from xdsl.dialects.builtin import ModuleOp

import braid
import braid.targets.machines
from braid.analysis.diagnostics.remarks import collect_remarks
from braid.dialects.braid.attribute_names import CLUSTER
from braid.driver.read_source import read_source
from braid.driver.sources.source_model import SourceModel
from braid.frontends.mlir import parse_mlir
from braid.runtime.artifact import SectionKind, read_artifact
from braid.runtime.native_abi import find_headers
from braid.support.errors import BraidError
from braid.targets.simulator.stream_bytes import from_bytes
from braid.universe import make_context
from test.c_programs import PLUGIN, build
from test.run.models.conftest import conditional, convolutional, loop, transformer
from test.run.models.test_models import random_inputs
from test.unit.passes.partition.random_clusters import split_at_random
from test.unit.passes.random_graphs import programs
from test.unit.runtime.test_run_model import run_model as run_model

TARGET = "npu-small"
DEVICES = ["cpu:0", "npu:0"]
LAYERS = {
    "convolutional": convolutional,
    "transformer": transformer,
    "conditional": conditional,
    "loop": loop,
}
# Ops that passes would otherwise merge, fold or fuse, across clusters.
CROSSING = """
!t = tensor<1x6x4x4xf32>
!s = tensor<1x2x3x4x4xf32>
!r = tensor<1x3x2x4x4xf32>
func.func @main(%x: !t {braid.name = "x"}) -> (!t {braid.name = "y"}) {
  %a = braid.exp %x {NPU, braid.cluster = 0 : i64} : (!t) -> !t
  %i = braid.transpose %a {permutation = array<i64: 0, 1, 2, 3>, CPU, braid.cluster = 1 : i64}
      : (!t) -> !t
  %n = braid.neg %i {NPU, braid.cluster = 2 : i64} : (!t) -> !t
  %m = braid.neg %n {CPU, braid.cluster = 3 : i64} : (!t) -> !t
  %p = braid.exp %x {CPU, braid.cluster = 4 : i64} : (!t) -> !t
  %q = braid.add %m, %p {NPU, braid.cluster = 5 : i64} : (!t, !t) -> !t
  %1 = braid.reshape %q {NPU, braid.cluster = 5 : i64} : (!t) -> !s
  %2 = braid.transpose %1 {permutation = array<i64: 0, 2, 1, 3, 4>, CPU, braid.cluster = 6 : i64}
      : (!s) -> !r
  %3 = braid.reshape %2 {NPU, braid.cluster = 7 : i64} : (!r) -> !t
  %t = braid.transpose %3 {permutation = array<i64: 0, 1, 3, 2>, CPU, braid.cluster = 8 : i64}
      : (!t) -> !t
  %u = braid.transpose %t {permutation = array<i64: 0, 1, 3, 2>, NPU, braid.cluster = 9 : i64}
      : (!t) -> !t
  func.return %u : !t
}
""".replace("NPU", 'braid.device = "npu:0"').replace("CPU", 'braid.device = "cpu:0"')
Parameters = dict[str, np.ndarray]


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BRAID_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def parse(text: str) -> ModuleOp:
    return parse_mlir(make_context(), text, "f.mlir").module


def split(text: str, seed: int) -> ModuleOp:
    module = parse(text)
    split_at_random(module, DEVICES, Random(seed))
    return module


def run_at_once(model: braid.Model, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Return the results for each input, each run in a separate thread."""
    results: list[np.ndarray] = [np.empty(0)] * len(inputs)

    def run(index: int) -> None:
        for _ in range(3):
            results[index] = np.asarray(model(inputs[index]))

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@settings(max_examples=3, deadline=None, phases=[Phase.generate])
@given(programs(), st.integers(0, 999))
def test_random_programs(program: tuple[str, Parameters], seed: int) -> None:
    check_program(program, seed)


@pytest.mark.slow
@settings(max_examples=20, deadline=None, phases=[Phase.generate])
@given(programs(), st.integers(0, 999))
def test_twenty_random_programs(program: tuple[str, Parameters], seed: int) -> None:
    check_program(program, seed)


@settings(max_examples=3, deadline=None, phases=[Phase.generate])
@given(programs(), st.integers(0, 999))
def test_devices_without_ids(program: tuple[str, Parameters], seed: int) -> None:
    """Fusion is decided when ops only have devices."""
    text, parameters = program
    module = split(text, seed)
    for op in module.walk():
        op.attributes.pop(CLUSTER, None)
    with collect_remarks() as remarks:
        model = braid.compile(module, parameters=parameters, target=TARGET)
    decided = [remark for remark in remarks if remark.pass_name == "select-clusters"]
    assert decided
    x = np.random.default_rng(seed).normal(size=(1, 4, 6, 6)).astype(np.float32)
    expected = braid.interpret(parse(text), parameters=parameters)(x)
    np.testing.assert_allclose(np.asarray(model(x)), expected, rtol=1e-4, atol=1e-4)


def check_program(program: tuple[str, Parameters], seed: int) -> None:
    """Check that the program gives the same results split at random, as a whole, and
    interpreted."""
    text, parameters = program
    module = split(text, seed)
    whole = braid.compile(parse(text), parameters=parameters, target=TARGET)
    parts = braid.compile(module, parameters=parameters, target=TARGET, profile=seed % 2 == 1)
    again = braid.compile(module, parameters=parameters, target=TARGET, threads=2)
    interpreted = braid.interpret(parse(text), parameters=parameters)
    rng = np.random.default_rng(seed)
    xs = [rng.normal(size=(1, 4, 6, 6)).astype(np.float32) for _ in range(2)]
    for model in (parts, again):
        for x, y in zip(xs, run_at_once(model, xs), strict=True):
            np.testing.assert_allclose(y, interpreted(x), rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(y, whole(x), rtol=1e-4, atol=1e-4)


def open_attention() -> onnx.ModelProto:
    """Attention over `sequence`, behind a layer whose weights all variants share."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((8, 8)).astype(np.float32)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["q"]),
        helper.make_node("Transpose", ["q"], ["k"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "k"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "q"], ["y"]),
    ]
    info = helper.make_tensor_value_info
    shape = ["batch", "sequence", 8]
    graph = helper.make_graph(
        nodes,
        "open",
        [info("x", onnx.TensorProto.FLOAT, shape)],
        [info("y", onnx.TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def compile_split(source: SourceModel, seed: int, **options: Any) -> braid.Model:
    module = source.module.clone()
    assert split_at_random(module, DEVICES, Random(seed)) > 1
    return braid.compile(module, parameters=source.parameters, target=TARGET, **options)


@pytest.mark.parametrize("name", LAYERS)
def test_real_layers(name: str, tmp_path: Path) -> None:
    proto = LAYERS[name]()
    model = compile_split(read_source(make_context(), proto), 7, profile=True)
    interpreted = braid.interpret(proto)
    model.save(tmp_path / "model.braid")
    loaded = braid.load(tmp_path / "model.braid")
    for seed in range(2):
        inputs = list(random_inputs(proto, seed).values())
        expected = interpreted(*inputs)
        for each in (model, loaded):
            np.testing.assert_allclose(each(*inputs), expected, rtol=1e-3, atol=1e-4)
    assert sum(entry.count for entry in model.profile().values()) > 0


def test_shape_buckets() -> None:
    proto = open_attention()
    buckets = {"batch": [1, 2], "sequence": [3]}
    source = read_source(make_context(), proto, buckets=buckets)
    model = compile_split(source, 3, profile=True)
    whole = braid.compile(proto, shape_buckets=buckets, profile=True)
    for batch in (1, 2):
        x = np.random.default_rng(batch).normal(size=(batch, 3, 8)).astype(np.float32)
        np.testing.assert_allclose(model(x), whole(x), rtol=1e-4, atol=1e-4)
    assert sum(entry.count for entry in model.profile().values()) > 0


def test_runs_from_c(run_model: Path, tmp_path: Path) -> None:
    proto = convolutional()
    compile_split(read_source(make_context(), proto), 5).save(tmp_path / "parts.braid")
    braid.compile(proto).save(tmp_path / "whole.braid")
    parts, whole = (
        subprocess.run([run_model, path], capture_output=True, text=True, check=True).stdout
        for path in (tmp_path / "parts.braid", tmp_path / "whole.braid")
    )
    numbers = [[float(n) for n in re.findall(r"\d+\.\d+(?:e[-+]\d+)?", t)] for t in (parts, whole)]
    assert numbers[0] and numbers[0] == pytest.approx(numbers[1], rel=1e-4)


def test_streams_are_stored_once(tmp_path: Path) -> None:
    braid.compile(parse(CROSSING), target=TARGET, load=False).save(tmp_path / "m.braid")
    artifact, data = read_artifact(tmp_path / "m.braid"), (tmp_path / "m.braid").read_bytes()
    assert artifact.manifest.devices and SectionKind.DEVICES not in artifact._sections
    codes = [code.tobytes() for code in artifact.device_code]
    assert any(from_bytes(code).instructions for code in codes)
    # Clusters of nothing but views have equal streams.
    assert all(data.count(code) <= codes.count(code) for code in codes)


def test_nothing_is_merged_across_clusters() -> None:
    model = braid.compile(parse(CROSSING), target=TARGET)
    x = np.random.default_rng(0).normal(size=(1, 6, 4, 4)).astype(np.float32)
    expected = braid.interpret(parse(CROSSING))(x)
    np.testing.assert_allclose(model(x), expected, rtol=1e-5, atol=1e-5)
    simulated = model.device_seconds()["npu:0"]
    assert simulated > 0
    assert model.launched_seconds()["npu:0"] == pytest.approx(simulated, abs=1e-8)
    model(x)
    assert model.launched_seconds()["npu:0"] == pytest.approx(2 * simulated, abs=2e-8)


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a plugin that is not the runtime's."""
    directory = tmp_path_factory.mktemp("plugins")
    source = Path(__file__).with_name("desk_plugin.c")
    build(directory / "libbraid_device_desk.so", source, flags=PLUGIN)
    return directory


def desk_target(directory: Path, device: str) -> str:
    """Return the path of a target whose chip runs on the plugin `desk`, and loads a byte in 1
    ms."""
    text = Path(braid.targets.machines.__file__).with_name("npu-small.toml").read_text()
    text = text.replace("npu:0", device).replace("npu-sim", "desk").replace("npu-small", "desk")
    text = text.replace('resource = "load"\nrate = 8.5e9', 'resource = "load"\nrate = 1e3')
    path = directory / "desk.toml"
    path.write_text(text)
    return str(path)


ON_DESK = """
func.func @main(%x: tensor<8xf32> {braid.name = "x"}) -> (tensor<8xf32> {braid.name = "y"}) {
  %w = braid.constant {value = dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>}
      : tensor<8xf32>
  %a = braid.mul %x, %w {braid.device = "DEVICE", braid.cluster = 0 : i64}
      : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %b = braid.neg %a {braid.device = "cpu:0", braid.cluster = 1 : i64}
      : (tensor<8xf32>) -> tensor<8xf32>
  func.return %b : tensor<8xf32>
}
"""


def on_desk(directory: Path, device: str, **options: Any) -> braid.Model:
    module = parse(ON_DESK.replace("DEVICE", device))
    return braid.compile(module, target=desk_target(directory, device), **options)


def test_a_plugin_of_another_package(
    plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRAID_DEVICE_PATH", f"/nowhere:{plugins}")
    model = on_desk(tmp_path, "desk:0")
    x = np.ones(8, np.float32)
    np.testing.assert_array_equal(model(x), -np.arange(1, 9))
    assert model.launched_seconds()["desk:0"] == pytest.approx(1e-6)
    monkeypatch.setenv("DESK_FAILS", "1")
    with pytest.raises(BraidError, match="the desk broke"):
        model(x)
    monkeypatch.delenv("DESK_FAILS")
    np.testing.assert_array_equal(model(x), -np.arange(1, 9))


EMPTY_TABLE = """
#include <braid/device.h>
const braid_device_plugin braid_device_table = {.abi_version = BRAID_DEVICE_ABI_VERSION};
"""


@pytest.mark.parametrize(
    ("name", "source", "message"),
    [
        ("empty", EMPTY_TABLE, "lacks open, close, load, submit or wait"),
        ("other", EMPTY_TABLE.replace("_VERSION}", "_VERSION + 7}"), "has ABI version 10"),
        ("none", "int nothing;", "cannot load device plugin 'none'"),
        ("text", None, "cannot load device plugin 'text'"),
    ],
)
def test_what_is_no_plugin(
    name: str, source: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / f"libbraid_device_{name}.so"
    library.write_text("no library")
    if source is not None:
        (tmp_path / "plugin.c").write_text(source)
        flags = ["-shared", "-fPIC", f"-I{find_headers()}", tmp_path / "plugin.c"]
        subprocess.run(["cc", *flags, "-o", library], check=True)
    target = Path(desk_target(tmp_path, "npu:0"))
    target.write_text(target.read_text().replace('"desk"', f'"{name}"'))
    monkeypatch.setenv("BRAID_DEVICE_PATH", str(tmp_path))
    with pytest.raises(BraidError, match=message):
        braid.compile(parse(ON_DESK.replace("DEVICE", "npu:0")), target=str(target))


def test_a_missing_device(plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAID_DEVICE_PATH", str(plugins))
    with pytest.raises(BraidError, match=r"device 'desk:9'.*nobody sits there.*BRAID_EMULATE=1"):
        on_desk(tmp_path, "desk:9")
    model = on_desk(tmp_path, "desk:9", emulate=True)
    model.save(tmp_path / "m.braid")
    with pytest.raises(BraidError, match="device 'desk:9'"):
        braid.load(tmp_path / "m.braid")
    monkeypatch.setenv("BRAID_EMULATE", "0")
    with pytest.raises(BraidError, match="device 'desk:9'"):
        braid.load(tmp_path / "m.braid")
    loaded = braid.load(tmp_path / "m.braid", emulate=True)
    monkeypatch.setenv("BRAID_EMULATE", "1")
    x = np.ones(8, np.float32)
    for each in (model, loaded, braid.load(tmp_path / "m.braid")):
        begin = time.perf_counter()
        np.testing.assert_array_equal(each(x), -np.arange(1, 9))
        took, simulated = time.perf_counter() - begin, each.device_seconds()["desk:9"]
        # Two operands of 32 bytes are loaded.
        assert took >= simulated >= 0.064
        assert each.launched_seconds()["desk:9"] == pytest.approx(simulated, abs=1e-8)


def test_a_fork_while_another_thread_opens_a_device(
    plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child does not have that thread, which would never release a lock."""
    monkeypatch.setenv("BRAID_DEVICE_PATH", str(plugins))
    on_desk(tmp_path, "desk:3").save(tmp_path / "m.braid")
    x = np.ones(8, np.float32)
    monkeypatch.setenv("DESK_IS_SLOW", "1")
    opened: list[braid.Model] = []
    threads = [
        threading.Thread(target=lambda: opened.append(braid.load(tmp_path / "m.braid")))
        for _ in range(2)  # one of which waits for the other
    ]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os.environ.pop("DESK_IS_SLOW")
        same = np.array_equal(braid.load(tmp_path / "m.braid")(x), -np.arange(1, 9))
        os._exit(0 if same and not opened else 1)
    for thread in threads:
        thread.join()
    assert os.waitpid(child, 0)[1] == 0
    assert len(opened) == 2
    for model in opened:
        np.testing.assert_array_equal(model(x), -np.arange(1, 9))


def test_forked_children_launch(tmp_path: Path) -> None:
    model = braid.compile(parse(CROSSING), target=TARGET)
    x = np.ones((1, 6, 4, 4), np.float32)
    expected = model(x)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(model(x), expected) else 1)
    np.testing.assert_array_equal(model(x), expected)
    assert os.waitpid(child, 0)[1] == 0
