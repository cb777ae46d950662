// Functions of a model are put where it calls them, those that they call first.

// RUN: %braid-opt %s -p inline --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%x: tensor<4xf32>, %p: i1)
// CHECK:         %[[A:.*]] = braid.exp %x {braid.name = "first/norm"}
// CHECK:         %[[B:.*]] = braid.neg %[[A]]
// CHECK:         scf.if %p
// CHECK:           %[[C:.*]] = braid.exp %[[B]] {braid.name = "norm"}
// CHECK:           %[[D:.*]] = braid.neg %[[C]]
// CHECK:           scf.yield %[[D]]
// CHECK:         } else {
// CHECK:           scf.yield %[[B]]
// CHECK-NOT:   func.func private
func.func private @inner(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = braid.exp %x {braid.name = "norm"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func private @outer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = func.call @inner(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %z = braid.neg %y : (tensor<4xf32>) -> tensor<4xf32>
  func.return %z : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>, %p: i1) -> tensor<4xf32> {
  %a = func.call @outer(%x) {braid.name = "first"} : (tensor<4xf32>) -> tensor<4xf32>
  %b = scf.if %p -> (tensor<4xf32>) {
    %c = func.call @outer(%a) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %c : tensor<4xf32>
  } else {
    scf.yield %a : tensor<4xf32>
  }
  func.return %b : tensor<4xf32>
}

// -----

// Arguments may be handed back as they are.

// CHECK-LABEL: func.func @swapped
// CHECK-NEXT:    func.return %y, %x
func.func private @swap(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  func.return %b, %a : tensor<4xf32>, tensor<4xf32>
}
func.func @swapped(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0, %1 = func.call @swap(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Ops run on the call's device; each call gets new clusters for those of the body.

// CHECK-LABEL: func.func @twice
// CHECK:         %[[A:.*]] = braid.exp %x {braid.cluster = 8 : i64, braid.device = "npu:0"}
// CHECK-NEXT:    %[[B:.*]] = braid.neg %[[A]] {braid.cluster = 3 : i64, braid.device = "cpu:0"}
// CHECK-NEXT:    %[[C:.*]] = braid.exp %[[B]] {braid.cluster = 9 : i64, braid.device = "npu:0"}
// CHECK-NEXT:    %[[D:.*]] = braid.neg %[[C]] {braid.cluster = 9 : i64, braid.device = "npu:0"}
// CHECK-NEXT:    func.return %[[D]]
func.func private @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = braid.exp %x {braid.cluster = 7 : i64, braid.device = "npu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %z = braid.neg %y : (tensor<4xf32>) -> tensor<4xf32>
  func.return %z : tensor<4xf32>
}
func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = func.call @step(%x) {braid.cluster = 3 : i64, braid.device = "cpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %b = func.call @step(%a) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}
