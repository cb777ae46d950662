"""What `--emit` prints can be read again."""

import pytest

from braid.driver.compile_source import emit_model
from braid.driver.options import CompileOptions
from braid.frontends.mlir import parse_mlir
from braid.support.mlir_bindings import ir
from braid.universe import make_context

MODEL = """
func.func @main(%x: tensor<4x8xf32> {braid.name = "x"})
    -> (tensor<4x8xf32> {braid.name = "y"}) {
  %0 = braid.neg %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = braid.softmax %0 {dim = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}
"""


@pytest.fixture
def emitted(tmp_path):
    path = tmp_path / "model.mlir"
    path.write_text(MODEL)

    def emit(stage: str) -> str:
        text = emit_model(path, stage, CompileOptions(jobs=1))
        assert isinstance(text, str)
        return text

    return emit


def test_linalg_is_modules_that_upstream_reads(emitted) -> None:
    parts = emitted("linalg").split("// -----\n")
    assert len(parts) >= 2  # At least a kernel, and the program that calls it.
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        for part in parts:
            assert ir.Module.parse(part).operation.verify()


def test_mlir_is_a_module_that_braid_reads(emitted) -> None:
    module = parse_mlir(make_context(), emitted("mlir"), "emitted.mlir").module
    assert {op.name for op in module.ops} == {"func.func"}
