// A measured time is the cost of an op that declares none: total time by count.
// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/branches.csv},select-layouts' --remarks 2>&1 | filecheck %s
// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/branches.csv},select-fusion,apply-fusion,select-layouts' --remarks 2>&1 | filecheck %s --check-prefix=FUSED

// CHECK: cost 3.2e-05 seconds, lower bound 3.2e-05, gap 0.00%, 0 reorders; costs: 2 measured
// CHECK: braid.seconds = 2.000000e-06
// CHECK: braid.seconds = 2.9999999999999997e-05
// FUSED: cost 3.2e-05 seconds, lower bound 3.2e-05, gap 0.00%, 0 reorders; costs: 2 measured
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %b = braid.opaque "C"(%x) {braid.name = "C"} : (tensor<4xf32>) -> tensor<4xf32>
  %d = braid.opaque "D"(%b) {braid.name = "D"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %d : tensor<4xf32>
}
