// Constant bounds are the trip count, with a profile and without; one that contradicts is told.
// RUN: %braid-opt %s -p select-layouts --split-input-file --remarks 2>&1 | filecheck %s
// RUN: printf 'Operation Name,#Occurrences,Total time (us)\nbefore,2,1\ninside,14,1\n' > %t.csv
// RUN: %braid-opt %s -p 'annotate-profile{file=%t.csv},select-layouts' --split-input-file --remarks 2>&1 | filecheck %s --check-prefix=PROFILE

// Ten trips: GT in l2, 10 · 20 + 90 ms.
// CHECK: cost 0.29 seconds, lower bound 0.29, gap 0.00%
// One trip: l1, 60 + 30 ms, whatever the default of a profiled module.
// CHECK: cost 0.09 seconds, lower bound 0.09, gap 0.00%
// CHECK: static-trips.mlir:{{.*}}: warning: the profile has 4 iterations each time that the loop is entered, its bounds 0; the bounds are taken
// CHECK-NOT: the profile has

// PROFILE: warning: the profile has 7 iterations each time that the loop is entered, its bounds 4; the bounds are taken
// PROFILE: hint: was it taken with another version of the model?
// PROFILE-NOT: the profile has
func.func @main() {
  %zero = arith.constant 0 : index
  %ten = arith.constant 10 : index
  %one = arith.constant 1 : index
  %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l1"]}, {operands = [], results = ["l2"]}], cost = 0.0 : f64} : () -> tensor<4xf32>
  %r = scf.for %i = %zero to %ten step %one iter_args(%v = %a) -> (tensor<4xf32>) {
    %0 = braid.opaque "GT"(%v) {layouts = [{operands = ["l1"], results = ["l1"], cost = 60.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 20.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  }
  %b = braid.opaque "B"(%r) {layouts = [{operands = ["l1"], results = ["l1"], cost = 30.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 90.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

module attributes {braid.profile} {
func.func @main() {
  %zero = arith.constant 0 : index
  %ten = arith.constant 1 : index
  %one = arith.constant 1 : index
  %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l1"]}, {operands = [], results = ["l2"]}], cost = 0.0 : f64} : () -> tensor<4xf32>
  %r = scf.for %i = %zero to %ten step %one iter_args(%v = %a) -> (tensor<4xf32>) {
    %0 = braid.opaque "GT"(%v) {layouts = [{operands = ["l1"], results = ["l1"], cost = 60.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 20.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  }
  %b = braid.opaque "B"(%r) {layouts = [{operands = ["l1"], results = ["l1"], cost = 30.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 90.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
}

// -----

func.func @none(%x: tensor<4xf32>) {
  %two = arith.constant 2 : index
  scf.for %i = %two to %two step %two {
    %0 = braid.opaque "A"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  } {braid.trip_count = 4.0 : f64}
  func.return
}

// -----

// From 1 to 12 in steps of 3: 1, 4, 7, 10.
func.func @odd(%x: tensor<4xf32>) {
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %end = arith.constant 12 : index
  %0 = braid.opaque "A"(%x) {braid.name = "before"} : (tensor<4xf32>) -> tensor<4xf32>
  scf.for %i = %one to %end step %three {
    %1 = braid.opaque "A"(%0) {braid.name = "inside"} : (tensor<4xf32>) -> tensor<4xf32>
  }
  func.return
}
