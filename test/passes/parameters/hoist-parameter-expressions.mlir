// RUN: %braid-opt %s -p hoist-parameter-expressions --split-input-file | filecheck %s
// RUN: %braid-opt %s -p hoist-parameter-expressions,hoist-parameter-expressions --split-input-file | filecheck %s

// Only what the rest reads becomes a parameter; parameters and constants themselves stay.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[P:.*]] = braid.parameter {key = "prepared/0", braid.name = "exp"}
// CHECK-NEXT:    %w = braid.parameter {key = "w"}
// CHECK-NEXT:    %[[Y:.*]] = braid.add %x, %[[P]]
// CHECK-NEXT:    %[[Z:.*]] = braid.mul %[[Y]], %w
// CHECK-NEXT:    func.return %[[Z]]
// CHECK:       func.func private @prepare() -> tensor<4xf32> attributes {braid.keys = ["prepared/0"]} {
// CHECK-NEXT:    %[[W:.*]] = braid.parameter {key = "w"}
// CHECK-NEXT:    %[[N:.*]] = braid.neg %[[W]]
// CHECK-NEXT:    %[[E:.*]] = braid.exp %[[N]]
// CHECK-NEXT:    func.return %[[E]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = braid.parameter {key = "w"} : tensor<4xf32>
  %0 = braid.neg %w : (tensor<4xf32>) -> tensor<4xf32>
  %1 = braid.exp %0 {braid.name = "exp"} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = braid.add %x, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = braid.mul %2, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %3 : tensor<4xf32>
}

// -----

// Prepared parameters can be prepared further; unused keys are removed.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[P:.*]] = braid.parameter {key = "prepared/1"} : tensor<2x3xf32, #braid.layout<"ba">>
// CHECK-NEXT:    func.return %[[P]]
// CHECK:       func.func private @prepare() -> tensor<2x3xf32, #braid.layout<"ba">> attributes {braid.keys = ["prepared/1"]} {
// CHECK-NEXT:    braid.parameter {key = "w"}
// CHECK-NEXT:    braid.neg
// CHECK-NEXT:    braid.reorder
func.func @main() -> tensor<2x3xf32, #braid.layout<"ba">> {
  %p = braid.parameter {key = "prepared/0"} : tensor<2x3xf32>
  %0 = braid.reorder %p : (tensor<2x3xf32>) -> tensor<2x3xf32, #braid.layout<"ba">>
  func.return %0 : tensor<2x3xf32, #braid.layout<"ba">>
}
func.func private @prepare() -> tensor<2x3xf32> attributes {braid.keys = ["prepared/0"]} {
  %w = braid.parameter {key = "w"} : tensor<2x3xf32>
  %0 = braid.neg %w : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %0 : tensor<2x3xf32>
}

// -----

// A small weight is not expanded, nor are values computed from it; the operand of the broadcast is
// known.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[P:.*]] = braid.parameter {key = "prepared/0"} : tensor<1x1024xf32>
// CHECK-NEXT:    %[[B:.*]] = braid.broadcast %[[P]]
// CHECK-NEXT:    %[[E:.*]] = braid.exp %[[B]]
// CHECK-NEXT:    func.return %[[E]]
func.func @main() -> tensor<1024x1024xf32> {
  %w = braid.parameter {key = "w"} : tensor<1x1024xf32>
  %0 = braid.neg %w : (tensor<1x1024xf32>) -> tensor<1x1024xf32>
  %1 = braid.broadcast %0 : (tensor<1x1024xf32>) -> tensor<1024x1024xf32>
  %2 = braid.exp %1 : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  func.return %2 : tensor<1024x1024xf32>
}

// -----

// Nothing to prepare, no function; a group is moved as one op, and never in parts.
// CHECK-LABEL: func.func @main
// CHECK-NOT:   prepare
// CHECK:         braid.fused
// CHECK:           braid.constant
// CHECK-NEXT:      braid.neg
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.fused (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %c = braid.constant {value = dense<2.0> : tensor<4xf32>} : tensor<4xf32>
    %n = braid.neg %c : (tensor<4xf32>) -> tensor<4xf32>
    %s = braid.add %a, %n : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    braid.yield %s : tensor<4xf32>
  }
  func.return %0 : tensor<4xf32>
}

// -----

// A parameter stands where the function begins, whichever of its blocks reads it.
// CHECK-LABEL: func.func @blocks
// CHECK-NEXT:    %[[P:.*]] = braid.parameter {key = "prepared/0"} : tensor<4xf32>
// CHECK-NEXT:    cf.cond_br
// CHECK:         braid.add %x, %[[P]]
func.func @blocks(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  cf.cond_br %c, ^a, ^b
^a:
  %w = braid.parameter {key = "w"} : tensor<4xf32>
  %0 = braid.neg %w : (tensor<4xf32>) -> tensor<4xf32>
  %1 = braid.add %x, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
^b:
  func.return %x : tensor<4xf32>
}
