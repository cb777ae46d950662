// RUN: %braid-opt %s -p sink-reshapes --remarks 2>%t | filecheck %s
// RUN: filecheck %s --input-file=%t --check-prefix=REMARK

// REMARK: 4 elementwise ops are in the shape of a product

// A bias, an activation that reads the sum twice, and a residual of the reshaped shape.
// CHECK-LABEL: @epilogue
// CHECK-NEXT: %[[Y:.*]] = braid.matmul %x, %w
// CHECK-NEXT: %[[BIAS:.*]] = braid.reshape %b {{.*}} -> tensor<1x4xf32>
// CHECK-NEXT: %[[S:.*]] = braid.add %[[Y]], %[[BIAS]]
// CHECK-NEXT: %[[L:.*]] = braid.tanh %[[S]]
// CHECK-NEXT: %[[P:.*]] = braid.mul %[[S]], %[[L]]
// CHECK-NEXT: %[[RES:.*]] = braid.reshape %r {{.*}} -> tensor<6x4xf32>
// CHECK-NEXT: %[[Z:.*]] = braid.add %[[P]], %[[RES]]
// CHECK-NEXT: braid.reshape %[[Z]] {{.*}} -> tensor<2x3x4xf32>
func.func @epilogue(%x: tensor<6x8xf32>, %w: tensor<8x4xf32>, %b: tensor<1x1x4xf32>, %r: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %y = braid.matmul %x, %w : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  %v = braid.reshape %y : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %s = braid.add %v, %b : (tensor<2x3x4xf32>, tensor<1x1x4xf32>) -> tensor<2x3x4xf32>
  %l = braid.tanh %s : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %p = braid.mul %s, %l : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %z = braid.add %p, %r : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  func.return %z : tensor<2x3x4xf32>
}

// An operand that is repeated along one of two dims that the product joins has no shape there.
// CHECK-LABEL: @repeated_within
// CHECK: braid.matmul
// CHECK-NEXT: braid.reshape
// CHECK-NEXT: braid.add
// CHECK-NEXT: return
func.func @repeated_within(%x: tensor<6x8xf32>, %w: tensor<8x4xf32>, %b: tensor<1x3x4xf32>) -> tensor<2x3x4xf32> {
  %y = braid.matmul %x, %w : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  %v = braid.reshape %y : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %s = braid.add %v, %b : (tensor<2x3x4xf32>, tensor<1x3x4xf32>) -> tensor<2x3x4xf32>
  func.return %s : tensor<2x3x4xf32>
}

// Nothing is gained where no product is before the reshape.
// CHECK-LABEL: @no_product
// CHECK-NEXT: braid.reshape
// CHECK-NEXT: braid.add
func.func @no_product(%x: tensor<6x4xf32>, %b: tensor<1x1x4xf32>) -> tensor<2x3x4xf32> {
  %v = braid.reshape %x : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %s = braid.add %v, %b : (tensor<2x3x4xf32>, tensor<1x1x4xf32>) -> tensor<2x3x4xf32>
  func.return %s : tensor<2x3x4xf32>
}
