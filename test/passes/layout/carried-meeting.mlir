// What a loop carries and nothing reads may be carried in a layout that all that becomes it can be
// stored in for nothing: l2 and l0 both become l1. In any other layout it costs 4 more.
// RUN: %braid-opt %s -p select-layouts,apply-layouts --remarks -o /dev/null 2>&1 | FileCheck %s

// CHECK: cost 9 seconds, lower bound 9, gap 0.00%, 2 reorders
module attributes {braid.reorder_costs = [
    {source = "l0", target = "l1", cost = 0.0 : f64},
    {source = "l2", target = "l0", cost = 5.0 : f64},
    {source = "l2", target = "l1", cost = 0.0 : f64}]} {
  func.func @main(%c: i1) {
    %a = braid.opaque "a"() {layouts = [{operands = [], results = ["l2"], cost = 8.0 : f64}]}
        : () -> tensor<4xf32>
    %r = scf.while (%x = %a) : (tensor<4xf32>) -> tensor<4xf32> {
      %b = braid.opaque "b"() {layouts = [
          {operands = [], results = ["l0"], cost = 1.0 : f64},
          {operands = [], results = ["l2"], cost = 5.0 : f64}]} : () -> tensor<4xf32>
      scf.condition(%c) %b : tensor<4xf32>
    } do {
    ^bb0(%y: tensor<4xf32>):
      scf.yield %y : tensor<4xf32>
    }
    func.return
  }
}
