"""Whole models through the device plugin `cuda`, executed by the stand-in's emulator."""

import gc
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest
from ml_dtypes import bfloat16

import braid
from braid.driver.read_source import read_source
from braid.frontends.mlir import parse_mlir
from braid.lowering.gpu import backend
from braid.lowering.gpu.kernels.hopper_gemm import HopperGemmFamily
from braid.runtime.artifact import read_artifact
from braid.support.errors import BraidError
from braid.targets import machines
from braid.targets.kernels.kernel_family import KernelFamily
from braid.targets.machines.machine import Machine
from braid.universe import make_context
from test.run.cuda.conftest import TARGET, Driver
from test.run.gpu.test_models import reference, slow
from test.run.models.conftest import conditional, convolutional, loop, transformer
from test.run.models.test_models import check, random_inputs
from test.unit.passes.partition.random_clusters import split_at_random

MODELS = {
    "convolutional": convolutional,
    "transformer": transformer,
    "conditional": conditional,
    "loop": loop,
}


def expect(model: braid.Model, proto: onnx.ModelProto, runs: int = 2) -> None:
    for seed in range(runs):
        inputs = random_inputs(proto, seed)
        check(model.run_named(inputs)["y"], reference(proto, inputs))


@pytest.mark.parametrize("order", ["late", "early", "7"])
@pytest.mark.parametrize("name", ["loop", "transformer", *slow("convolutional", "conditional")])
def test_whole_models(
    driver: Driver, name: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_ORDER", order)
    model = braid.compile(MODELS[name](), target=TARGET)
    expect(model, MODELS[name]())
    del model
    gc.collect()
    driver.check()


def test_a_function_is_one_graph(driver: Driver) -> None:
    """Which is made once, and launched for each run."""
    proto = transformer()
    model = braid.compile(proto, target=TARGET)
    expect(model, proto, runs=6)
    calls = driver.calls()
    assert calls.count("cuGraphLaunch") == 6
    # One for each slot of buffers.
    assert calls.count("cuGraphInstantiateWithFlags") == 2
    assert calls.count("cuLaunchKernel") >= 10


@pytest.mark.parametrize("order", ["late", "3"])
@pytest.mark.parametrize("name", ["loop", *slow("convolutional", "conditional", "transformer")])
def test_split_models(
    driver: Driver, name: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of a model on the CPU and on the GPU, at random."""
    monkeypatch.setenv("STANDIN_ORDER", order)
    proto = MODELS[name]()
    source = read_source(make_context(), proto)
    assert split_at_random(source.module, ["cpu:0", "gpu:0"], Random(7)) > 1
    model = braid.compile(source.module, parameters=source.parameters, target=TARGET)
    expect(model, proto)
    del model
    gc.collect()
    driver.check()


def test_an_artifact_holds_what_the_plugin_loads(driver: Driver, tmp_path: object) -> None:
    proto = loop()
    path = f"{tmp_path}/m.braid"
    braid.compile(proto, target=TARGET, load=False).save(path)
    assert {code.kind for code in read_artifact(path).manifest.devices} == {
        "ptx-sm_80",
        "gpu-plan-sm_80",
        "gpu-launches-sm_80",
    }
    expect(braid.load(path), proto)


def test_streams(driver: Driver) -> None:
    """Requests of a stream, whose copies overlap what runs before them."""
    proto = transformer()
    model = braid.compile(proto, target=TARGET)
    inputs = [random_inputs(proto, seed) for seed in range(6)]
    results = list(model.stream(inputs))
    for own, result in zip(inputs, results, strict=True):
        check(
            np.asarray(result[0] if isinstance(result, list | tuple) else result),
            reference(proto, own),
        )


def orders(calls: Sequence[str]) -> dict[tuple[str, int], set[tuple[str, int]]]:
    """Which copies and graphs have ended before each begins, by its stream and by events.

    They are numbered by kind. `calls` are lines of the stand-in's log.
    """
    streams: dict[str, set[tuple[str, int]]] = defaultdict(set)
    events: dict[str, set[tuple[str, int]]] = {}
    before: dict[tuple[str, int], set[tuple[str, int]]] = {}
    counts: Counter[str] = Counter()
    for line in calls:
        name, _, rest = line.partition("(")
        words = [word.strip() for word in rest.rstrip(") ").split(",")]
        if name in ("cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuGraphLaunch"):
            item = name, counts[name]
            counts[name] += 1
            before[item] = set(streams[words[-1]])
            streams[words[-1]].add(item)
        elif name == "cuEventRecord":
            events[words[0]] = set(streams[words[1]])
        elif name == "cuStreamWaitEvent":
            streams[words[0]] |= events[words[1]]
    return before


def test_copies_overlap_kernels(driver: Driver) -> None:
    """A graph waits for its own copies, and no copy of an input for the graph before."""
    proto = transformer()
    model = braid.compile(proto, target=TARGET)
    driver.forget()
    count = 5
    list(model.stream([random_inputs(proto, seed) for seed in range(count)]))
    before = orders(driver.log.read_text().splitlines())
    into, graph, out = (
        [(name, number) for number in range(count)]
        for name in ("cuMemcpyHtoDAsync_v2", "cuGraphLaunch", "cuMemcpyDtoHAsync_v2")
    )
    assert set(before) == {*into, *graph, *out}
    for number in range(count):
        assert into[number] in before[graph[number]]
        assert graph[number] in before[out[number]]
        if number > 0:
            assert graph[number - 1] not in before[into[number]]
            assert out[number - 1] not in before[graph[number]]


PRODUCT = """
func.func @main(
    %x: tensor<512x128xbf16> {braid.name = "x"}, %w: tensor<128x512xbf16> {braid.name = "w"}
) -> (tensor<512x512xbf16> {braid.name = "y"}) {
  %0 = braid.matmul %x, %w : (tensor<512x128xbf16>, tensor<128x512xbf16>) -> tensor<512x512xbf16>
  func.return %0 : tensor<512x512xbf16>
}
"""


def test_tensor_maps(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of Hopper, whose tensors the driver describes, and of a machine that is alone."""
    shipped = Path(machines.__file__).with_name("gpu-h100.toml").read_text()
    target = tmp_path / "few.toml"
    target.write_text(shipped.replace("multiprocessors = 132", "multiprocessors = 3"))
    monkeypatch.setenv("STANDIN_CAPABILITY", "9.0")
    monkeypatch.setattr(backend, "gpu_families", lambda machine, _: (HopperGemmFamily(machine),))
    module = parse_mlir(make_context(), PRODUCT, "m.mlir").module
    model = braid.compile(module, target=str(target))
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(bfloat16) for shape in ((512, 128), (128, 512)))
    expected = x.astype(np.float32) @ w.astype(np.float32)
    for _ in range(2):
        result = np.asarray(model(x, w), np.float32)
        np.testing.assert_allclose(result, expected, rtol=0.02, atol=0.05)
    assert driver.calls().count("cuTensorMapEncodeTiled") >= 2
    del model
    gc.collect()
    driver.check()


def test_several_architectures(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One artifact, from which each GPU takes the code and the plan that fit it best."""
    usual = backend.gpu_families

    def families(machine: Machine, installed: Sequence[KernelFamily]) -> Sequence[KernelFamily]:
        own = usual(machine, installed)
        return (HopperGemmFamily(machine),) if machine.cpu == "sm_90a" else own

    monkeypatch.setattr(backend, "gpu_families", families)
    module = parse_mlir(make_context(), PRODUCT, "m.mlir").module
    path = tmp_path / "m.braid"
    braid.compile(module, target=TARGET, gpu_arch="sm_80,sm_90a", load=False).save(path)
    kinds = {code.kind for code in read_artifact(path).manifest.devices}
    assert kinds == {
        f"{kind}-{architecture}"
        for kind in ("ptx", "gpu-plan", "gpu-launches")
        for architecture in ("sm_80", "sm_90a")
    }
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(bfloat16) for shape in ((512, 128), (128, 512)))
    expected = x.astype(np.float32) @ w.astype(np.float32)
    for capability, maps in (("8.9", False), ("9.0", True)):
        monkeypatch.setenv("STANDIN_CAPABILITY", capability)
        driver.forget()
        model = braid.load(path)
        result = np.asarray(model(x, w), np.float32)
        np.testing.assert_allclose(result, expected, rtol=0.02, atol=0.05)
        assert ("cuTensorMapEncodeTiled" in driver.calls()) == maps
        del model
        gc.collect()
        driver.check()
    monkeypatch.setenv("STANDIN_CAPABILITY", "7.5")
    with pytest.raises(BraidError, match=r"there is code for ptx-sm_80, ptx-sm_90a"):
        braid.load(path)


def test_machine_code_that_the_driver_refuses(driver: Driver, tmp_path: Path) -> None:
    """The PTX that it was made of is loaded instead."""
    module = parse_mlir(make_context(), PRODUCT, "m.mlir").module
    path = tmp_path / "m.braid"
    braid.compile(module, target=TARGET, gpu_arch="sm_80,+cubin", load=False).save(path)
    driver.forget()
    model = braid.load(path)
    x, w = (np.ones(shape, bfloat16) for shape in ((512, 128), (128, 512)))
    assert np.all(np.asarray(model(x, w), np.float32) == 128)
    assert driver.calls().count("cuModuleLoadDataEx") == 2
    del model
    gc.collect()
    driver.check()


def test_memory_that_is_missing(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_MEMORY", "16384")
    with pytest.raises(BraidError) as caught:
        braid.compile(transformer(), target=TARGET)
    text = str(caught.value)
    assert "device 'gpu:0'" in text and "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY" in text
    assert "of the GPU's 16384 bytes are free" in text
    gc.collect()
    driver.check()


def test_a_gpu_that_is_older_than_the_code(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_CAPABILITY", "7.5")
    with pytest.raises(BraidError, match=r"the GPU is sm_75, and there is code for ptx-sm_80"):
        braid.compile(loop(), target=TARGET)
