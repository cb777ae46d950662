from io import StringIO

import pytest
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.printer import Printer

from braid.lowering.common.generic_text import module_text
from braid.support.mlir_bindings import ir

LOOP = """
func.func @f(%0: memref<4xf32>, %1: index, %2: index) {
  %3 = arith.constant 1 : index
  scf.for %4 = %1 to %2 step %3 {
    %5 = memref.load %0[%4] : memref<4xf32>
    %6 = arith.addf %5, %5 fastmath<reassoc> : f32
    memref.store %6, %0[%4] : memref<4xf32>
  }
  func.return
}
"""
BLOCKS = """
func.func @f(%0: i1, %1: f32) -> (f32, f32) {
  cf.cond_br %0, ^bb1(%1 : f32), ^bb2
^bb1(%2: f32):
  cf.br ^bb2
^bb2:
  %3:2 = scf.if %0 -> (f32, f32) {
    scf.yield %1, %1 : f32, f32
  } else {
    scf.yield %1, %1 : f32, f32
  }
  func.return %3#0, %3#1 : f32, f32
}
"""
ATTRIBUTES = """
"builtin.module"() ({
  "func.func"() <{function_type = (memref<1xf32>) -> (), sym_name = "f",
      arg_attrs = [{llvm.noalias}]}> ({
  ^bb0(%0: memref<1xf32>):
    %1, %2 = "test.unknown"(%0)
        {unit, "a key" = "a \\"text\\"", dense = dense<0xff800000> : vector<2xf32>}
        : (memref<1xf32>) -> ((f32) -> f32, f32)
    %3 = "test.function"() : () -> ((f32) -> f32)
    "func.return"() : () -> ()
  }) {note} : () -> ()
}) {top = 1 : i64} : () -> ()
"""
EMPTY = '"test.op"() ({\n}) : () -> ()'


def parsed(text: str) -> ModuleOp:
    context = Context(allow_unregistered=True)
    for name, dialect in get_all_dialects().items():
        context.register_dialect(name, dialect)
    return Parser(context, text).parse_module()


@pytest.mark.parametrize("text", [LOOP, BLOCKS, ATTRIBUTES], ids=["loop", "blocks", "attributes"])
def test_text_is_that_of_the_printer(text: str) -> None:
    module = parsed(text)
    for op in module.walk():
        for result in op.results:
            result.name_hint = None  # a name would stay
    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    assert module_text(module) == stream.getvalue()
    assert parsed(module_text(module)).is_structurally_equivalent(module)


def test_regions_without_blocks_are_read_again() -> None:
    module = parsed(EMPTY)
    assert parsed(module_text(module)).is_structurally_equivalent(module)


@pytest.mark.parametrize("text", [LOOP, BLOCKS], ids=["loop", "blocks"])
def test_upstream_reads_it(text: str) -> None:
    with ir.Context():
        assert ir.Module.parse(module_text(parsed(text))).operation.verify()
