// RUN: %braid-opt %s -p select-fusion,apply-fusion,select-layouts --remarks 2>&1 >/dev/null | filecheck %s

// CHECK: [select-layouts] cost 9 seconds, lower bound 9, gap 0.00%, 2 reorders

// Declared: 7 s in l1. With select-fusion,apply-fusion in front, what is declared is lost.
module attributes {braid.reorder_costs = [{source = "a", target = "l1", cost = 1.0 : f64}, {source = "l1", target = "a", cost = 1.0 : f64}]} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %b = braid.opaque "B"(%x) {layouts = [{operands = ["l1"], results = ["l1"]}], cost = 7.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
    func.return %b : tensor<4xf32>
  }
}
