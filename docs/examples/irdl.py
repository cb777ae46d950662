"""braid's ops in a context of upstream's bindings, checked by its dialect's IRDL."""

from torch_mlir import ir

import braid

TEXT = """
func.func @main(%x: tensor<4x4xf32, #braid.layout<"ba">>) -> tensor<4x4xf32> {
  %y = "braid.exp"(%x) : (tensor<4x4xf32, #braid.layout<"ba">>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
"""

with ir.Context() as context:
    braid.load_irdl(context)
    print(ir.Module.parse(TEXT))
    try:
        ir.Module.parse(TEXT.replace('"ba"', "1"))
    except ir.MLIRError as error:
        print(error)
    else:
        raise AssertionError("a layout that is not a string was accepted")
