// RUN: %braid-opt %s -p 'select-splits{memory=1000}' --split-input-file --verify-diagnostics

// Windows of a transposed convolution that overlap add to what other parts make.
func.func @overlap(%x: tensor<1x1x12x12xf32>, %w: tensor<1x1x3x3xf32>) -> tensor<1x1x25x25xf32> {
  // expected-error@+1 {{'braid.conv_transpose' uses}}
  %0 = braid.conv_transpose %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, output_padding = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x1x12x12xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x25x25xf32>
  func.return %0 : tensor<1x1x25x25xf32>
}

// -----

// Where corners are aligned, the extents of the whole decide on every element.
func.func @corners(%x: tensor<1x1x16x16xf32>) -> tensor<1x1x32x32xf32> {
  // expected-error@+1 {{'braid.resize' uses}}
  %0 = braid.resize %x {mode = "linear", coordinates = "align_corners", nearest_mode = "floor", scales = array<f64: 1.0, 1.0, 2.0, 2.0>, region = array<f64>, cubic_a = -0.75 : f64, exclude_outside = false, antialias = false, extrapolation = 0.0 : f64} : (tensor<1x1x16x16xf32>) -> tensor<1x1x32x32xf32>
  func.return %0 : tensor<1x1x32x32xf32>
}

// -----

// One window covers the input.
func.func @pool(%x: tensor<1x1x16x16xf32>) -> tensor<1x1x1x1xf32> {
  // expected-error@+1 {{'braid.pool' uses}}
  %0 = braid.pool %x {kind = "max", window = array<i64: 16, 16>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>} : (tensor<1x1x16x16xf32>) -> tensor<1x1x1x1xf32>
  func.return %0 : tensor<1x1x1x1xf32>
}

// -----

// One row and one column are too much.
func.func @product(%a: tensor<4x200xf32>, %b: tensor<200x4xf32>) -> tensor<4x4xf32> {
  // expected-error@+1 {{'braid.matmul' uses}}
  %0 = braid.matmul %a, %b : (tensor<4x200xf32>, tensor<200x4xf32>) -> tensor<4x4xf32>
  func.return %0 : tensor<4x4xf32>
}

// -----

// Every group of a depthwise convolution is too much.
func.func @group(%x: tensor<1x2x16x16xf32>, %w: tensor<2x1x16x16xf32>) -> tensor<1x2x1x1xf32> {
  // expected-error@+1 {{'braid.conv' uses}}
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 2 : i64} : (tensor<1x2x16x16xf32>, tensor<2x1x16x16xf32>) -> tensor<1x2x1x1xf32>
  func.return %0 : tensor<1x2x1x1xf32>
}

// -----

// The scale and bias of a row are needed whole.
func.func @layer_norm(%x: tensor<2x100xf32>, %s: tensor<1x100xf32>, %b: tensor<1x100xf32>) -> tensor<2x100xf32> {
  // expected-error@+1 {{'braid.layer_norm' uses}}
  %0 = braid.layer_norm %x, %s, %b {first_dim = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x100xf32>, tensor<1x100xf32>, tensor<1x100xf32>) -> tensor<2x100xf32>
  func.return %0 : tensor<2x100xf32>
}
