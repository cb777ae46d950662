"""What is not imported before it is needed, since a user waits for it."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("module", "late"),
    [
        ("braid.tools.app", {"numpy", "onnx", "xdsl", "braid.compiler"}),
        ("braid.compiler", {"ortools"}),
        ("braid.passes.partition.insert_channels", {"ortools"}),
        ("braid.passes.order.assign_inter_op_streams", {"ortools"}),
        ("braid", {"numpy", "xdsl"}),
        ("braid.model", {"asyncio", "importlib.metadata", "ml_dtypes", "onnx", "xdsl"}),
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
