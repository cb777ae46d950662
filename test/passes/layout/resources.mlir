// RUN: not %braid-opt %s -p 'select-layouts{cost=energy}' 2>&1 | filecheck %s
// RUN: not %braid-opt %s -p 'select-layouts{cost=enrgy}' 2>&1 | filecheck %s --check-prefix=TYPO

// CHECK: error: the reorder from 'l0' to 'l1' declares no 'energy'
// CHECK: hint: give its cost as {energy = …}; a plain number is seconds
// TYPO: error: nothing declares a cost in 'enrgy'
// TYPO: hint: did you mean 'energy'? expected one of bytes, energy, flops, seconds

// The cost of the reorders is a plain number: seconds, never energy.
module attributes {braid.reorder_costs = [{source = "l0", target = "l1", cost = 2.0e-3 : f64}, {source = "l0", target = "l2", cost = 2.0e-3 : f64}]} {
  func.func @main() {
    %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l0"]}], cost = {seconds = 2.0e-3 : f64, energy = 1.0 : f64}} : () -> tensor<4xf32>
    %b = braid.opaque "B"(%a) {layouts = [{operands = ["l1"], results = ["l1"], cost = {seconds = 1.0e-3 : f64, energy = 5.0 : f64}}]} : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
}
