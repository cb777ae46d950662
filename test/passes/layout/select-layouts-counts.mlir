// Numbers written by hand are checked before they weigh anything.
// RUN: not %braid-opt %s -p select-layouts --split-input-file 2>&1 | filecheck %s
// RUN: %braid-opt %s -p 'select-layouts{ignore-profile}' --split-input-file | filecheck %s --check-prefix=IGNORED

// IGNORED: func.func @branch
// CHECK: error: 'braid.branch_probability' of 'scf.if' is 1.500000e+00 : f64, expected a number from 0 to 1
func.func @branch(%c: i1, %x: tensor<4xf32>) {
  scf.if %c {
    %0 = braid.opaque "A"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  } else {
  } {braid.branch_probability = 1.5 : f64}
  func.return
}

// -----

// CHECK: error: 'braid.trip_count' of 'scf.for' is -1 : i64, expected a number from 0 on
func.func @loop(%n: index, %x: tensor<4xf32>) {
  %zero = arith.constant 0 : index
  scf.for %i = %zero to %n step %n {
    %0 = braid.opaque "A"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  } {braid.trip_count = -1 : i64}
  func.return
}
