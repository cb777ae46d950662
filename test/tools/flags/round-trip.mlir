// Printed modules are read back, as text and as bytecode by upstream MLIR.

// RUN: %braid-opt %s --verify-roundtrip | FileCheck %s
// RUN: %braid-opt %s --emit-bytecode -o %t.mlirbc
// RUN: %python -c "import sys; from torch_mlir import ir; c = ir.Context(); c.allow_unregistered_dialects = True; print(ir.Module.parse(open(sys.argv[1], 'rb').read(), c))" %t.mlirbc | FileCheck %s --check-prefix=BYTECODE
// RUN: not %braid-opt %s --emit-bytecode --split-input-file 2>&1 | FileCheck %s --check-prefix=SPLIT
// RUN: not %braid-opt %s --emit-bytecode --mlir-print-skip-regions 2>&1 | FileCheck %s --check-prefix=PARTS
// RUN: not %braid-opt %s --emit-bytecode --emit-bytecode-version=99 2>&1 | FileCheck %s --check-prefix=VERSION

// CHECK:       braid.add
// BYTECODE:    func.func @f
// BYTECODE:      "braid.add"
// BYTECODE:      dense_resource<
// SPLIT:       braid-opt: error: --emit-bytecode writes one module and takes no --split-input-file
// PARTS:       braid-opt: error: --emit-bytecode writes the whole module and takes no flag that leaves parts out
// VERSION:     error: upstream MLIR cannot write the module as bytecode
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = arith.constant dense_resource<blob> : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
{-#
  dialect_resources: {
    builtin: {
      blob: "0x0400000001000000020000000300000004000000"
    }
  }
#-}
