// RUN: %braid-opt %s | %braid-opt | FileCheck %s
// RUN: %braid-opt %s --print-op-generic | %braid-opt | FileCheck %s

// CHECK-LABEL: @main
// CHECK:         %r, %t = braid.launch async [] @on_chip(%x) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK:         %s, %u = braid.launch async [%t] @on_chip(%r) {braid.name = "second"} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK:         braid.await [%t, %u] %r, %s : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r, %t = braid.launch async [] @on_chip(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %s, %u = braid.launch async [%t] @on_chip(%r) {braid.name = "second"} : (tensor<4xf32>) -> tensor<4xf32>
  %v, %w = braid.await [%t, %u] %r, %s : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  func.return %v, %w : tensor<4xf32>, tensor<4xf32>
}

func.func private @on_chip(%x: tensor<4xf32>) -> tensor<4xf32> attributes {braid.device = "npu:0"} {
  %y = braid.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
