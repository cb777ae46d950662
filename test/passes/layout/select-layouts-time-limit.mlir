// If no choice is found in time, the pass reports that, with a hint.
// RUN: not %braid-opt %s -p 'select-layouts{time-limit=0 memory-limit=96B}' 2>&1 | filecheck %s

// CHECK: error: no choice of layouts that fits into 96B of memory was found within 0 s, though there may be one
// CHECK: hint: give a larger time-limit or memory-limit
module attributes {braid.reorder_costs = [{source = "l0", target = "l1", cost = 1.0 : f64}, {source = "l1", target = "l0", cost = 1.0 : f64}]} {
func.func @main() {
  %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l0"]}, {operands = [], results = ["l1"]}], cost = 0.0 : f64} : () -> tensor<16xf32>
  %b = braid.opaque "B"(%a) {layouts = [{operands = ["l0"], results = ["l0"], cost = 3.0 : f64}, {operands = ["l1"], results = ["l1"], cost = 2.0 : f64}]} : (tensor<16xf32>) -> tensor<16xf32>
  %c = braid.opaque "C"(%a, %b) {layouts = [{operands = ["l0", "l1"], results = ["l1"], cost = 3.0 : f64}, {operands = ["l1", "l0"], results = ["l1"], cost = 2.0 : f64}]} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  func.return
}
}
