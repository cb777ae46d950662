// RUN: %braid-opt %s -p select-layouts --remarks 2>&1 >/dev/null | filecheck %s

// CHECK: [select-layouts] cost 21 seconds, lower bound 21, gap 0.00%, 3 reorders

// init l0, the body yields l3 (10 trips), B wants l1. Reorders: l0->l2 1, l3->l2 1, l2->l1 10.
// Best carries l2 through the loop: 1 + 10*1 + 10 = 21. In l1: 11 + 10*11 = 121.
module attributes {braid.reorder_costs = [
    {source = "l0", target = "l2", cost = 1.0 : f64}, {source = "l3", target = "l2", cost = 1.0 : f64},
    {source = "l2", target = "l1", cost = 10.0 : f64}]} {
  func.func @main(%n: index) {
    %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l0"]}], cost = 0.0 : f64} : () -> tensor<4xf32>
    %r = scf.for %i = %n to %n step %n iter_args(%v = %a) -> (tensor<4xf32>) {
      %0 = braid.opaque "P"() {layouts = [{operands = [], results = ["l3"]}], cost = 0.0 : f64} : () -> tensor<4xf32>
      scf.yield %0 : tensor<4xf32>
    } {braid.trip_count = 10.0 : f64}
    %b = braid.opaque "B"(%r) {layouts = [{operands = ["l1"], results = ["l1"]}], cost = 0.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
}
