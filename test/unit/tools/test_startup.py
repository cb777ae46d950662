"""What is not imported before it is needed, since a user waits for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("module", "late"),
    [
        ("braid.tools.app", {"numpy", "onnx", "xdsl", "braid.compiler"}),
        (
            "braid.compiler",
            {"braid.dialects.tosa", "braid.frontends.mlir", "concurrent.futures", "ortools"},
        ),
        ("braid.passes.partition.insert_channels", {"ortools"}),
        ("braid.passes.order.assign_inter_op_streams", {"ortools"}),
        ("braid", {"numpy", "xdsl"}),
        (
            "braid.runtime.model",
            {
                *("asyncio", "difflib", "hashlib", "importlib.metadata", "ml_dtypes", "onnx"),
                *("tempfile", "xdsl"),
            },
        ),
    ],
)
def test_imports_come_late(module: str, late: set[str]) -> None:
    program = f"import sys, {module}; print(*sys.modules, sep='\\n')"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not late & set(result.stdout.split())


def test_one_pass_of_braid_opt(tmp_path: Path) -> None:
    """It takes longer to start than to run."""
    path = tmp_path / "in.mlir"
    path.write_text("func.func @f(%x: tensor<4xf32>) { return }")
    program = (
        "import gc, sys; from braid.tools.braid_opt import main; "
        f"assert main(['--cse', {str(path)!r}, '-o', {str(tmp_path / 'out.mlir')!r}]) == 0; "
        "print(gc.get_stats()[0]['collections'], *sys.modules, sep='\\n')"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    collections, *modules = result.stdout.split()
    late = {"braid.compiler", "braid.lowering.cpu", "llvmlite", "onnx", "ortools", "sqlalchemy"}
    assert not late & set(modules)
    # Without `rare_collections`, 128 look through the classes that are imported.
    assert int(collections) < 60


def test_compiling_again_imports_no_compiler_of_kernels(tmp_path: Path) -> None:
    program = (
        "import sys, braid; from onnx import TensorProto, helper; "
        "value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [64]); "
        "node = helper.make_node('Relu', ['x'], ['y']); "
        "graph = helper.make_graph([node], 'relu', [value('x')], [value('y')]); "
        "braid.compile(helper.make_model(graph, ir_version=10)); print(*sys.modules, sep='\\n')"
    )
    environment = {**os.environ, "BRAID_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for _ in range(2)
    )
    late = {"braid.lowering.common.bufferized_group", "concurrent.futures", "torch_mlir"}
    assert not late & set(second)
    assert set(first) > set(second)


@pytest.mark.parametrize("given", [None, "20"])
def test_threads_of_numpy_sleep(given: str | None) -> None:
    program = (
        "import os, sys\nfrom braid.tools.cli import main\n"
        "sys.argv = ['braid', '--version']\nmain()\n"
        "print(os.environ['OPENBLAS_THREAD_TIMEOUT'])\n"
    )
    environment = {name: value for name, value in os.environ.items() if "OPENBLAS" not in name}
    if given is not None:
        environment["OPENBLAS_THREAD_TIMEOUT"] = given
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.split()[-1] == (given or "4")
