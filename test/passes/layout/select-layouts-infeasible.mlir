// RUN: not %braid-opt %s -p select-layouts --split-input-file 2>&1 | FileCheck %s

// The op, the value and its layouts are named.
// CHECK: select-layouts-infeasible.mlir:9:8: error: no choice of layouts fits together: 'B' reads the result of 'A' in 'l1', it comes in 'l0', and no reorders lead from there
// CHECK: hint: declare more layouts or reorders
func.func @main() {
  %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l0"]}], cost = 2.0e-3 : f64} : () -> tensor<4xf32>
  // That is the reader.
  %b = braid.opaque "B"(%a) {layouts = [{operands = ["l1"], results = ["l1"]}], cost = 1.0e-3 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// What is left of the choices of a value between: A comes in l1 too, but C cannot read that of B.
// CHECK: error: no choice of layouts fits together: 'C' reads the result of 'named' in 'l2' or 'l3', it comes in 'l1', and no reorders lead from there
module attributes {braid.reorder_costs = [{source = "l0", target = "l2", cost = 1.0 : f64}]} {
  func.func @main() {
    %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l1"]}], cost = 1.0} : () -> tensor<4xf32>
    %b = braid.opaque "B"(%a) {braid.name = "named", layouts = [
        {operands = ["l0"], results = ["l0"]}, {operands = ["l1"], results = ["l1"]}], cost = 1.0}
        : (tensor<4xf32>) -> tensor<4xf32>
    braid.opaque "C"(%b) {layouts = [{operands = ["l2"], results = []}, {operands = ["l3"], results = []}], cost = 1.0}
        : (tensor<4xf32>) -> ()
    func.return
  }
}
