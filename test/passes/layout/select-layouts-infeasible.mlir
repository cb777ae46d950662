// RUN: not %braid-opt %s -p select-layouts 2>&1 | filecheck %s

// CHECK: select-layouts-infeasible.mlir:5:1: error: no choice of layouts fits together
// CHECK: hint: declare more layouts or reorders
func.func @main() {
  %a = braid.opaque "A"() {layouts = [{operands = [], results = ["l0"]}], cost = 2.0e-3 : f64} : () -> tensor<4xf32>
  %b = braid.opaque "B"(%a) {layouts = [{operands = ["l1"], results = ["l1"]}], cost = 1.0e-3 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
