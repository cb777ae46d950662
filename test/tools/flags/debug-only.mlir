// --debug-only prints what the passes decided that it names; a debug type of LLVM prints nothing.

// RUN: %braid-opt %s -p select-fusion,cse -debug-only=select-fusion,isel -o %t 2>&1 | FileCheck %s
// RUN: %braid-opt %s -p select-fusion,cse --debug-only cse -o %t 2>%t.err
// RUN: test ! -s %t.err
// RUN: %braid-opt %s -p select-fusion --mlir-print-assume-verified -o %t 2>%t.err
// RUN: test ! -s %t.err

// CHECK:      debug-only.mlir:{{.*}}: remark: [select-fusion] 1 ops in 1 groups
func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = braid.neg %x : (tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
