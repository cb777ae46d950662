// RUN: %braid-opt %s -p select-layouts --remarks 2>&1 >/dev/null | filecheck %s

// CHECK: [select-layouts] cost 0.005 seconds, lower bound 0.005, gap 0.00%, 5 reorders

// Best: each user in its own layout, 5 reorders of 1 ms = 5 ms.
module attributes {braid.reorder_costs = [{source = "l0", target = "l1", cost = 1.0e-3 : f64}, {source = "l0", target = "l2", cost = 1.0e-3 : f64}, {source = "l0", target = "l3", cost = 1.0e-3 : f64}, {source = "l0", target = "l4", cost = 1.0e-3 : f64}, {source = "l0", target = "l5", cost = 1.0e-3 : f64}]} {
  func.func @main() {
    %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l0"]}], cost = 0.0 : f64} : () -> tensor<4xf32>
    %u1 = braid.opaque "U1"(%a) {layouts = [{operands = ["l1"], results = ["l1"], cost = 0.0 : f64}, {operands = ["l0"], results = ["l0"], cost = 100.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
    %u2 = braid.opaque "U2"(%a) {layouts = [{operands = ["l2"], results = ["l2"], cost = 0.0 : f64}, {operands = ["l0"], results = ["l0"], cost = 100.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
    %u3 = braid.opaque "U3"(%a) {layouts = [{operands = ["l3"], results = ["l3"], cost = 0.0 : f64}, {operands = ["l0"], results = ["l0"], cost = 100.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
    %u4 = braid.opaque "U4"(%a) {layouts = [{operands = ["l4"], results = ["l4"], cost = 0.0 : f64}, {operands = ["l0"], results = ["l0"], cost = 100.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
    %u5 = braid.opaque "U5"(%a) {layouts = [{operands = ["l5"], results = ["l5"], cost = 0.0 : f64}, {operands = ["l0"], results = ["l0"], cost = 100.0e-3 : f64}]} : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
}
