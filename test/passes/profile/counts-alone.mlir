// Profiles of counts alone say how often ops run and leave their times to estimates; counts that
// leave runs over are parts of the condition's.
// RUN: printf 'Input Op,Count\nS,100\nC,40\nD,40\nEnter,10\nNext,90\n' > %t.csv
// RUN: printf '{"ops": {"S": {"count": 100}, "C": {"count": 40}, "D": {"count": 40}, "Enter": {"count": 10}, "Next": {"count": 90}}}' > %t.json
// RUN: %braid-opt %s -p 'annotate-profile{file=%t.csv trip-count=total},select-layouts' --remarks 2>&1 | filecheck %s
// RUN: %braid-opt %s -p 'annotate-profile{file=%t.json trip-count=total},select-layouts' --remarks 2>&1 | filecheck %s
// RUN: %braid-opt %s -p 'annotate-profile{file=%t.json}' | filecheck %s --check-prefix=EACH

// 0.4 · 1 s + 0.4 · 2 s + 9.1 · 1 s.
// CHECK: warning: 'S' has counts that contradict each other: 40 + 40 of 100; 0.4 and 0.4 are taken as probabilities
// CHECK: cost 10.3 seconds, lower bound 10.3
// CHECK: braid.branch_probability = array<f64: 4.000000e-01, 4.000000e-01>
// CHECK: braid.trip_count = 9.100000e+00
// CHECK-NOT: braid.seconds
// EACH: braid.trip_count = 9.000000e+00
func.func @main(%c: i1, %n: index, %x: tensor<4xf32>) {
  scf.if %c {
    %0 = braid.opaque "C"(%x) {braid.name = "C", cost = 1.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  } else {
    %1 = braid.opaque "D"(%x) {braid.name = "D", cost = 2.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  } {braid.profile_keys = {condition = "S", then = "C", else = "D"}}
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    %2 = braid.opaque "L"(%x) {cost = 1.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  } {braid.profile_keys = {enter = "Enter", next = "Next"}}
  func.return
}
