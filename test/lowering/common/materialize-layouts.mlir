// RUN: %braid-opt -p materialize-layouts --split-input-file %s | FileCheck %s

// A permutation: the loops are put in the order in which the result is stored.
#nhwc = #braid.layout<"acdb">
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
func.func @permutation(%x: tensor<1x8x4x5xf32, #nhwc>) -> tensor<1x8x4x5xf32, #nhwc> {
  %e = tensor.empty() : tensor<1x8x4x5xf32, #nhwc>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<1x8x4x5xf32, #nhwc>) outs(%e : tensor<1x8x4x5xf32, #nhwc>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.negf %in : f32
    linalg.yield %1 : f32
  } -> tensor<1x8x4x5xf32, #nhwc>
  func.return %0 : tensor<1x8x4x5xf32, #nhwc>
}
// CHECK-LABEL: func.func @permutation
// CHECK-SAME: (%{{.*}}: tensor<1x4x5x8xf32>) -> tensor<1x4x5x8xf32>
// CHECK: affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
// CHECK-NOT: braid.layout

// -----

// A blocked dim becomes two loops, and its tail is written as zero. The row-major operand has no
// elements for the tail, so it is read at its last index there.
#blocked = #braid.layout<"aB16b">
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @tail(%x: tensor<2x20xf32>) -> tensor<2x20xf32, #blocked> {
  %e = tensor.empty() : tensor<2x20xf32, #blocked>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<2x20xf32>) outs(%e : tensor<2x20xf32, #blocked>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x20xf32, #blocked>
  func.return %0 : tensor<2x20xf32, #blocked>
}
// CHECK-LABEL: func.func @tail
// CHECK-SAME: -> tensor<2x2x16xf32>
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>]
// CHECK: affine_map<(d0, d1) -> (((d0 * 16) + d1))>
// CHECK: %[[LAST:.*]] = arith.constant 19 : index
// CHECK: arith.minui %{{.*}}, %[[LAST]] : index
// CHECK: %[[V:.*]] = tensor.extract
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult
// CHECK: %[[R:.*]] = arith.select %[[INSIDE]], %[[V]], %{{.*}} : f32
// CHECK: linalg.yield %[[R]]

// -----

// Whole blocks of an operand split the loops of a row-major result.
#blocked = #braid.layout<"aB16b">
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @unblock(%x: tensor<2x32xf32, #blocked>) -> tensor<2x32xf32> {
  %e = tensor.empty() : tensor<2x32xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<2x32xf32, #blocked>) outs(%e : tensor<2x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x32xf32>
  func.return %0 : tensor<2x32xf32>
}
// CHECK-LABEL: func.func @unblock
// CHECK: affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, ((d1 * 16) + d2))>

// -----

// Padding and slices are those of storage.
#nhwc = #braid.layout<"acdb">
func.func @pad(%x: tensor<1x8x4x5xf32, #nhwc>) -> tensor<1x8x6x5xf32, #nhwc> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.pad %x low[0, 0, 2, 0] high[0, 0, 0, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x8x4x5xf32, #nhwc> to tensor<1x8x6x5xf32, #nhwc>
  func.return %0 : tensor<1x8x6x5xf32, #nhwc>
}
// CHECK-LABEL: func.func @pad
// CHECK: tensor.pad %{{.*}} low[0, 2, 0, 0] high[0, 0, 0, 0]
// CHECK: tensor<1x4x5x8xf32> to tensor<1x6x5x8xf32>
