// RUN: %braid-opt %s --split-input-file -p append-in-place,add-specializations | filecheck %s

// A step that appends one row has a function of its own, whose other dims stay open.

// CHECK:       func.func @main(%past: tensor<?x?x4xf32, #braid.sizes<["past", "batch"]>>
// CHECK-SAME:    %new: tensor<?x?x4xf32, #braid.sizes<["batch", "new"]>>
// CHECK-NOT:     braid.specialized
// CHECK:       func.func @main_0(%past: tensor<?x?x4xf32, #braid.sizes<["past", "batch"]>>
// CHECK-SAME:    braid.state = "present"
// CHECK-SAME:    %new: tensor<?x1x4xf32, #braid.sizes<["batch"]>>
// CHECK-SAME:    -> (tensor<?x?x4xf32, #braid.sizes<["past + 1", "batch"]>>
// CHECK-SAME:    braid.specialized = {new = 1 : i64}
func.func @main(
    %past: tensor<?x?x4xf32, #braid.sizes<["batch", "past"]>>
      {braid.name = "past", braid.state = "present"},
    %new: tensor<?x?x4xf32, #braid.sizes<["batch", "new"]>>)
    -> (tensor<?x?x4xf32, #braid.sizes<["batch", "new + past"]>> {braid.name = "present"}) {
  %y = braid.concat %past, %new {dim = 1 : i64} : (tensor<?x?x4xf32, #braid.sizes<["batch", "past"]>>, tensor<?x?x4xf32, #braid.sizes<["batch", "new"]>>) -> tensor<?x?x4xf32, #braid.sizes<["batch", "new + past"]>>
  return %y : tensor<?x?x4xf32, #braid.sizes<["batch", "new + past"]>>
}

// -----

// Rows whose number is fixed need no other function.

// CHECK:       func.func @one(
// CHECK-NOT:   func.func
// CHECK-NOT:   braid.specialized
func.func @one(
    %past: tensor<?x4xf32, #braid.sizes<["past"]>> {braid.state = "present"}, %new: tensor<1x4xf32>)
    -> (tensor<?x4xf32, #braid.sizes<["past + 1"]>> {braid.name = "present"}) {
  %y = braid.concat %past, %new {dim = 0 : i64} : (tensor<?x4xf32, #braid.sizes<["past"]>>, tensor<1x4xf32>) -> tensor<?x4xf32, #braid.sizes<["past + 1"]>>
  return %y : tensor<?x4xf32, #braid.sizes<["past + 1"]>>
}
