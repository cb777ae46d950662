// RUN: %braid-opt %s -p expand-transposed-convolutions --split-input-file | FileCheck %s

// Windows that do not overlap: one product per input element, then a rearrangement.
// CHECK-LABEL: func.func @disjoint
// CHECK-SAME:    (%[[X:.*]]: tensor<1x4x3x3xf32>, %[[W:.*]]: tensor<4x5x2x2xf32>)
// CHECK-NOT:     braid.conv_transpose
// CHECK:         %[[C:.*]] = braid.conv %[[X]], %{{.*}} -> tensor<1x20x3x3xf32>
// CHECK:         braid.transpose
// CHECK:         %[[Y:.*]] = braid.reshape %{{.*}} {braid.name = "up"} : {{.*}} -> tensor<1x5x6x6xf32>
// CHECK:         func.return %[[Y]]
func.func @disjoint(%x: tensor<1x4x3x3xf32>, %w: tensor<4x5x2x2xf32>) -> tensor<1x5x6x6xf32> {
  %y = braid.conv_transpose %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, output_padding = array<i64: 0, 0>, groups = 1 : i64, braid.name = "up"} : (tensor<1x4x3x3xf32>, tensor<4x5x2x2xf32>) -> tensor<1x5x6x6xf32>
  func.return %y : tensor<1x5x6x6xf32>
}

// -----

// Windows that overlap: a convolution of the input with zeros in between.
// CHECK-LABEL: func.func @overlapping
// CHECK:         braid.pad
// CHECK:         braid.conv %{{.*}} -> tensor<1x5x7x7xf32>
// CHECK-NOT:     braid.conv_transpose
func.func @overlapping(%x: tensor<1x4x3x3xf32>, %w: tensor<4x5x3x3xf32>) -> tensor<1x5x7x7xf32> {
  %y = braid.conv_transpose %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, output_padding = array<i64: 0, 0>, groups = 1 : i64, finite_weight} : (tensor<1x4x3x3xf32>, tensor<4x5x3x3xf32>) -> tensor<1x5x7x7xf32>
  func.return %y : tensor<1x5x7x7xf32>
}

// -----

// Zeros in between would make NaN of infinite weights, of which nothing is known here: products are spread.
// CHECK-LABEL: func.func @unknown
// CHECK:         braid.conv %{{.*}} -> tensor<1x45x3x3xf32>
// CHECK:         braid.pad
// CHECK:         braid.add
// CHECK-NOT:     braid.conv_transpose
func.func @unknown(%x: tensor<1x4x3x3xf32>, %w: tensor<4x5x3x3xf32>) -> tensor<1x5x7x7xf32> {
  %y = braid.conv_transpose %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, output_padding = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x4x3x3xf32>, tensor<4x5x3x3xf32>) -> tensor<1x5x7x7xf32>
  func.return %y : tensor<1x5x7x7xf32>
}

// -----

// Other convolutions stay.
// CHECK-LABEL: func.func @other
// CHECK:         braid.conv %{{.*}}groups = 1
func.func @other(%x: tensor<1x4x3x3xf32>, %w: tensor<5x4x3x3xf32>) -> tensor<1x5x1x1xf32> {
  %y = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x4x3x3xf32>, tensor<5x4x3x3xf32>) -> tensor<1x5x1x1xf32>
  func.return %y : tensor<1x5x1x1xf32>
}
