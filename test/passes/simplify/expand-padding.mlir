// RUN: %braid-opt %s -p expand-padding | filecheck %s

// CHECK-LABEL: @padded
// CHECK:         %[[P:.*]] = braid.pad %x {low = array<i64: 0, 0, 1, 2>, high = array<i64: 0, 0, 1, 0>, value = 0.000000e+00 : f32, braid.name = "c/pad"}
// CHECK-SAME:      -> tensor<1x3x10x10xf32>
// CHECK-NEXT:    braid.conv %[[P]], %w
// CHECK-SAME:      pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>
// CHECK-SAME:      zeros_low = array<i64: 1, 2>, zeros_high = array<i64: 1, 0>
func.func @padded(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x8x8xf32> {
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 1, 2>, pad_high = array<i64: 1, 0>, groups = 1 : i64, braid.name = "c"} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x8x8xf32>
  func.return %0 : tensor<1x4x8x8xf32>
}

// CHECK-LABEL: @not_padded
// CHECK-NEXT:    braid.conv %x, %w
func.func @not_padded(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  func.return %0 : tensor<1x4x6x6xf32>
}

// Zeros that were there before count too, other numbers do not.
// CHECK-LABEL: @padded_before
// CHECK:         braid.conv {{.*}}zeros_low = array<i64: 3>, zeros_high = array<i64: 4>
// CHECK:         braid.conv {{.*}}zeros_low = array<i64: 1>, zeros_high = array<i64: 1>
// CHECK-NOT:     zeros
func.func @padded_before(%x: tensor<1x3x8xf32>, %w: tensor<4x3x3xf32>) -> (tensor<1x4x13xf32>, tensor<1x4x13xf32>, tensor<1x4x11xf32>) {
  %0 = braid.pad %x {low = array<i64: 0, 0, 2>, high = array<i64: 0, 0, 3>, value = 0.0 : f32} : (tensor<1x3x8xf32>) -> tensor<1x3x13xf32>
  %1 = braid.conv %0, %w {strides = array<i64: 1>, dilations = array<i64: 1>, pad_low = array<i64: 1>, pad_high = array<i64: 1>, groups = 1 : i64} : (tensor<1x3x13xf32>, tensor<4x3x3xf32>) -> tensor<1x4x13xf32>
  %2 = braid.pad %x {low = array<i64: 0, 0, 2>, high = array<i64: 0, 0, 3>, value = 1.0 : f32} : (tensor<1x3x8xf32>) -> tensor<1x3x13xf32>
  %3 = braid.conv %2, %w {strides = array<i64: 1>, dilations = array<i64: 1>, pad_low = array<i64: 1>, pad_high = array<i64: 1>, groups = 1 : i64} : (tensor<1x3x13xf32>, tensor<4x3x3xf32>) -> tensor<1x4x13xf32>
  %4 = braid.conv %2, %w {strides = array<i64: 1>, dilations = array<i64: 1>, pad_low = array<i64: 0>, pad_high = array<i64: 0>, groups = 1 : i64} : (tensor<1x3x13xf32>, tensor<4x3x3xf32>) -> tensor<1x4x11xf32>
  func.return %1, %3, %4 : tensor<1x4x13xf32>, tensor<1x4x13xf32>, tensor<1x4x11xf32>
}

// Padding around a maximum must not win.
// CHECK-LABEL: @pool
// CHECK:         %[[P:.*]] = braid.pad %x {{.*}}value = 0xff800000 : f32
// CHECK-NEXT:    braid.pool %[[P]]
// CHECK-SAME:      pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>
func.func @pool(%x: tensor<1x3x8x8xf32>) -> tensor<1x3x5x5xf32> {
  %0 = braid.pool %x {kind = "max", window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>} : (tensor<1x3x8x8xf32>) -> tensor<1x3x5x5xf32>
  func.return %0 : tensor<1x3x5x5xf32>
}
