"""The wheels that are published: built by release/wheels.py, and run where their tag says."""

import platform
import shlex
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import braid

ROOT = Path(__file__).parents[2]
SHAPE = (64, 8)
CPUS = {"x86_64": "x86-64-v2", "aarch64": "neoverse-n1"}
NEEDED = ("ziglang", "auditwheel", "twine")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(find_spec, NEEDED)), reason="needs what the extra 'release' installs"
    ),
]


@pytest.fixture(scope="module", params=CPUS)
def arch(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def wheels(arch: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the wheels of both distributions, by name."""
    output = tmp_path_factory.mktemp("wheels")
    command = [
        sys.executable,
        ROOT / "release" / "wheels.py",
        output,
        "--arch",
        arch,
        "--python",
        "3.12",
    ]
    subprocess.run(command, check=True)
    return {path.name.partition("-")[0]: path for path in output.glob("*.whl")}


def artifact(arch: str, path: Path) -> Path:
    """Save a model that takes the mean of the sine of x over its columns."""
    nodes = [
        helper.make_node("Sin", ["x"], ["y"]),
        helper.make_node("ReduceMean", ["y"], ["total"], axes=[1], keepdims=0),
    ]
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)
    result = helper.make_tensor_value_info("total", TensorProto.FLOAT, SHAPE[:1])
    graph = helper.make_graph(nodes, "sine", [value], [result])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    braid.compile(proto, cpu=CPUS[arch]).save(path)
    return path


def test_tags_say_what_the_libraries_need(wheels: dict[str, Path], arch: str) -> None:
    assert sorted(wheels) == ["braid_compiler", "braid_runtime"]
    for path in wheels.values():
        tag = "cp312-abi3" if path.name.startswith("braid_compiler") else "py3-none"
        assert path.name.endswith(f"-{tag}-manylinux_2_28_{arch}.whl")
    machine = {"x86_64": 62, "aarch64": 183}[arch]  # e_machine of ELF
    archive = zipfile.ZipFile(wheels["braid_compiler"])
    assert "braid/support/mlir/torch_mlir/_mlir_libs/_mlir.abi3.so" in archive.namelist()
    assert "braid/support/mlir/LICENSE" in archive.namelist()
    for name in archive.namelist():
        if name.endswith((".so", ".o")):
            assert int.from_bytes(archive.read(name)[18:20], "little") == machine, name


def test_the_runtime_runs_a_model(
    wheels: dict[str, Path], arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A C program is linked to the wheel's library, and runs here or in an emulator."""
    emulator: list[str | Path] = []
    if platform.machine() != arch:
        found, root = shutil.which(f"qemu-{arch}"), Path(f"/usr/{arch}-linux-gnu")
        if found is None or not root.is_dir():
            pytest.skip("needs qemu-user and libraries of the other architecture: make cross-tools")
        emulator = [found, "-L", root]
    zipfile.ZipFile(wheels["braid_runtime"]).extractall(tmp_path)
    library = tmp_path / "braid_runtime" / "lib" / "braid" / "runtime"
    program, source = tmp_path / "run_model", ROOT / "runtime/native/examples/run_model.c"
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", f"{arch}-linux-gnu.2.28"]
    flags = [f"-I{library / 'native' / 'include'}", f"-L{library}", f"-Wl,-rpath,{library}"]
    command = [*compiler, "-std=c11", *flags, source, "-lbraid_runtime", "-lm", "-o", program]
    subprocess.run(command, check=True)
    monkeypatch.setenv("CC", shlex.join(compiler))
    model = artifact(arch, tmp_path / "sine.braid")
    command = [*emulator, program, model]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stderr
    ramp = (np.arange(np.prod(SHAPE)) % 17 / 16.0).reshape(SHAPE)
    name, _, norm = result.stdout.partition(": ")
    assert name == "total"
    np.testing.assert_allclose(float(norm), np.linalg.norm(np.sin(ramp).mean(1)), rtol=1e-4)
