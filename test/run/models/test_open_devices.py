"""Models whose sizes are open, or that data decide, on targets with devices beside the host.

Devices without code for open sizes run what has fixed sizes; the host runs the rest.
"""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import braid
from braid.support.errors import BraidError
from braid.tools.cli import main

HEAD = '<ir_version: 9, opset_import: ["" : 18]> g '
DETECTOR = """(float[1,3,32,32] x) => (float[1,kept,4] y)
  <int64[3] four = {1, -1, 4}, int64[3] one = {1, 1, -1}, int64[1] most = {9}, int64[1] first = {1},
   float[1] overlap = {0.5}, float[1] least = {0.5}, int64[2] halves = {4, 4}, int64[1] box = {2}> {
  a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, k1)  b = Relu (a)
  c = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (b, k2)  d = Sigmoid (c)
  e, f = Split <axis = 1> (d, halves)  g = Transpose <perm = [0, 2, 3, 1]> (e)
  boxes = Reshape (g, four)  h = ReduceMax <keepdims = 0> (f, first)  scores = Reshape (h, one)
  s = NonMaxSuppression (boxes, scores, most, overlap, least)
  t = Gather <axis = 1> (s, box)  i = Squeeze (t, first)  y = Gather <axis = 1> (boxes, i) }"""
"""Two convolutions of fixed sizes, and boxes that data choose."""
ROWS = """(float[n,64] x, float[1,3,32,32] image) => (float[n,64] y) <int64[2] plane = {2, 3}> {
  a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (image, k)  b = Relu (a)
  f = ReduceMean <keepdims = 0> (b, plane)
  h = MatMul (x, w)  s = Add (h, f)  r = Relu (s)  y = Softmax <axis = -1> (r) }"""
"""An image of one size, and rows of any number to which what was found in it is added."""
TARGETS = ["gpu-emulated", "npu-small"]


def weights(*shape: int) -> np.ndarray:
    values = np.random.default_rng(len(shape)).standard_normal(shape)
    return (values / np.sqrt(values[0].size)).astype(np.float32)


def proto(text: str, **values: np.ndarray) -> onnx.ModelProto:
    model = onnx.parser.parse_model(HEAD + text)
    for name, value in values.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    return model


@cache
def detector() -> onnx.ModelProto:
    return proto(DETECTOR, k1=weights(16, 3, 3, 3), k2=weights(8, 16, 3, 3))


@cache
def rows() -> onnx.ModelProto:
    return proto(ROWS, k=weights(64, 3, 3, 3), w=weights(64, 64))


@cache
def compiled(kind: str, target: str) -> braid.Model:
    return braid.compile(detector() if kind == "detector" else rows(), target=target)


def inputs_of(model: onnx.ModelProto, seed: int, n: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    shapes = {
        value.name: [dim.dim_value or n for dim in value.type.tensor_type.shape.dim]
        for value in model.graph.input
    }
    return {name: random.standard_normal(own).astype("f") for name, own in shapes.items()}


def expected(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> Any:
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)[0]


def launched(model: braid.Model) -> float:
    """Return the seconds of all launches on devices."""
    return sum(model.launched_seconds().values())


@pytest.mark.parametrize("target", TARGETS)
def test_what_comes_before_a_decision_runs_on_the_device(target: str) -> None:
    model = compiled("detector", target)
    assert [name.split(":")[0] for name in model.devices] == [target.split("-")[0]]
    for seed in range(3):
        before, inputs = launched(model), inputs_of(detector(), seed)
        found, wanted = model(inputs), expected(detector(), inputs)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
        assert launched(model) > before


def test_two_cores_as_devices() -> None:
    for source in (detector(), rows()):
        model = braid.compile(source, target="host-2", partition="throughput")
        inputs = inputs_of(source, 1, 3)
        np.testing.assert_allclose(model(inputs), expected(source, inputs), rtol=1e-4, atol=1e-5)


def test_a_device_that_runs_nothing_of_the_model() -> None:
    for source in (detector(), rows()):
        model, inputs = braid.compile(source, target="fpga-sim"), inputs_of(source, 1, 3)
        assert not model.devices
        np.testing.assert_allclose(model(inputs), expected(source, inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_ops_of_open_sizes_run_on_the_host(target: str) -> None:
    model = compiled("rows", target)
    assert len(model.devices) == 1
    for n in (5, 1, 0, 64, 5):
        before, inputs = launched(model), inputs_of(rows(), n, n)
        np.testing.assert_allclose(model(inputs), expected(rows(), inputs), rtol=1e-4, atol=1e-5)
        assert launched(model) > before


@pytest.mark.parametrize("target", ["gpu-emulated", "npu-small"])
def test_sizes_that_are_asked_for_run_on_the_device(target: str) -> None:
    text = "(float[n,64] x) => (float[n,64] y) { h = MatMul (x, w)  y = Softmax <axis = -1> (h) }"
    source = proto(text, w=weights(64, 64))
    model = braid.compile(source, target=target, specialize=[{"n": 16}])
    for n in (7, 16, 3, 16):
        before, inputs = launched(model), inputs_of(source, n, n)
        np.testing.assert_allclose(model(inputs), expected(source, inputs), rtol=1e-4, atol=1e-5)
        assert (launched(model) > before) == (n == 16)


def test_artifacts_threads_streams_and_traces(tmp_path: Any) -> None:
    model = compiled("detector", "gpu-emulated")
    given = [inputs_of(detector(), seed) for seed in range(8)]
    wanted = [expected(detector(), inputs) for inputs in given]
    model.save(tmp_path / "detector.braid")
    for other in (braid.load(tmp_path / "detector.braid"), pickle.loads(pickle.dumps(model))):
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(other, given))
        for own, right in zip([*found, *other.stream(given)], 2 * wanted, strict=True):
            np.testing.assert_allclose(own, right, rtol=1e-4, atol=1e-5)
    with model.traced() as trace:
        model(given[0])
    trace.write(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    assert any(event["name"].startswith("cluster_") for event in events)


@pytest.mark.parametrize("target", TARGETS)
def test_explain_shows_what_the_host_runs(
    target: str, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(rows(), tmp_path / "rows.onnx")
    assert main(["explain", str(tmp_path / "rows.onnx"), "--target", target, "--json"]) == 0
    kernels = json.loads(capsys.readouterr().out)["result"]["page"]["kernels"]
    on = {name: own["device"] for own in kernels for name in own["model_ops"]}
    assert on["y"] == "cpu:0" and on["b"] != "cpu:0"


def test_the_code_of_a_device_is_stored_once() -> None:
    model = braid.compile(detector(), target="gpu-a100", emulate=True)
    assert pickle.dumps(model).count(b".version ") == 1


def test_an_open_op_that_is_pinned_to_a_device() -> None:
    with pytest.raises(BraidError, match="is pinned to gpu:0, which does not run it") as caught:
        braid.compile(rows(), target="gpu-emulated", pin=["y=gpu:0"])
    assert "gpu does not have code for sizes that are known only at run time" in str(caught.value)
