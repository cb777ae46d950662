// A tensor that another device reads in another layout is stored anew on the cheaper side.
// RUN: %braid-opt %s -p 'select-layouts{target=%S/Inputs/slow-starts.toml},apply-layouts' --verify-decisions | filecheck %s

// CHECK-LABEL: func.func @reader
// CHECK:         braid.opaque "a"
// CHECK-NEXT:    braid.fused({{.*}}) {braid.device = "npu:0", braid.cluster = 1 : i64}
// CHECK:           braid.reorder

// CHECK-LABEL: func.func @maker
// CHECK:         braid.opaque "a"
// CHECK-NEXT:    braid.fused({{.*}}) {braid.device = "npu:0", braid.cluster = 2 : i64}
// CHECK:           braid.reorder
func.func @reader(%x: tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32> {
  %0 = braid.opaque "a"(%x) {braid.cluster = 0 : i64, braid.device = "cpu:0", layouts = [{operands = ["abcd"], results = ["abcd"], cost = 1.0e-6 : f64}]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  %1 = braid.opaque "b"(%0) {braid.cluster = 1 : i64, braid.device = "npu:0", layouts = [{operands = ["acdb"], results = ["abcd"], cost = 1.0e-6 : f64}]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  func.return %1 : tensor<1x8x16x16xf32>
}
func.func @maker(%x: tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32> {
  %0 = braid.opaque "a"(%x) {braid.cluster = 2 : i64, braid.device = "npu:0", layouts = [{operands = ["abcd"], results = ["abcd"], cost = 1.0e-6 : f64}]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  %1 = braid.opaque "b"(%0) {braid.cluster = 3 : i64, braid.device = "cpu:0", layouts = [{operands = ["acdb"], results = ["abcd"], cost = 1.0e-6 : f64}]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  func.return %1 : tensor<1x8x16x16xf32>
}
