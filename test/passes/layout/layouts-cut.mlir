// RUN: %braid-opt %s -p select-layouts --remarks 2>&1 >/dev/null | filecheck %s

// Not all sets of nine layouts are tried, and so nothing is proven.
// CHECK: cost 8 seconds, lower bound 0, gap 100.00%, 8 reorders, not all sets of the 9 layouts of a value were tried

module attributes {braid.reorder_costs = [{source = "l0", target = "l1", cost = 1.0 : f64}, {source = "l0", target = "l2", cost = 1.0 : f64}, {source = "l0", target = "l3", cost = 1.0 : f64}, {source = "l0", target = "l4", cost = 1.0 : f64}, {source = "l0", target = "l5", cost = 1.0 : f64}, {source = "l0", target = "l6", cost = 1.0 : f64}, {source = "l0", target = "l7", cost = 1.0 : f64}, {source = "l0", target = "l8", cost = 1.0 : f64}]} {
  func.func @main() {
    %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l0"]}], cost = 0.0 : f64} : () -> tensor<4xf32>
    %u1 = braid.opaque "U1"(%a) {layouts = [{operands = ["l1"], results = ["l1"]}], cost = 0.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
    %u2 = braid.opaque "U2"(%a) {layouts = [{operands = ["l2"], results = ["l2"]}], cost = 0.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
    %u3 = braid.opaque "U3"(%a) {layouts = [{operands = ["l3"], results = ["l3"]}], cost = 0.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
    %u4 = braid.opaque "U4"(%a) {layouts = [{operands = ["l4"], results = ["l4"]}], cost = 0.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
    %u5 = braid.opaque "U5"(%a) {layouts = [{operands = ["l5"], results = ["l5"]}], cost = 0.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
    %u6 = braid.opaque "U6"(%a) {layouts = [{operands = ["l6"], results = ["l6"]}], cost = 0.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
    %u7 = braid.opaque "U7"(%a) {layouts = [{operands = ["l7"], results = ["l7"]}], cost = 0.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
    %u8 = braid.opaque "U8"(%a) {layouts = [{operands = ["l8"], results = ["l8"]}], cost = 0.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
    func.return
  }
}
