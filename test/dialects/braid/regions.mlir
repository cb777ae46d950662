// RUN: %braid-opt %s | %braid-opt | FileCheck %s
// RUN: %braid-opt %s --print-op-generic | %braid-opt | FileCheck %s
// RUN: %braid-opt %s --print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK-LABEL: @nested
// CHECK:         braid.fused(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32> {
// CHECK:         ^{{.*}}(%{{.*}}: tensor<4xf32>):
// CHECK:           braid.exp
// CHECK:           braid.yield %{{.*}} : tensor<4xf32>
// CHECK:         braid.copy %{{.*}} {memory = "gpu.global"} : (tensor<4xf32>) -> tensor<4xf32>
// GENERIC:       "braid.fused"(%{{.*}}) ({
func.func @nested(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.fused(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb1(%c: tensor<4xf32>):
    %d = braid.exp %c : (tensor<4xf32>) -> tensor<4xf32>
    braid.yield %d : tensor<4xf32>
  }
  %2 = braid.copy %0 {memory = "gpu.global"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}

// CHECK-LABEL: @values
// CHECK:         braid.constant {value = dense<[1, 2]> : tensor<2xi64>} : tensor<2xi64>
// CHECK:         braid.iota {dim = 0 : i64} : tensor<2xi64>
// CHECK:         braid.parameter {key = "w"} : tensor<2xi64>
func.func @values() -> tensor<2xi64> {
  %0 = braid.constant {value = dense<[1, 2]> : tensor<2xi64>} : tensor<2xi64>
  %1 = braid.iota {dim = 0 : i64} : tensor<2xi64>
  %2 = braid.parameter {key = "w"} : tensor<2xi64>
  func.return %2 : tensor<2xi64>
}
