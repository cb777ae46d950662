// RUN: not %braid-opt %s -p hoist-parameter-expressions 2>&1 | filecheck %s

// CHECK: prepare-taken.mlir:5:1: error: the module has a function '@prepare'
// CHECK: hint: rename the function
func.func @prepare(%x: tensor<2xf32>) -> tensor<2xf32> {
  func.return %x : tensor<2xf32>
}
