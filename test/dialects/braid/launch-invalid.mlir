// RUN: not %braid-opt %s --split-input-file 2>&1 | FileCheck %s

// CHECK: error: {{.*}}there is no function 'nowhere' to launch
func.func @main(%x: tensor<4xf32>) {
  %r, %t = braid.launch async [] @nowhere(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: error: {{.*}}'@f' has no braid.device to be launched on
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32>) {
  %r, %t = braid.launch async [] @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: error: {{.*}}'@f' is (tensor<4xf32>) -> tensor<4xf32>, launched as (tensor<4xf32>) -> tensor<2xf32>
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {braid.device = "npu:0"}
func.func @main(%x: tensor<4xf32>) {
  %r, %t = braid.launch async [] @f(%x) : (tensor<4xf32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: error: {{.*}}the results differ in type from the operands
func.func @main(%x: tensor<4xf32>) {
  %r = braid.await [] %x : (tensor<4xf32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: error: {{.*}}braid.slots is [2, 2], expected 1 numbers from 0 on
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {braid.device = "npu:0"}
func.func @main(%x: tensor<4xf32>) {
  %r, %t = braid.launch async [] @f(%x) {braid.slots = array<i64: 2, 2>} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: error: {{.*}}braid.slots is 2 : i64, expected array<i64: …>
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {braid.device = "npu:0"}
func.func @main(%x: tensor<4xf32>) {
  %r, %t = braid.launch async [] @f(%x) {braid.slots = 2 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
