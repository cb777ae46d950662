// RUN: %braid-opt %s -p hoist-parameter-expressions | filecheck %s

// Results of an earlier run, or of other programs, may have keys without numbers.
// CHECK-LABEL: @main
// CHECK:       braid.parameter {key = "prepared/0"}
// CHECK:       braid.parameter {key = "scaled"}
// CHECK:       func.func private @prepare() -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-SAME:  braid.keys = ["scaled", "prepared/0"]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %s = braid.parameter {key = "scaled"} : tensor<4xf32>
  %w = braid.parameter {key = "w"} : tensor<4xf32>
  %v = braid.neg %w : (tensor<4xf32>) -> tensor<4xf32>
  %a = braid.add %x, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = braid.add %a, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

func.func private @prepare() -> tensor<4xf32> attributes {braid.keys = ["scaled"]} {
  %u = braid.parameter {key = "u"} : tensor<4xf32>
  %e = braid.exp %u : (tensor<4xf32>) -> tensor<4xf32>
  func.return %e : tensor<4xf32>
}
