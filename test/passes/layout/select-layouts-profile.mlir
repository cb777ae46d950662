// The published examples with counts from a profile instead of attributes.
// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/profile.csv},select-layouts' --split-input-file --remarks -o %t 2>&1 | filecheck %s
// RUN: %braid-opt %s -p 'annotate-profile{file=%S/Inputs/profile.csv},select-layouts{ignore-profile}' --split-input-file --remarks -o %t 2>&1 | filecheck %s --check-prefix=IGNORED
// RUN: not %braid-opt %s -p 'select-layouts{algorithm=best}' --split-input-file 2>&1 | filecheck %s --check-prefix=ALGORITHM

// ALGORITHM: error: unknown algorithm 'best'
// ALGORITHM: hint: expected 'exact', 'greedy' or 'fixed:<layout>'

// CHECK: cost 0.023 seconds, lower bound 0.023
// IGNORED: cost 0.055 seconds
module attributes {braid.reorder_costs = [
    {source = "l0", target = "l1", cost = 2.0e-3 : f64}, {source = "l0", target = "l2", cost = 2.0e-3 : f64}]} {
  func.func @branches(%c: i1) {
    %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l0"]}], cost = 2.0e-3 : f64} : () -> tensor<4xf32>
    %b = braid.opaque "B"(%a) {layouts = [{operands = ["l1"], results = ["l1"]}, {operands = ["l2"], results = ["l2"]}], cost = 1.0e-3 : f64} : (tensor<4xf32>) -> tensor<4xf32>
    %y = scf.if %c -> (tensor<4xf32>) {
      %0 = braid.opaque "C"(%b) {layouts = [{operands = ["l1"], results = ["l1"], cost = 10.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 20.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %0 : tensor<4xf32>
    } else {
      %1 = braid.opaque "D"(%b) {layouts = [{operands = ["l1"], results = ["l1"], cost = 90.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 30.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %1 : tensor<4xf32>
    } {braid.profile_keys = {condition = "c", then = "C", else = "D"}}
    func.return
  }
}

// -----

// CHECK: cost 0.29 seconds, lower bound 0.29
// IGNORED: cost 0.09 seconds
func.func @loop(%n: index) {
  %zero = arith.constant 0 : index
  %step = arith.constant 1 : index
  %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l1"]}, {operands = [], results = ["l2"]}], cost = 0.0 : f64} : () -> tensor<4xf32>
  %r = scf.for %i = %zero to %n step %step iter_args(%v = %a) -> (tensor<4xf32>) {
    %0 = braid.opaque "GT"(%v) {layouts = [{operands = ["l1"], results = ["l1"], cost = 30.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 10.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = braid.opaque "Add"(%v, %0) {layouts = [{operands = ["l1", "l1"], results = ["l1"], cost = 30.0e-3 : f64}, {operands = ["l2", "l2"], results = ["l2"], cost = 10.0e-3 : f64}]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } {braid.profile_keys = {enter = "loop/enter", next = "loop/next"}}
  %b = braid.opaque "B"(%r) {layouts = [{operands = ["l1"], results = ["l1"], cost = 30.0e-3 : f64}, {operands = ["l2"], results = ["l2"], cost = 90.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
