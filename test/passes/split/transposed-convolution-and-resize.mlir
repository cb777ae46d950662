// RUN: %braid-opt %s -p 'select-splits{memory=6KiB},apply-splits' | filecheck %s

// Output channels: dim 1 of the filters.
// CHECK-LABEL: func.func @transposed
// CHECK: braid.slice %w {offsets = array<i64: 0, 0, 0, 0>, sizes = array<i64: 8, 3, 2, 2>
// CHECK-COUNT-2: braid.conv_transpose {{.*}} -> tensor<1x3x16x16xf32>
// CHECK-NEXT: braid.concat {{.*}} {dim = 1 : i64}
func.func @transposed(%x: tensor<1x8x8x8xf32>, %w: tensor<8x6x2x2xf32>) -> tensor<1x6x16x16xf32> {
  %0 = braid.conv_transpose %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, output_padding = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x8x8x8xf32>, tensor<8x6x2x2xf32>) -> tensor<1x6x16x16xf32>
  func.return %0 : tensor<1x6x16x16xf32>
}

// Channels come first.
// CHECK-LABEL: func.func @resize
// CHECK-COUNT-2: braid.resize {{.*}} -> tensor<1x4x16x16xf32>
// CHECK-NEXT: braid.concat {{.*}} {dim = 1 : i64}
func.func @resize(%x: tensor<1x8x8x8xf32>) -> tensor<1x8x16x16xf32> {
  %0 = braid.resize %x {mode = "nearest", coordinates = "asymmetric", nearest_mode = "floor", scales = array<f64: 1.0, 1.0, 2.0, 2.0>, region = array<f64>, cubic_a = -0.75 : f64, exclude_outside = false, antialias = false, extrapolation = 0.0 : f64} : (tensor<1x8x8x8xf32>) -> tensor<1x8x16x16xf32>
  func.return %0 : tensor<1x8x16x16xf32>
}

// One channel: rows. Each half is a part of the whole resize, as its edge is only the whole one's.
// CHECK-LABEL: func.func @resize_rows
// CHECK-NEXT: braid.slice %x {offsets = array<i64: 0, 0, 0, 0>, sizes = array<i64: 1, 1, 11, 32>
// CHECK-NEXT: %[[A:.*]] = braid.resize {{.*}}part = array<i64: 1, 0, 1, 0, 1, 0, 1, 0, 20, 0, 40, 0, 32, 0, 32, 0>{{.*}} -> tensor<1x1x20x32xf32>
// CHECK-NEXT: braid.slice %x {offsets = array<i64: 0, 0, 9, 0>, sizes = array<i64: 1, 1, 11, 32>
// CHECK-NEXT: %[[B:.*]] = braid.resize {{.*}}part = array<i64: 1, 0, 1, 0, 1, 0, 1, 0, 20, 9, 40, 20, 32, 0, 32, 0>{{.*}} -> tensor<1x1x20x32xf32>
// CHECK-NEXT: braid.concat %[[A]], %[[B]] {dim = 2 : i64}
func.func @resize_rows(%x: tensor<1x1x20x32xf32>) -> tensor<1x1x40x32xf32> {
  %0 = braid.resize %x {mode = "linear", coordinates = "half_pixel", nearest_mode = "floor", scales = array<f64: 1.0, 1.0, 2.0, 1.0>, region = array<f64>, cubic_a = -0.75 : f64, exclude_outside = false, antialias = false, extrapolation = 0.0 : f64} : (tensor<1x1x20x32xf32>) -> tensor<1x1x40x32xf32>
  func.return %0 : tensor<1x1x40x32xf32>
}

// With aligned corners, an element depends on the extents of the whole.
// CHECK-LABEL: func.func @corners
// CHECK-COUNT-2: braid.resize {{.*}}part = {{.*}} -> tensor<1x1x16x48xf32>
func.func @corners(%x: tensor<1x1x16x48xf32>) -> tensor<1x1x32x48xf32> {
  %0 = braid.resize %x {mode = "linear", coordinates = "align_corners", nearest_mode = "floor", scales = array<f64: 1.0, 1.0, 2.0, 1.0>, region = array<f64>, cubic_a = -0.75 : f64, exclude_outside = false, antialias = false, extrapolation = 0.0 : f64} : (tensor<1x1x16x48xf32>) -> tensor<1x1x32x48xf32>
  func.return %0 : tensor<1x1x32x48xf32>
}

// Windows that overlap: both parts read the row whose windows reach into both, and cut its edge.
// CHECK-LABEL: func.func @overlap
// CHECK: braid.slice %x {offsets = array<i64: 0, 0, 0, 0>, sizes = array<i64: 1, 1, 13, 25>
func.func @overlap(%x: tensor<1x1x24x25xf32>, %w: tensor<1x1x4x1xf32>) -> tensor<1x1x50x25xf32> {
  %0 = braid.conv_transpose %x, %w {strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, output_padding = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x1x24x25xf32>, tensor<1x1x4x1xf32>) -> tensor<1x1x50x25xf32>
  func.return %0 : tensor<1x1x50x25xf32>
}
