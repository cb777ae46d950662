"""Models that are split at random over the host and the device of a chip, by ids on their ops."""

import re
import subprocess
import threading
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
from braid.frontends.mlir import parse_mlir
from braid.read_source import read_source
from braid.sources.source_model import SourceModel
from braid.universe import make_context
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
    """The results for each input, from a thread of its own."""
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


@settings(max_examples=20, deadline=None, phases=[Phase.generate])
@given(programs(), st.integers(0, 999))
def test_random_programs(program: tuple[str, Parameters], seed: int) -> None:
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
    assert model.profile().keys() <= whole.profile().keys() | model.profile().keys()


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
