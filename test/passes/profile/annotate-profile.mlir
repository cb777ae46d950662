// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/branches.csv}' | filecheck %s --check-prefix=BRANCH
// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/branches.json}' | filecheck %s --check-prefix=BRANCH
// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/loop.csv}' | filecheck %s --check-prefix=LOOP
// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/loop.csv trip-count=total}' | filecheck %s --check-prefix=TOTAL
// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/braid.json}' 2>%t | filecheck %s --check-prefix=OWN
// RUN: filecheck %s --check-prefix=WARNING < %t
// RUN: not %braid-opt %s -p 'annotate-profile{file=%s}' 2>&1 | filecheck %s --check-prefix=MALFORMED

// MALFORMED: annotate-profile.mlir: error: not a profile
// MALFORMED: hint: expected a file of 'braid run --profile'

// BRANCH: module attributes {braid.profile}
// BRANCH: braid.opaque "C"{{.*}} braid.seconds = 2.000000e-06 : f64
// BRANCH: braid.branch_probability = 9.000000e-01 : f64
// BRANCH-NOT: braid.trip_count

// 36 / 4 + 1 and 9 / 1 + 1, or in total 37 / 4 and 10 / 1.
// LOOP: braid.trip_count = 1.000000e+01 : f64
// LOOP: braid.trip_count = 1.000000e+01 : f64
// TOTAL: braid.trip_count = 9.250000e+00 : f64
// TOTAL: braid.trip_count = 1.000000e+01 : f64

// The counters of braid count every iteration; kernels have the names of all their ops.
// OWN: braid.opaque "C"{{.*}} braid.seconds = 2.000000e-03 : f64
// OWN: braid.branch_probability = 0.642
// OWN: braid.trip_count = 1.000000e+01 : f64
// WARNING: warning: 'choice' has counts that contradict each other: 9 + 5 of 10
// WARNING: warning: 'once/enter' has no count of its iterations in the profile
func.func @main(%c: i1, %n: index, %x: tensor<4xf32>) {
  %y = scf.if %c -> (tensor<4xf32>) {
    %0 = braid.opaque "C"(%x) {braid.name = "C"} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  } else {
    %1 = braid.opaque "D"(%x) {braid.name = "D"} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } {braid.profile_keys = {condition = "c", then = "C", else = "D"}, braid.name = "choice"}
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
  } {braid.profile_keys = {enter = "loop/enter", next = "loop/next"}, braid.name = "loop"}
  scf.for %i = %zero to %n step %one {
  } {braid.profile_keys = {enter = "once/enter", next = "once/next"}}
  func.return
}
