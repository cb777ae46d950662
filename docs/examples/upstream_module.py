"""braid's passes between upstream's own, on a module of MLIR's Python bindings."""

from torch_mlir import ir, passmanager

import braid

with ir.Context() as context:
    context.allow_unregistered_dialects = True  # braid's ops, in generic form
    module = ir.Module.parse(
        """
        func.func @main(%x: tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32> {
          %w = "braid.parameter"() {key = "w"} : () -> tensor<64x64x1x1xf32>
          %y = "braid.conv"(%x, %w) {
            strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
            pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64
          } : (tensor<1x64x56x56xf32>, tensor<64x64x1x1xf32>) -> tensor<1x64x56x56xf32>
          %z = "braid.tanh"(%y) : (tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
          return %z : tensor<1x64x56x56xf32>
        }
        """
    )
    passmanager.PassManager.parse("builtin.module(cse)").run(module.operation)
    braid.run_passes(module, "select-fusion,apply-fusion,select-layouts,apply-layouts")
    passmanager.PassManager.parse("builtin.module(canonicalize)").run(module.operation)

    print(module)
    assert '"braid.fused"' in str(module) and "#braid.layout<" in str(module)
