// An scf.while of TensorFlow's loop: GT runs once more than the body, which runs next / enter times.
// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/never.csv},select-layouts' --remarks 2>&1 | filecheck %s --check-prefix=EACH
// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/never.csv trip-count=total},select-layouts' --remarks 2>&1 | filecheck %s --check-prefix=TOTAL
// The next annotation replaces the earlier one of the first region.
// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/never.csv trip-count=total},annotate-profile{file=%S/Inputs/never.csv},select-layouts' --remarks 2>&1 | filecheck %s --check-prefix=EACH

// GT once, B once, in l1: 30 + 30 ms.
// EACH-DAG: cost 0.06 seconds, lower bound 0.06, gap 0.00%
// EACH-DAG: braid.trip_count = 0.000000e+00 : f64

// All of the loop (0 + 1) / 1 times: 30 + 30 + 30 ms.
// TOTAL-DAG: cost 0.09 seconds, lower bound 0.09, gap 0.00%
// TOTAL-DAG: braid.check_count = 1.000000e+00 : f64, braid.trip_count = 1.000000e+00 : f64
func.func @main(%c: i1) {
  %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l1"]}, {operands = [], results = ["l2"]}], cost = 0.0 : f64} : () -> tensor<4xf32>
  %r = scf.while (%v = %a) : (tensor<4xf32>) -> tensor<4xf32> {
    %g = braid.opaque "GT"(%v) {braid.name = "GT", layouts = [{operands = ["l1"], results = ["l1"], cost = 30.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 10.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
    scf.condition(%c) %v : tensor<4xf32>
  } do {
  ^bb0(%u: tensor<4xf32>):
    %1 = braid.opaque "Add"(%u) {braid.name = "Add", layouts = [{operands = ["l1"], results = ["l1"], cost = 30.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 10.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } attributes {braid.profile_keys = {enter = "Enter", next = "NextIteration"}}
  %b = braid.opaque "B"(%r) {layouts = [{operands = ["l1"], results = ["l1"], cost = 30.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 85.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
