// RUN: %braid-opt %s --split-input-file -p append-in-place | filecheck %s

// The dim that grows comes first; readers get the original order of dims, and appended values the
// new one.

// CHECK:       func.func @grows(
// CHECK-SAME:    %past: tensor<?x?x8x64xf32, #braid.sizes<["past", "batch"]>>
// CHECK-SAME:    braid.dim_order = array<i64: 2, 0, 1, 3>, braid.appended
// CHECK-SAME:    -> (tensor<?x?x8x64xf32, #braid.sizes<["new + past", "batch"]>>
// CHECK-SAME:    braid.name = "present", braid.dim_order = array<i64: 2, 0, 1, 3>
// CHECK-SAME:    braid.symbols = {past = #braid.symbol<{likely = array<i64: 1024>}>}
// CHECK:         %[[OLD:[0-9]+]] = braid.transpose %past {permutation = array<i64: 1, 2, 0, 3>}
// CHECK:         %[[PART:[0-9]+]] = braid.transpose %new {permutation = array<i64: 2, 0, 1, 3>}
// CHECK:         %[[WHOLE:[0-9]+]] = braid.concat %past, %[[PART]] {dim = 0 : i64, braid.name = "y"}
// CHECK:         %[[READ:[0-9]+]] = braid.transpose %[[WHOLE]] {permutation = array<i64: 1, 2, 0, 3>}
// CHECK:         braid.exp %[[READ]]
// CHECK:         braid.exp %[[OLD]]
// CHECK:         return %[[WHOLE]]
func.func @grows(
    %past: tensor<?x8x?x64xf32, #braid.sizes<["batch", "past"]>>
      {braid.name = "past", braid.state = "present"},
    %new: tensor<?x8x?x64xf32, #braid.sizes<["batch", "new"]>>)
    -> (tensor<?x8x?x64xf32, #braid.sizes<["batch", "new + past"]>> {braid.name = "present"},
        tensor<?x8x?x64xf32, #braid.sizes<["batch", "new + past"]>>,
        tensor<?x8x?x64xf32, #braid.sizes<["batch", "past"]>>) {
  %y = braid.concat %past, %new {dim = 2 : i64, braid.name = "y"} : (tensor<?x8x?x64xf32, #braid.sizes<["batch", "past"]>>, tensor<?x8x?x64xf32, #braid.sizes<["batch", "new"]>>) -> tensor<?x8x?x64xf32, #braid.sizes<["batch", "new + past"]>>
  %z = braid.exp %y : (tensor<?x8x?x64xf32, #braid.sizes<["batch", "new + past"]>>) -> tensor<?x8x?x64xf32, #braid.sizes<["batch", "new + past"]>>
  %o = braid.exp %past : (tensor<?x8x?x64xf32, #braid.sizes<["batch", "past"]>>) -> tensor<?x8x?x64xf32, #braid.sizes<["batch", "past"]>>
  return %y, %z, %o : tensor<?x8x?x64xf32, #braid.sizes<["batch", "new + past"]>>, tensor<?x8x?x64xf32, #braid.sizes<["batch", "new + past"]>>, tensor<?x8x?x64xf32, #braid.sizes<["batch", "past"]>>
}

// -----

// A state that already grows along its outermost dim does not change.

// CHECK:       func.func @stays(
// CHECK-SAME:    %past: tensor<1x?x4xf32, #braid.sizes<["past"]>>
// CHECK-NOT:     braid.dim_order
// CHECK-SAME:    braid.appended
// CHECK:         braid.concat %past, %new {dim = 1 : i64}
func.func @stays(
    %past: tensor<1x?x4xf32, #braid.sizes<["past"]>>
      {braid.name = "past", braid.state = "present"},
    %new: tensor<1x2x4xf32>)
    -> (tensor<1x?x4xf32, #braid.sizes<["past + 2"]>> {braid.name = "present"}) {
  %y = braid.concat %past, %new {dim = 1 : i64} : (tensor<1x?x4xf32, #braid.sizes<["past"]>>, tensor<1x2x4xf32>) -> tensor<1x?x4xf32, #braid.sizes<["past + 2"]>>
  return %y : tensor<1x?x4xf32, #braid.sizes<["past + 2"]>>
}

// -----

// A state that stays as it is: nothing is appended.

// CHECK:       func.func @kept(
// CHECK-SAME:    braid.state = "same", braid.appended
// CHECK:         return %keys
func.func @kept(%keys: tensor<?x4xf32, #braid.sizes<["batch"]>> {braid.state = "same"})
    -> (tensor<?x4xf32, #braid.sizes<["batch"]>> {braid.name = "same"}) {
  return %keys : tensor<?x4xf32, #braid.sizes<["batch"]>>
}

// -----

// A state that is replaced, not appended to.

// CHECK:       func.func @replaced(
// CHECK-NOT:     braid.appended
// CHECK:         braid.exp
func.func @replaced(%h: tensor<?x4xf32, #braid.sizes<["batch"]>> {braid.state = "next"})
    -> (tensor<?x4xf32, #braid.sizes<["batch"]>> {braid.name = "next"}) {
  %y = braid.exp %h : (tensor<?x4xf32, #braid.sizes<["batch"]>>) -> tensor<?x4xf32, #braid.sizes<["batch"]>>
  return %y : tensor<?x4xf32, #braid.sizes<["batch"]>>
}
