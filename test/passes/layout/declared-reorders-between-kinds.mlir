// RUN: %braid-opt %s -p select-layouts --remarks 2>&1 >/dev/null | filecheck %s

// CHECK: [select-layouts] cost 0.005 seconds, lower bound 0.005, gap 0.00%, 2 reorders

// declared reorder from the physical layout NCHW to the abstract l1
module attributes {braid.reorder_costs = [
    {source = "NCHW", target = "l1", cost = 2.0e-3 : f64}, {source = "l1", target = "NCHW", cost = 2.0e-3 : f64}]} {
  func.func @main(%x: tensor<1x64x8x8xf32>) -> tensor<1x64x8x8xf32> {
    %b = braid.opaque "B"(%x) {layouts = [{operands = ["l1"], results = ["l1"], cost = 1.0e-3 : f64}]} : (tensor<1x64x8x8xf32>) -> tensor<1x64x8x8xf32>
    func.return %b : tensor<1x64x8x8xf32>
  }
}
