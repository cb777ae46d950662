// RUN: %braid-opt %s -p convert-linalg-to-braid | FileCheck %s

// A product that starts from zeros is one of braid; another start is added.
// CHECK-LABEL: func.func @product
// CHECK-NOT:   linalg
// CHECK:       %[[Y:.*]] = braid.matmul %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK:       %[[M:.*]] = braid.matmul %[[Y]], %b {braid.device = "gpu:0"}
// CHECK:       braid.add %c, %[[M]] {braid.device = "gpu:0"}
func.func @product(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %z = linalg.matmul {braid.device = "gpu:0"} ins(%y, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %z : tensor<4x4xf32>
}

// An op on open dims stays.
// CHECK-LABEL: func.func @open
// CHECK:       linalg.add
func.func @open(%a: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.add ins(%a, %a : tensor<?xf32>, tensor<?xf32>) outs(%a : tensor<?xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// What is read of a tensor that nothing has written is zeros, never what memory held.
// CHECK-LABEL: func.func @unwritten
// CHECK:       %[[ZERO:.*]] = braid.constant {value = dense<0.0
// CHECK:       %[[ZEROS:.*]] = braid.broadcast %[[ZERO]]
// CHECK:       tensor.insert %x into %[[ZEROS]]
// CHECK:       func.return %{{.*}}, %[[ZEROS]]
func.func @unwritten(%x: f32, %i: index) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %y = tensor.insert %x into %e[%i] : tensor<4xf32>
  func.return %y, %e : tensor<4xf32>, tensor<4xf32>
}
