"""`braid.run_passes` on modules of upstream's Python bindings."""

from collections.abc import Iterator
from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.passes import ModulePass

import braid
from braid.dialects.braid.constants import ParameterOp
from braid.support.errors import SourceLocation
from braid.support.mlir_bindings import ir


@pytest.fixture
def context() -> Iterator[Any]:
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        yield context


MIXED = """
module attributes {my.version = 3 : i32} {
  func.func @main(%x: tensor<4x4xf32>, %i: i32) -> (tensor<4x4xf32>, i32) {
    %e = tensor.empty() : tensor<4x4xf32>
    %m = linalg.matmul ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>)
                       outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
    %g = linalg.generic {
      indexing_maps = [affine_map<(a, b) -> (b, a)>, affine_map<(a, b) -> (a, b)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%m : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %a fastmath<fast> : f32
      linalg.yield %s : f32
    } -> tensor<4x4xf32>
    %r = "foreign.op"(%g) {what = #foreign.attr<[1, 2]>} : (tensor<4x4xf32>) -> !foreign.type<x>
    %t = "foreign.back"(%r) <{how = 1 : i8}> : (!foreign.type<x>) -> tensor<4x4xf32>
    %k = arith.addi %i, %i overflow<nsw> : i32 loc("model.py":3:4)
    %l = arith.addi %i, %i overflow<nsw> : i32 loc("model.py":5:6)
    %n = arith.muli %k, %l : i32 loc(callsite("f" at "model.py":7:8))
    return %t, %n : tensor<4x4xf32>, i32
  }
}
"""


def located(module: Any) -> str:
    return str(module.operation.get_asm(enable_debug_info=True, use_local_scope=True))


def test_no_pass_changes_nothing(context: Any) -> None:
    module = ir.Module.parse(MIXED)
    before = located(module)
    assert braid.run_passes(module, "") is module
    assert located(module) == before


def test_passes_change_the_module_in_place(context: Any) -> None:
    module = ir.Module.parse(MIXED)
    operation = module.operation
    braid.run_passes(module, "cse")
    assert operation.verify()
    text = located(module)
    assert text.count("arith.addi") == 1 and 'overflow<nsw> : i32 loc("model.py":3:4)' in text
    assert "my.version = 3" in str(operation)


def test_resources_are_kept(context: Any) -> None:
    module = ir.Module.parse("""
    func.func @main() -> tensor<2xf32> {
      %r = arith.constant dense_resource<blob> : tensor<2xf32>
      return %r : tensor<2xf32>
    }
    {-# dialect_resources: { builtin: { blob: "0x040000000000803f00000040" } } #-}
    """)
    for _ in range(2):
        braid.run_passes(module, "cse")
    assert "0x040000000000803F00000040" in str(module)


def test_resources_of_several_modules_with_one_name_are_kept(context: Any) -> None:
    values = ["0x040000000000803F00000040", "0x04000000000080400000A040"]
    texts = [
        f"""
        func.func @main() -> (tensor<2xf32>, tensor<2xf32>) {{
          %a = arith.constant dense_resource<weights> : tensor<2xf32>
          %b = arith.constant dense_resource<weights> : tensor<2xf32>
          return %a, %b : tensor<2xf32>, tensor<2xf32>
        }}
        {{-# dialect_resources: {{ builtin: {{ weights: "{value}" }} }} #-}}
        """
        for value in values
    ]
    modules = list(map(ir.Module.parse, texts))
    for module, value in zip(modules, values, strict=True):
        assert value in str(braid.run_passes(module, "cse"))


def test_a_fault_is_located_and_leaves_the_module_alone(context: Any) -> None:
    module = ir.Module.parse("""
    func.func @main(%x: tensor<4xf32>) -> tensor<5xf32> {
      %y = "braid.exp"(%x) : (tensor<4xf32>) -> tensor<5xf32> loc("model.py":12:3)
      return %y : tensor<5xf32>
    }
    """)
    before = located(module)
    with pytest.raises(braid.BraidError, match="expected tensor<4xf32>") as caught:
        braid.run_passes(module, "cse")
    assert caught.value.location == SourceLocation("model.py", 12, 3)
    assert located(module) == before


class AddParameterPass(ModulePass):
    """Adds an op of braid."""

    name = "add-parameter"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        op.body.block.add_op(ParameterOp.of("w", TensorType(f32, [4])))


def test_what_upstream_rejects_is_an_error_with_the_way_out() -> None:
    with ir.Context():
        module = ir.Module.parse("""
        func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          return %x : tensor<4xf32>
        }
        """)
        before = str(module)
        with pytest.raises(braid.BraidError, match="upstream MLIR rejects") as caught:
            braid.run_passes(module, (AddParameterPass(),))
        assert "allow_unregistered_dialects" in (caught.value.hint or "")
        assert str(module) == before


def test_other_objects_are_refused() -> None:
    with pytest.raises(braid.BraidError, match="cannot run passes on a str"):
        braid.run_passes("builtin.module", "cse")
