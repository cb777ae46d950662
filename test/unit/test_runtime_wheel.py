"""The wheel `braid-runtime` runs artifacts where numpy is all that is installed beside it."""

import ast
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import braid

ROOT = Path(__file__).parents[2]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
X = np.linspace(-1, 1, 1000 * 8, dtype=np.float32).reshape(1000, 8)

PROGRAM = """
import asyncio, sys
import numpy as np
import braid_runtime
model = braid_runtime.load(sys.argv[1])
x = np.load(sys.argv[2])
np.save(sys.argv[3], model(x))
async def streamed():
    async with model.stream([x, x]) as results:
        return [result async for result in results]
with model.stream([x]) as results:
    assert len([*results, *asyncio.run(streamed())]) == 3
try:
    braid_runtime.load("none.braid")
except braid_runtime.BraidError as error:
    assert "none.braid" in str(error), error
names = {name.partition(".")[0] for name in sys.modules}
assert not names & {"xdsl", "onnx", "llvmlite", "torch_mlir", "ml_dtypes"}, names
import braid
assert braid.load is braid_runtime.load
print(braid.__file__)
"""


def test_holds_what_its_modules_import() -> None:
    """A module that is cut in two is easily forgotten in the list of files."""
    listing = (ROOT / "runtime/wheel/install.cmake").read_text()
    files = set(re.findall(r"[\w/]+\.py", listing))
    missing = {
        f"{file} imports {name}"
        for file in files
        for name in imported(ROOT / "braid" / file)
        if name not in files and name.replace(".py", "/__init__.py") not in files
    }
    assert not missing


def imported(path: Path) -> Iterator[str]:
    """Return the files of braid that an import of a module imports."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("braid."):
            assert node.module is not None
            yield node.module.removeprefix("braid.").replace(".", "/") + ".py"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    options = ["--no-build-isolation", "--no-deps", f"--config-settings=build-dir={directory}/b"]
    source = ROOT / "runtime" / "wheel"
    subprocess.run([*PIP, "wheel", *options, "-w", directory, source], check=True)
    (path,) = directory.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with only numpy and the wheel."""
    directory = tmp_path_factory.mktemp("empty")
    venv.create(directory, symlinks=True)
    (site,) = directory.glob("lib/python*/site-packages")
    for path in Path(sysconfig.get_path("platlib")).glob("numpy*"):
        if path.name.partition("-")[0] in {"numpy", "numpy.libs"}:
            (site / path.name).symlink_to(path)
    found = directory / "bin" / "python"
    # With its requirements, of which numpy is the only one: no index is asked.
    options = ["--no-index", wheel]
    subprocess.run([*PIP, "--python", found, "install", *options], check=True)
    return found


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an artifact that computes the sine of x, and its sum over the columns."""
    nodes = [
        helper.make_node("Sin", ["x"], ["y"]),
        helper.make_node("ReduceMean", ["y"], ["total"], axes=[1], keepdims=0),
    ]
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)
    result = helper.make_tensor_value_info("total", TensorProto.FLOAT, X.shape[:1])
    graph = helper.make_graph(nodes, "sine", [value], [result])
    opset = helper.make_opsetid("", 17)
    path = tmp_path_factory.mktemp("model") / "sine.braid"
    proto = helper.make_model(graph, opset_imports=[opset], ir_version=9)
    braid.compile(proto).save(path)
    return path


def run(python: Path, artifact: Path, directory: Path, *, path: str = "") -> Path:
    """Run the artifact, compare its results, and return where braid comes from."""
    np.save(directory / "x.npy", X)
    files = [artifact, directory / "x.npy", directory / "y.npy"]
    result = subprocess.run(
        [python, "-c", PROGRAM, *files],
        cwd=directory,
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    np.testing.assert_allclose(np.load(files[-1]), np.sin(X).mean(1), rtol=1e-4, atol=1e-6)
    return Path(result.stdout.strip())


def test_runs_with_numpy_alone(python: Path, artifact: Path, tmp_path: Path) -> None:
    own = run(python, artifact, tmp_path)
    assert own.is_relative_to(python.parents[1])
    assert own.parts[-4:] == ("braid_runtime", "lib", "braid", "__init__.py")


def test_is_the_compilers_runtime_where_that_is_installed(
    python: Path, artifact: Path, tmp_path: Path
) -> None:
    assert run(python, artifact, tmp_path, path=str(ROOT)) == ROOT / "braid" / "__init__.py"


def test_what_compiles_is_said_to_be_missing(python: Path, tmp_path: Path) -> None:
    command = [python, "-c", "import braid_runtime, braid; braid.compile"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "'braid.compile' is a part of the compiler, which is not installed" in result.stderr
    assert "pip install braid-compiler" in result.stderr


def test_builds_c_programs(python: Path, artifact: Path, tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    command = [python, "-m", "braid_runtime", "--cflags", "--libs"]
    asked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    options = shlex.split(asked.stdout)
    assert str(python.parents[1]) in options[0]
    source, program = ROOT / "runtime/native/examples/run_model.c", tmp_path / "run_model"
    subprocess.run([compiler, "-std=c11", source, *options, "-lm", "-o", program], check=True)
    result = subprocess.run([program, artifact], capture_output=True, text=True, check=True)
    ramp = (np.arange(X.size) % 17 / 16.0).reshape(X.shape)
    name, _, norm = result.stdout.partition(": ")
    assert name == "total"
    np.testing.assert_allclose(float(norm), np.linalg.norm(np.sin(ramp).mean(1)), rtol=1e-4)
