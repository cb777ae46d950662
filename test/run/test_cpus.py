"""Models compiled for other CPUs than this one: executed where that is possible, else refused."""

import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from xdsl.dialects.builtin import ModuleOp

import braid
from braid.driver.compile_source import emit_model, missing_here
from braid.driver.options import CompileOptions
from braid.driver.read_source import read_source
from braid.runtime.artifact import read_artifact
from braid.support.errors import BraidError
from braid.targets.machines.cpus import cpu_machine, needed_features
from braid.targets.machines.resolve import target_of
from braid.universe import make_context

FLOAT = TensorProto.FLOAT
X86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="runs code for x86-64")


def net() -> ModelProto:
    """Return a small convolutional network with a classifier."""
    rng = np.random.default_rng(0)

    def weight(name: str, *shape: int) -> TensorProto:
        values = rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        return numpy_helper.from_array(values.astype(np.float32), name)

    node, info = helper.make_node, helper.make_tensor_value_info
    nodes = [
        node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1, 1, 1, 1]),
        node("Relu", ["c0"], ["r0"]),
        node("MaxPool", ["r0"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p", "w1"], ["c1"], pads=[1, 1, 1, 1], group=2),
        node("Sigmoid", ["c1"], ["r1"]),
        node("GlobalAveragePool", ["r1"], ["g"]),
        node("Flatten", ["g"], ["f"]),
        node("Gemm", ["f", "w2", "b2"], ["l"], transB=1),
        node("Softmax", ["l"], ["y"]),
    ]
    shapes = {"w0": (16, 3, 3, 3), "b0": (16,), "w1": (32, 8, 3, 3), "w2": (10, 32), "b2": (10,)}
    graph = helper.make_graph(
        nodes,
        "net",
        [info("x", FLOAT, [1, 3, 32, 32])],
        [info("y", FLOAT, [1, 10])],
        [weight(name, *shape) for name, shape in shapes.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def product_of_bytes() -> ModelProto:
    """256 × 512 times 512 × 256."""
    weight = np.random.default_rng(0).integers(-128, 128, (512, 256)).astype(np.int8)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])],
        "product",
        [info("x", TensorProto.UINT8, [256, 512])],
        [info("y", TensorProto.INT32, [256, 256])],
        [numpy_helper.from_array(weight, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


X = np.random.default_rng(1).standard_normal((1, 3, 32, 32)).astype(np.float32)


def expected() -> np.ndarray:
    return braid.interpret(net())(X)


def check(actual: np.ndarray) -> None:
    reference = expected()
    assert np.abs(actual - reference).max() <= 1e-5 * np.abs(reference).max()


@X86
@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v2", "haswell", "skylake-avx512"])
def test_code_for_another_cpu_gives_the_same_results(cpu: str, tmp_path: Path) -> None:
    reason = missing_here(cpu_machine(cpu))
    if reason is not None:
        pytest.skip(reason)
    model = braid.compile(net(), cpu=cpu)
    check(model(X))
    model.save(tmp_path / "net.braid")
    manifest = read_artifact(tmp_path / "net.braid").manifest
    assert manifest.cpu_features == needed_features(cpu_machine(cpu))
    check(braid.load(tmp_path / "net.braid")(X))


@pytest.mark.parametrize(
    ("made", "asked"), [(net, []), (product_of_bytes, ["amx-int8", "amx-tile"])]
)
def test_models_need_what_their_kernels_ask_for(made, asked: list[str], tmp_path: Path) -> None:
    braid.compile(made(), cpu="sapphirerapids", load=False).save(tmp_path / "net.braid")
    features = read_artifact(tmp_path / "net.braid").manifest.cpu_features
    selected = needed_features(cpu_machine("sapphirerapids"))
    assert sorted(features) == sorted({*selected, *asked})
    assert not {*selected} & {*asked}


@pytest.mark.parametrize(
    ("cpu", "present", "absent"),
    [
        ("haswell", "ymm", "zmm"),
        ("x86-64-v2", "xmm", "ymm"),
        ("skylake-avx512", "zmm", "v0.4s"),
        ("neoverse-n1", "v0.4s", "ymm"),
    ],
)
def test_code_has_the_vectors_of_its_cpu(cpu: str, present: str, absent: str) -> None:
    text = emit_model(net(), "asm", CompileOptions(cpu=cpu))
    assert isinstance(text, str)
    assert present in text and absent not in text


def test_a_model_for_another_machine_is_saved_and_not_run() -> None:
    other = "neoverse-n1" if platform.machine() == "x86_64" else "haswell"
    model = braid.compile(net(), cpu=other)
    assert model.inputs[0].shape == (1, 3, 32, 32) and model.outputs[0].dtype == "float32"
    with pytest.raises(BraidError, match=f"compiled for CPU '{other}' and cannot run here: .* is"):
        model(X)


@X86
def test_an_artifact_for_another_cpu_is_refused_by_the_missing_feature(tmp_path: Path) -> None:
    candidates = ("znver5", "graniterapids", "x86-64,+xop")
    cpu = next((c for c in candidates if missing_here(cpu_machine(c)) is not None), None)
    if cpu is None:
        pytest.skip("this CPU has the features of all others")
    model = braid.compile(net(), cpu=cpu)
    with pytest.raises(BraidError, match="its code needs '"):
        model(X)
    model.save(tmp_path / "net.braid")
    with pytest.raises(BraidError, match="needs the CPU feature '"):
        braid.load(tmp_path / "net.braid")


def test_the_cpu_is_written_on_the_module_and_read_there() -> None:
    module = read_source(make_context(), net(), cpu="haswell").module
    assert '#braid.target<"host", {"cpu" = "haswell"}>' in str(module) or (
        '#braid.target<"host", {cpu = "haswell"}>' in str(module)
    )
    assert isinstance(module, ModuleOp) and target_of(module).host_device.machine.cpu == "haswell"
    again = emit_model(module, "asm")
    assert isinstance(again, str) and "zmm" not in again


def test_an_unknown_cpu_says_the_way_out() -> None:
    with pytest.raises(BraidError, match="there is no CPU 'i386'") as error:
        braid.compile(net(), cpu="i386")
    assert error.value.hint is not None and 'cpu="x86-64-v3,+avxvnni"' in error.value.hint


@pytest.mark.slow
def test_an_aarch64_library_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled here, linked by a cross compiler, run by an emulator, compared with the oracle."""
    compiler, emulator = map(shutil.which, ("aarch64-linux-gnu-gcc", "qemu-aarch64"))
    if compiler is None or emulator is None:
        pytest.skip("needs gcc-aarch64-linux-gnu and qemu-user: make cross-tools")
    monkeypatch.setenv("CC", compiler)
    braid.compile(net(), cpu="neoverse-n1").save_c_library(tmp_path / "net.so")
    source = Path(__file__).parent / "cross_program.c"
    flags = ["-std=c11", "-Wall", "-Werror", f"-I{tmp_path}", "-Wl,-rpath,$ORIGIN"]
    program = tmp_path / "program"
    subprocess.run([compiler, *flags, source, tmp_path / "net.so", "-o", program], check=True)
    X.tofile(tmp_path / "x")
    command = [emulator, "-L", "/usr/aarch64-linux-gnu", program, tmp_path / "x", tmp_path / "y"]
    subprocess.run(command, check=True, timeout=120)
    check(np.fromfile(tmp_path / "y", np.float32).reshape(1, 10))
