// RUN: %braid-opt -p convert-braid-to-linalg --split-input-file %s | FileCheck %s

// An elementwise op is one parallel loop nest; repeated dims are read at 0.
func.func @repeated(%x: tensor<2x4xf32>, %b: tensor<1x4xf32>) -> tensor<2x4xf32> {
  %0 = braid.add %x, %b : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  func.return %0 : tensor<2x4xf32>
}
// CHECK-LABEL: func.func @repeated
// CHECK: %[[E:.*]] = tensor.empty() : tensor<2x4xf32>
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (0, d1)>, affine_map<(d0, d1) -> (d0, d1)>]
// CHECK-SAME: ["parallel", "parallel"]
// CHECK-SAME: outs(%[[E]] : tensor<2x4xf32>)
// CHECK: arith.addf

// -----

// A reduction starts from its neutral element; a sum may be computed in any order.
func.func @sum(%x: tensor<2x4xf32>) -> tensor<2x1xf32> {
  %0 = braid.reduce %x {kind = "add", dims = array<i64: 1>} : (tensor<2x4xf32>) -> tensor<2x1xf32>
  func.return %0 : tensor<2x1xf32>
}
// CHECK-LABEL: func.func @sum
// CHECK: linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<2x1xf32>)
// CHECK: ["parallel", "parallel", "reduction"]
// CHECK: arith.addf %{{.*}}, %{{.*}} fastmath<reassoc,contract> : f32

// -----

// 16-bit floats are computed with in 32 bits.
func.func @half(%x: tensor<4xf16>) -> tensor<4xf16> {
  %0 = braid.exp %x : (tensor<4xf16>) -> tensor<4xf16>
  func.return %0 : tensor<4xf16>
}
// CHECK-LABEL: func.func @half
// CHECK: %[[W:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: %[[V:.*]] = math.exp %[[W]] : f32
// CHECK: arith.truncf %[[V]] : f32 to f16

// -----

// Signedness moves from the type to the operation.
func.func @unsigned(%x: tensor<4xui8>, %y: tensor<4xui8>) -> tensor<4xui8> {
  %0 = braid.maximum %x, %y : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  func.return %0 : tensor<4xui8>
}
// CHECK-LABEL: func.func @unsigned
// CHECK-SAME: (%{{.*}}: tensor<4xi8>, %{{.*}}: tensor<4xi8>) -> tensor<4xi8>
// CHECK: arith.maxui

// -----

// Windows read a padded operand; the extents of the window come from a tensor of its shape.
func.func @pool(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32> {
  %0 = braid.pool %x {kind = "max", window = array<i64: 3, 3>, strides = array<i64: 2, 2>,
      dilations = array<i64: 1, 1>, pad_low = array<i64: 1, 1>, pad_high = array<i64: 0, 0>}
      : (tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32>
  func.return %0 : tensor<1x2x2x2xf32>
}
// CHECK-LABEL: func.func @pool
// CHECK: %[[P:.*]] = tensor.pad %{{.*}} low[0, 0, 1, 1] high[0, 0, 0, 0]
// CHECK: tensor.yield %{{.*}} : f32
// CHECK: %[[S:.*]] = tensor.empty() : tensor<3x3xi8>
// CHECK: affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, ((d2 * 2) + d4), ((d3 * 2) + d5))>
// CHECK-SAME: ins(%[[P]], %[[S]] : tensor<1x2x5x5xf32>, tensor<3x3xi8>)
// CHECK: arith.maximumf

// -----

// Layouts stay in the types.
#nhwc = #braid.layout<"acdb">
func.func @reorder(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32, #nhwc> {
  %0 = braid.reorder %x : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32, #nhwc>
  func.return %0 : tensor<1x2x4x4xf32, #nhwc>
}
// CHECK-LABEL: func.func @reorder
// CHECK: linalg.generic
// CHECK-SAME: outs(%{{.*}} : tensor<1x2x4x4xf32, #braid.layout<"acdb">>)

// -----

func.func @reshape(%x: tensor<2x3x4xf32>) -> tensor<6x2x2xf32> {
  %0 = braid.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x2x2xf32>
  func.return %0 : tensor<6x2x2xf32>
}
// CHECK-LABEL: func.func @reshape
// CHECK: %[[C:.*]] = tensor.collapse_shape %{{.*}} : tensor<2x3x4xf32> into tensor<6x4xf32>
// CHECK: tensor.expand_shape %[[C]] {{.*}} : tensor<6x4xf32> into tensor<6x2x2xf32>

// -----

func.func @concat(%x: tensor<1x3xf32>, %y: tensor<2x3xf32>) -> tensor<3x3xf32> {
  %0 = braid.concat %x, %y {dim = 0 : i64} : (tensor<1x3xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
  func.return %0 : tensor<3x3xf32>
}
// CHECK-LABEL: func.func @concat
// CHECK: %[[A:.*]] = tensor.insert_slice %{{.*}} into %{{.*}}[0, 0] [1, 3] [1, 1]
// CHECK: tensor.insert_slice %{{.*}} into %[[A]][1, 0] [2, 3] [1, 1]

// -----

// Reads at computed indices stay inside of the tensor.
func.func @gather(%x: tensor<5x4xf32>, %i: tensor<3xi64>) -> tensor<3x4xf32> {
  %0 = braid.gather %x, %i {dim = 0 : i64, batch_dims = 0 : i64}
      : (tensor<5x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  func.return %0 : tensor<3x4xf32>
}
// CHECK-LABEL: func.func @gather
// CHECK: linalg.generic
// CHECK: %[[LOW:.*]] = arith.maxsi
// CHECK: %[[IN:.*]] = arith.minsi %[[LOW]]
// CHECK: %[[POSITION:.*]] = arith.index_cast %[[IN]] : i64 to index
// CHECK: tensor.extract %{{.*}}[%[[POSITION]],

// -----

// A padding of what is in memory reads where there are elements.
func.func @pad(%x: tensor<2x3xf32>) -> tensor<2x5xf32> {
  %0 = braid.pad %x {low = array<i64: 0, 1>, high = array<i64: 0, 1>, value = 1.0 : f32}
      : (tensor<2x3xf32>) -> tensor<2x5xf32>
  func.return %0 : tensor<2x5xf32>
}
// CHECK-LABEL: func.func @pad
// CHECK: linalg.generic
// CHECK-SAME: outs(%{{.*}} : tensor<2x5xf32>)
// CHECK: %[[I:.*]] = arith.subi
// CHECK: arith.cmpi ult, %[[I]]
// CHECK: scf.if
// CHECK: tensor.extract
