// RUN: %braid-opt %s | %braid-opt | FileCheck %s
// RUN: %braid-opt %s --print-op-generic | %braid-opt | FileCheck %s
// RUN: %braid-opt %s --print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK-LABEL: @movement
// CHECK:         braid.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
// CHECK:         braid.slice %{{.*}} {offsets = array<i64: 2, 0>, sizes = array<i64: 3, 1>, strides = array<i64: -1, 1>}
// CHECK:         braid.broadcast %{{.*}} : (tensor<3x1xf32>) -> tensor<3x4xf32>
// CHECK:         braid.pad %{{.*}} {low = array<i64: 1, 0>, high = array<i64: 0, 0>, value = 1.000000e+00 : f32}
// CHECK:         braid.concat %{{.*}}, %{{.*}} {dim = 1 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
// CHECK:         braid.reshape %{{.*}} : (tensor<4x8xf32>) -> tensor<32xf32>
// GENERIC:       "braid.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
// GENERIC:       "braid.concat"(%{{.*}}, %{{.*}}) {dim = 1 : i64}
func.func @movement(%x: tensor<2x3xf32>) -> tensor<32xf32> {
  %0 = braid.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = braid.slice %0 {offsets = array<i64: 2, 0>, sizes = array<i64: 3, 1>, strides = array<i64: -1, 1>} : (tensor<3x2xf32>) -> tensor<3x1xf32>
  %2 = braid.broadcast %1 : (tensor<3x1xf32>) -> tensor<3x4xf32>
  %3 = braid.pad %2 {low = array<i64: 1, 0>, high = array<i64: 0, 0>, value = 1.0 : f32} : (tensor<3x4xf32>) -> tensor<4x4xf32>
  %4 = braid.concat %3, %3 {dim = 1 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  %5 = braid.reshape %4 : (tensor<4x8xf32>) -> tensor<32xf32>
  func.return %5 : tensor<32xf32>
}
