// A branch that a profile of braid never saw: a small probability, not none.
// RUN: echo '{"ops": {"hot": {"count": 4, "seconds": 1.0e-5}, "cold": {"count": 0, "seconds": 0.0}}}' > %t.json
// RUN: %braid-opt %s -p 'annotate-profile{file=%t.json}' 2>&1 | filecheck %s
// RUN: %braid-opt %s -p 'annotate-profile{file=%t.json unseen=0}' 2>&1 | filecheck %s --check-prefix=NONE

// CHECK-NOT: warning
// CHECK: braid.branch_probability = 9.990000e-01 : f64
// NONE: braid.branch_probability = 1.000000e+00 : f64
func.func @main(%t: tensor<i1>, %x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c = tensor.extract %t[] : tensor<i1>
  %y = scf.if %c -> (tensor<64x64xf32>) {
    %0 = braid.exp %x {braid.name = "hot"} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    scf.yield %0 : tensor<64x64xf32>
  } else {
    %1 = braid.tanh %x {braid.name = "cold"} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    scf.yield %1 : tensor<64x64xf32>
  }
  func.return %y : tensor<64x64xf32>
}
