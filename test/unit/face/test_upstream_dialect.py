"""The IRDL of braid's dialect, loaded into upstream's bindings."""

from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, VariadicDef

import braid
from braid.analysis.verification import InvalidIRError, verify_module
from braid.dialects.braid.elementwise import ELEMENTWISE
from braid.dialects.printing import module_text
from braid.frontends.mlir import MLIRSyntaxError, parse_mlir
from braid.lowering.common.mlir_bindings import ir
from braid.tools.opt.files import split_chunks
from braid.universe import make_context

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "test").rglob("*.mlir"))
ELEMENTWISE_NAMES = {f"braid.{name}" for name in ELEMENTWISE}
FOREIGN = ("llvm.", "memref.", "test.", "tosa.")
"""Dialects of which our ops differ from upstream's, or are checked less."""


def has_mixed_variadic(op: Operation) -> bool:
    """Whether a variadic of one of braid's ops has values of several types."""
    if op.name in ELEMENTWISE_NAMES or not op.name.startswith("braid."):
        return False
    assert isinstance(op, IRDLOperation)
    definition = op.get_irdl_definition()
    operands = any(isinstance(d, VariadicDef) for _, d in definition.operands)
    results = any(isinstance(d, VariadicDef) for _, d in definition.results)
    return (operands and len({value.type for value in op.operands}) > 1) or (
        results and len({value.type for value in op.results}) > 1
    )


def valid_modules(file: Path) -> list[ModuleOp]:
    """The parts of a test that are valid and made of ops that upstream knows, or braid's."""
    found: list[ModuleOp] = []
    for chunk in split_chunks(file.read_text(encoding="utf-8")):
        try:
            module = parse_mlir(make_context(), chunk.text, file.name).module
            verify_module(module)
        except (MLIRSyntaxError, InvalidIRError):
            continue
        if not any(op.name.startswith(FOREIGN) for op in module.walk()):
            found.append(module)
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT / "test")))
def test_upstream_accepts_every_module_but_mixed_variadics(file: Path) -> None:
    for module in valid_modules(file):
        text = module_text(module, generic=True)
        mixed = any(has_mixed_variadic(op) for op in module.walk())
        with ir.Context() as context:
            braid.load_irdl(context)
            if mixed:
                with pytest.raises(ir.MLIRError, match=r"expected .* but got"):
                    ir.Module.parse(text)
            else:
                again = ir.Module.parse(text).operation.get_asm(print_generic_op_form=True)
                read = parse_mlir(make_context(), again, "again.mlir").module
                verify_module(read)
        if mixed:
            with ir.Context() as context:
                context.allow_unregistered_dialects = True
                ir.Module.parse(text)


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ('"braid.exp"(%x) : (tensor<4xf32>) -> i32', "expected base type 'builtin.tensor'"),
        ('"braid.exp"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>', "1 operand"),
        ('"braid.parameter"() : () -> tensor<4xf32>', 'attribute "key" is expected'),
        ('"braid.parameter"() {key = 1} : () -> tensor<4xf32>', "base attribute 'builtin.string'"),
        ('"braid.no_such_op"() : () -> tensor<4xf32>', "does not allow unknown operations"),
        ('"braid.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32, #braid.layout<1>>', "base attribute"),
    ],
)
def test_upstream_checks_what_irdl_can_say(op: str, message: str) -> None:
    with ir.Context() as context:
        braid.load_irdl(context)
        with pytest.raises(ir.MLIRError, match=message):
            ir.Module.parse(f"func.func @f(%x: tensor<4xf32>) {{ %y = {op} return }}")


def test_passes_run_where_the_dialect_is_loaded() -> None:
    with ir.Context() as context:
        for _ in range(2):
            braid.load_irdl(context)
        module = ir.Module.parse("""
        func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
          %y = "braid.transpose"(%x) {permutation = array<i64: 1, 0>}
            : (tensor<4x4xf32>) -> tensor<4x4xf32, #braid.layout<"ba">>
          %z = "braid.exp"(%y)
            : (tensor<4x4xf32, #braid.layout<"ba">>) -> tensor<4x4xf32, #braid.layout<"ba">>
          %a = "braid.exp"(%y)
            : (tensor<4x4xf32, #braid.layout<"ba">>) -> tensor<4x4xf32, #braid.layout<"ba">>
          %s = "braid.add"(%z, %a) {braid.name = "s"}
            : (tensor<4x4xf32, #braid.layout<"ba">>, tensor<4x4xf32, #braid.layout<"ba">>)
              -> tensor<4x4xf32>
          return %s : tensor<4x4xf32>
        }
        """)
        braid.run_passes(module, "cse,select-fusion,apply-fusion")
        assert str(module).count("braid.exp") == 1 and "braid.fused" in str(module)


def test_only_contexts_are_accepted() -> None:
    with pytest.raises(braid.BraidError, match="cannot load IRDL into a list"):
        braid.load_irdl([])
