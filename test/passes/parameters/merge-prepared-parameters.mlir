// RUN: %braid-opt %s -p merge-prepared-parameters | filecheck %s

// Two variants of a model have packed the same weight.
// CHECK-LABEL: func.func @main_0
// CHECK:         braid.parameter {key = "prepared/0"}
func.func @main_0(%x: tensor<1x4xf32>) -> tensor<1x4xf32> attributes {braid.variant = {n = 1 : i64}} {
  %w = braid.parameter {key = "prepared/0"} : tensor<1x4xf32>
  %y = braid.add %x, %w : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  return %y : tensor<1x4xf32>
}

// Parameters that only another variant needs stay.
// CHECK-LABEL: func.func @main_1
// CHECK-DAG:     braid.parameter {key = "prepared/0"}
// CHECK-DAG:     braid.parameter {key = "prepared/2"}
func.func @main_1(%x: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {braid.variant = {n = 2 : i64}} {
  %w = braid.parameter {key = "prepared/1"} : tensor<1x4xf32>
  %v = braid.parameter {key = "prepared/2"} : tensor<1x4xf32>
  %y = braid.add %x, %w : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %z = braid.add %y, %v : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  return %z : tensor<2x4xf32>
}

// CHECK-LABEL: func.func private @prepare() -> (tensor<1x4xf32>, tensor<1x4xf32>)
// CHECK-SAME:    braid.keys = ["prepared/0", "prepared/2"]
// CHECK-NEXT:    braid.parameter {key = "w"}
// CHECK-NEXT:    %[[N:.*]] = braid.neg
// CHECK-NEXT:    %[[E:.*]] = braid.exp
// CHECK-NEXT:    return %[[N]], %[[E]]
func.func private @prepare() -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>)
    attributes {braid.keys = ["prepared/0", "prepared/1", "prepared/2"]} {
  %a = braid.parameter {key = "w"} : tensor<1x4xf32>
  %p = braid.neg %a : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %b = braid.parameter {key = "w"} : tensor<1x4xf32>
  %q = braid.neg %b : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %r = braid.exp %b : (tensor<1x4xf32>) -> tensor<1x4xf32>
  return %p, %q, %r : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>
}
