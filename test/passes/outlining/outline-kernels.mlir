// RUN: %braid-opt %s -p outline-kernels --split-input-file | FileCheck %s

// Groups that compute the same share a kernel; names stay on the calls.
// CHECK-LABEL: func.func @shared
// CHECK-SAME:    (%[[X:.*]]: tensor<4xf32>
// CHECK:         %[[A:.*]] = func.call @kernel_0(%[[X]]) {braid.name = "first"}
// CHECK:         %[[B:.*]] = func.call @kernel_0(%[[A]]) {braid.name = "second"}
// CHECK:         %[[C:.*]] = func.call @kernel_1(%[[B]])
// CHECK:         func.return %[[C]]
// CHECK:       func.func private @kernel_0
// CHECK-NEXT:    braid.exp
// CHECK-NOT:     braid.name
// CHECK:       func.func private @kernel_1
// CHECK:         braid.neg
// CHECK-NOT:   @kernel_2
func.func @shared(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = braid.fused (%x) {braid.name = "first"} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%p: tensor<4xf32>):
    %e = braid.exp %p {braid.name = "first"} : (tensor<4xf32>) -> tensor<4xf32>
    braid.yield %e : tensor<4xf32>
  }
  %b = braid.exp %a {braid.name = "second"} : (tensor<4xf32>) -> tensor<4xf32>
  %c = braid.neg %b : (tensor<4xf32>) -> tensor<4xf32>
  func.return %c : tensor<4xf32>
}

// -----

// Weights, constants, views and scalars stay in the program; so do private functions.
// CHECK-LABEL: func.func @views
// CHECK:         braid.parameter
// CHECK:         braid.constant
// CHECK:         braid.reshape
// CHECK-NOT:     func.call
// CHECK:         func.return
// CHECK-LABEL: func.func private @prepare
// CHECK:         braid.exp
func.func @views() -> (tensor<4xf32>, tensor<2xf32>) {
  %w = braid.parameter {key = "w"} : tensor<2x2xf32>
  %c = braid.constant {value = dense<1.0> : tensor<2xf32>} : tensor<2xf32>
  %v = braid.reshape %w : (tensor<2x2xf32>) -> tensor<4xf32>
  func.return %v, %c : tensor<4xf32>, tensor<2xf32>
}
func.func private @prepare(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = braid.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// -----

// A reshape of a tensor that is not row-major moves elements: it is a kernel.
// CHECK-LABEL: func.func @reordering_reshape
// CHECK:         func.call @kernel_0
func.func @reordering_reshape(%x: tensor<2x3xf32, #braid.layout<"ba">>) -> tensor<6xf32> {
  %v = braid.reshape %x : (tensor<2x3xf32, #braid.layout<"ba">>) -> tensor<6xf32>
  func.return %v : tensor<6xf32>
}

// -----

// A value that is used twice is one argument, so that arguments never alias. Groups inside
// branches are outlined too.
// CHECK-LABEL: func.func @branches
// CHECK:         scf.if
// CHECK:           func.call @kernel_0(%{{[a-z0-9]+}}) :
// CHECK:         } else {
// CHECK:           func.call @kernel_1
func.func @branches(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  %r = scf.if %c -> (tensor<4xf32>) {
    %a = braid.mul %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %a : tensor<4xf32>
  } else {
    %b = braid.neg %x : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}
