// RUN: %braid-opt %s | %braid-opt | FileCheck %s
// RUN: %braid-opt %s --print-op-generic | %braid-opt | FileCheck %s
// RUN: %braid-opt %s --print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK-LABEL: @reductions
// CHECK:         braid.reduce %x {kind = "add", dims = array<i64: 2, 3>} : (tensor<1x8x4x4xf32>) -> tensor<1x8x1x1xf32>
// CHECK:         braid.arg_reduce %x {kind = "max", dim = 1 : i64, select_last = false} : (tensor<1x8x4x4xf32>) -> tensor<1x1x4x4xi64>
// CHECK:         braid.scan %x {kind = "add", dim = 3 : i64, exclusive = true, reverse = false} : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
// CHECK:         braid.top_k %x {k = 2 : i64, dim = 3 : i64, largest = true} : (tensor<1x8x4x4xf32>) -> (tensor<1x8x4x2xf32>, tensor<1x8x4x2xi64>)
// GENERIC:       "braid.reduce"(%x) {kind = "add", dims = array<i64: 2, 3>}
// GENERIC:       "braid.scan"(%x) {kind = "add", dim = 3 : i64, exclusive = true, reverse = false}
func.func @reductions(%x: tensor<1x8x4x4xf32>) -> tensor<1x8x1x1xf32> {
  %0 = braid.reduce %x {kind = "add", dims = array<i64: 2, 3>} : (tensor<1x8x4x4xf32>) -> tensor<1x8x1x1xf32>
  %1 = braid.arg_reduce %x {kind = "max", dim = 1 : i64, select_last = false} : (tensor<1x8x4x4xf32>) -> tensor<1x1x4x4xi64>
  %2 = braid.scan %x {kind = "add", dim = 3 : i64, exclusive = true, reverse = false} : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %3, %4 = braid.top_k %x {k = 2 : i64, dim = 3 : i64, largest = true} : (tensor<1x8x4x4xf32>) -> (tensor<1x8x4x2xf32>, tensor<1x8x4x2xi64>)
  func.return %0 : tensor<1x8x1x1xf32>
}

// CHECK-LABEL: @pool
// CHECK:         braid.pool %x {kind = "max", window = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>}
// CHECK-SAME:      : (tensor<1x8x7x7xf32>) -> tensor<1x8x4x4xf32>
// GENERIC:       "braid.pool"(%x) {kind = "max", window = array<i64: 3, 3>
func.func @pool(%x: tensor<1x8x7x7xf32>) -> tensor<1x8x4x4xf32> {
  %0 = braid.pool %x {kind = "max", window = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>} : (tensor<1x8x7x7xf32>) -> tensor<1x8x4x4xf32>
  func.return %0 : tensor<1x8x4x4xf32>
}

// CHECK-LABEL: @normalization
// CHECK:         braid.softmax %x {dim = 1 : i64} : (tensor<?x8xf32>) -> tensor<?x8xf32>
// CHECK:         braid.layer_norm %{{.*}}, %s, %s {first_dim = 1 : i64, epsilon = 1.000000e-05 : f64} : (tensor<?x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<?x8xf32>
// GENERIC:       "braid.softmax"(%x) {dim = 1 : i64}
func.func @normalization(%x: tensor<?x8xf32>, %s: tensor<1x8xf32>) -> tensor<?x8xf32> {
  %0 = braid.softmax %x {dim = 1 : i64} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = braid.layer_norm %0, %s, %s {first_dim = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<?x8xf32>
  func.return %1 : tensor<?x8xf32>
}
