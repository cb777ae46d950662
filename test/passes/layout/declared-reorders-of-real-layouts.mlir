// RUN: %braid-opt %s -p select-layouts --remarks 2>&1 >/dev/null | filecheck %s

// CHECK: [select-layouts] cost 0.009 seconds, lower bound 0.009, gap 0.00%, 0 reorders

// As Fig. 1 with NCHW/NHWC for l1/l2: the declared reorders (2 s!) of physical layouts.
module attributes {braid.reorder_costs = [
    {source = "NCHW", target = "NHWC", cost = 2.0 : f64}, {source = "NHWC", target = "NCHW", cost = 2.0 : f64}]} {
  func.func @main(%x: tensor<1x64x8x8xf32>) -> tensor<1x64x8x8xf32> {
    %a = braid.opaque "A"(%x) {layouts = [{operands = ["NCHW"], results = ["NCHW"]}], cost = 2.0e-3 : f64} : (tensor<1x64x8x8xf32>) -> tensor<1x64x8x8xf32>
    %b = braid.opaque "B"(%a) {layouts = [{operands = ["NCHW"], results = ["NCHW"], cost = 5.0e-3 : f64}, {operands = ["NHWC"], results = ["NHWC"], cost = 1.0e-3 : f64}]} : (tensor<1x64x8x8xf32>) -> tensor<1x64x8x8xf32>
    %d = braid.opaque "D"(%b) {layouts = [{operands = ["NCHW"], results = ["NCHW"]}], cost = 2.0e-3 : f64} : (tensor<1x64x8x8xf32>) -> tensor<1x64x8x8xf32>
    func.return %d : tensor<1x64x8x8xf32>
  }
}
