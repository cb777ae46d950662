"""What is not imported before it is needed, since a user waits for it."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "late"),
    [
        ("braid.tools.cli", {"numpy", "onnx", "xdsl", "braid.compiler"}),
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
