// RUN: %braid-opt %s -p expand-transposed-convolutions --split-input-file | FileCheck %s

// Windows that do not overlap: one product per input element, then a rearrangement.
// CHECK-LABEL: func.func @disjoint
// CHECK-SAME:    (%[[X:.*]]: tensor<1x4x3x3xf32>, %[[W:.*]]: tensor<4x5x2x2xf32>)
// CHECK-NOT:     braid.conv_transpose
// CHECK:         %[[C:.*]] = braid.conv %[[X]], %{{.*}}braid.name = "up/conv"{{.*}} -> tensor<1x20x3x3xf32>
// CHECK:         braid.transpose
// CHECK:         %[[Y:.*]] = braid.reshape %{{.*}} {braid.name = "up"} : {{.*}} -> tensor<1x5x6x6xf32>
// CHECK:         func.return %[[Y]]
func.func @disjoint(%x: tensor<1x4x3x3xf32>, %w: tensor<4x5x2x2xf32>) -> tensor<1x5x6x6xf32> {
  %y = braid.conv_transpose %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, output_padding = array<i64: 0, 0>, groups = 1 : i64, braid.name = "up"} : (tensor<1x4x3x3xf32>, tensor<4x5x2x2xf32>) -> tensor<1x5x6x6xf32>
  func.return %y : tensor<1x5x6x6xf32>
}

// -----

// Windows of two strides: two elements of the input make two of the result each.
// CHECK-LABEL: func.func @overlapping
// CHECK-NOT:     braid.conv_transpose
// CHECK:         braid.conv %{{.*}}pad_low = array<i64: 1>, pad_high = array<i64: 1>{{.*}}: (tensor<1x4x9xf32>, tensor<12x4x2xf32>) -> tensor<1x12x10xf32>
// CHECK:         braid.transpose
// CHECK:         braid.slice %{{.*}} -> tensor<1x6x18xf32>
func.func @overlapping(%x: tensor<1x4x9xf32>, %w: tensor<4x6x4xf32>) -> tensor<1x6x18xf32> {
  %y = braid.conv_transpose %x, %w {strides = array<i64: 2>, dilations = array<i64: 1>, pad_low = array<i64: 1>, pad_high = array<i64: 1>, output_padding = array<i64: 0>, groups = 1 : i64, finite_weight} : (tensor<1x4x9xf32>, tensor<4x6x4xf32>) -> tensor<1x6x18xf32>
  func.return %y : tensor<1x6x18xf32>
}

// -----

// No whole strides: a convolution for every number of elements that a phase sees.
// CHECK-LABEL: func.func @uneven
// CHECK-NOT:     braid.conv_transpose
// CHECK-DAG:     braid.conv %{{.*}}: (tensor<1x4x3x3xf32>, tensor<5x4x2x2xf32>) -> tensor<1x5x4x4xf32>
// CHECK-DAG:     braid.conv %{{.*}}: (tensor<1x4x3x3xf32>, tensor<5x4x2x1xf32>) -> tensor<1x5x4x4xf32>
// CHECK-DAG:     braid.conv %{{.*}}: (tensor<1x4x3x3xf32>, tensor<5x4x1x2xf32>) -> tensor<1x5x4x4xf32>
// CHECK-DAG:     braid.conv %{{.*}}: (tensor<1x4x3x3xf32>, tensor<5x4x1x1xf32>) -> tensor<1x5x4x4xf32>
// CHECK-DAG:     braid.concat
// CHECK:         return
func.func @uneven(%x: tensor<1x4x3x3xf32>, %w: tensor<4x5x3x3xf32>) -> tensor<1x5x7x7xf32> {
  %y = braid.conv_transpose %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, output_padding = array<i64: 0, 0>, groups = 1 : i64, finite_weight} : (tensor<1x4x3x3xf32>, tensor<4x5x3x3xf32>) -> tensor<1x5x7x7xf32>
  func.return %y : tensor<1x5x7x7xf32>
}

// -----

// Dilated windows: a convolution of the input with zeros in between.
// CHECK-LABEL: func.func @dilated
// CHECK:         braid.pad
// CHECK:         braid.conv %{{.*}} -> tensor<1x5x9x9xf32>
// CHECK-NOT:     braid.conv_transpose
func.func @dilated(%x: tensor<1x4x3x3xf32>, %w: tensor<4x5x3x3xf32>) -> tensor<1x5x9x9xf32> {
  %y = braid.conv_transpose %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 2, 2>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, output_padding = array<i64: 0, 0>, groups = 1 : i64, finite_weight} : (tensor<1x4x3x3xf32>, tensor<4x5x3x3xf32>) -> tensor<1x5x9x9xf32>
  func.return %y : tensor<1x5x9x9xf32>
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
