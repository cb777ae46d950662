// RUN: %braid-opt %s -p 'select-splits{memory=1000}' --split-input-file --verify-diagnostics

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
