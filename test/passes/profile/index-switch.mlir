// A switch of n cases is a branch of n + 1 probabilities, the last one of its default.
// RUN: %braid-opt %s -p select-layouts,apply-layouts --remarks 2>&1 | filecheck %s
// RUN: printf 'Operation Name,#Occurrences,Total time (us)\nX,1,1\nY,9,1\n' > %t.csv
// RUN: %braid-opt %s -p 'annotate-profile{file=%t.csv},select-layouts' --remarks 2>&1 | filecheck %s --check-prefix=PROFILE
// RUN: printf 'Operation Name,#Occurrences,Total time (us)\nX,0,0\nY,10,1\n' > %t.csv
// RUN: %braid-opt %s -p 'annotate-profile{file=%t.csv}' 2>&1 | filecheck %s --check-prefix=UNSEEN
// RUN: %braid-opt %s -p 'annotate-profile{file=%t.csv unseen=0.25}' 2>&1 | filecheck %s --check-prefix=QUARTER
// RUN: sed 's/switch %i ->/switch %i {braid.case_probabilities = array<f64: 0.9, 0.1>} ->/' %s > %t.mlir
// RUN: %braid-opt %t.mlir -p select-layouts --remarks 2>&1 | filecheck %s --check-prefix=GIVEN
// RUN: sed 's/switch %i ->/switch %i {braid.case_probabilities = array<f64: 0.9, 0.2>} ->/' %s > %t.mlir
// RUN: not %braid-opt %t.mlir -p select-layouts 2>&1 | filecheck %s --check-prefix=WRONG

// Both count once and yield one layout: 2 + 4 + 50 + 10 ms in l2, 73 ms in l1.
// CHECK: cost 0.066 seconds, lower bound 0.066, gap 0.00%
// CHECK: scf.index_switch{{.*}}tensor<4xf32, #braid.layout<"l2">>
// 2 + 4 + 0.1 · 50 + 0.9 · 10 ms.
// PROFILE: cost 0.02 seconds, lower bound 0.02, gap 0.00%
// PROFILE: braid.case_probabilities = array<f64: 1.000000e-01, 9.000000e-01>
// UNSEEN: braid.case_probabilities = array<f64: 1.000000e-03, 9.990000e-01>
// QUARTER: braid.case_probabilities = array<f64: 2.500000e-01, 7.500000e-01>
// 2 + 3 + 0.9 · 8 + 0.1 · 60 ms in l1.
// GIVEN: cost 0.0182 seconds, lower bound 0.0182, gap 0.00%
// WRONG: error: 'braid.case_probabilities' of 'scf.index_switch' is array<f64: 9.000000e-01, 2.000000e-01>, expected an array<f64> of 2 numbers with a sum of at most 1
module attributes {braid.reorder_costs = [
    {source = "l0", target = "l1", cost = 3.0e-3 : f64}, {source = "l0", target = "l2", cost = 4.0e-3 : f64}]} {
  func.func @main(%i: index) {
    %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l0"]}], cost = 2.0e-3 : f64} : () -> tensor<4xf32>
    %y = scf.index_switch %i -> tensor<4xf32>
    case 0 {
      %0 = braid.opaque "X"(%a) {braid.name = "X", layouts = [{operands = ["l1"], results = ["l1"], cost = 8.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 50.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %0 : tensor<4xf32>
    }
    default {
      %1 = braid.opaque "Y"(%a) {braid.name = "Y", layouts = [{operands = ["l1"], results = ["l1"], cost = 60.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 10.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %1 : tensor<4xf32>
    }
    func.return
  }
}
