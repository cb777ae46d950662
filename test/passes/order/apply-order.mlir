// RUN: %braid-opt %s -p apply-order | filecheck %s

// CHECK-LABEL: func.func @permuted(%x: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:    "a"(%x) :
// CHECK-NEXT:    "c"
// CHECK-NEXT:    "b"
// CHECK-NEXT:    "d"
// CHECK-NEXT:    func.return
func.func @permuted(%x: tensor<4xf32>) -> tensor<4xf32> attributes {braid.order = [array<i64: 0, 2, 1, 3>]} {
  %0 = braid.opaque "a"(%x) {braid.key_node} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = braid.opaque "b"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = braid.opaque "c"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = braid.opaque "d"(%1, %2) {braid.key_node} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %3 : tensor<4xf32>
}

// Each block of an op has its own order; what a region reads counts as read by its op.
// CHECK-LABEL: func.func @nested
// CHECK-NEXT:    "a"
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      "c"
// CHECK-NEXT:      "b"
func.func @nested(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.opaque "a"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = scf.if %c -> (tensor<4xf32>) {
    %2 = braid.opaque "b"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %3 = braid.opaque "c"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %4 = braid.opaque "d"(%2, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %4 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  } {braid.order = [array<i64: 1, 0, 2>, array<i64>]}
  func.return %1 : tensor<4xf32>
}

// Without a decision nothing moves.
// CHECK-LABEL: func.func @undecided
// CHECK-NEXT:    "b"
// CHECK-NEXT:    "a"
func.func @undecided(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = braid.opaque "b"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = braid.opaque "a"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
