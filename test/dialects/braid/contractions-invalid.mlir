// RUN: %braid-opt %s --split-input-file --verify-diagnostics

func.func @channels(%x: tensor<1x3x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error @+1 {{the input has 3 channels, expected 2 · 1 groups = 2}}
  %0 = braid.conv %x, %w {strides = array<i64: 1>, dilations = array<i64: 1>, pad_low = array<i64: 0>, pad_high = array<i64: 0>, groups = 1 : i64} : (tensor<1x3x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  func.return
}

// -----

func.func @groups(%x: tensor<1x4x8xf32>, %w: tensor<3x2x3xf32>) {
  // expected-error @+1 {{3 output channels do not divide by 2 groups}}
  %0 = braid.conv %x, %w {strides = array<i64: 1>, dilations = array<i64: 1>, pad_low = array<i64: 0>, pad_high = array<i64: 0>, groups = 2 : i64} : (tensor<1x4x8xf32>, tensor<3x2x3xf32>) -> tensor<1x3x6xf32>
  func.return
}

// -----

func.func @window(%x: tensor<1x2x2xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error @+1 {{spatial dim 0: window of 3 on 2 elements}}
  %0 = braid.conv %x, %w {strides = array<i64: 1>, dilations = array<i64: 1>, pad_low = array<i64: 0>, pad_high = array<i64: 0>, groups = 1 : i64} : (tensor<1x2x2xf32>, tensor<4x2x3xf32>) -> tensor<1x4x1xf32>
  func.return
}

// -----

func.func @lists(%x: tensor<1x2x8x8xf32>, %w: tensor<4x2x3x3xf32>) {
  // expected-error @+1 {{strides has 1 entries, expected 2}}
  %0 = braid.conv %x, %w {strides = array<i64: 1>, dilations = array<i64: 1>, pad_low = array<i64: 0>, pad_high = array<i64: 0>, groups = 1 : i64} : (tensor<1x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x6x6xf32>
  func.return
}

// -----

func.func @result(%x: tensor<1x2x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error @+1 {{result 0 has type tensor<1x4x8xf32>, expected tensor<1x4x6xf32>}}
  %0 = braid.conv %x, %w {strides = array<i64: 1>, dilations = array<i64: 1>, pad_low = array<i64: 0>, pad_high = array<i64: 0>, groups = 1 : i64} : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x8xf32>
  func.return
}

// -----

func.func @conv_transpose(%x: tensor<1x2x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error @+1 {{the input has 2 channels, expected 4}}
  %0 = braid.conv_transpose %x, %w {strides = array<i64: 1>, dilations = array<i64: 1>, pad_low = array<i64: 0>, pad_high = array<i64: 0>, output_padding = array<i64: 0>, groups = 1 : i64} : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x2x10xf32>
  func.return
}

// -----

func.func @matmul(%a: tensor<4x8xf32>, %b: tensor<7x16xf32>) {
  // expected-error @+1 {{the left operand has 8 columns, the right one 7 rows}}
  %0 = braid.matmul %a, %b : (tensor<4x8xf32>, tensor<7x16xf32>) -> tensor<4x16xf32>
  func.return
}

// -----

func.func @element_types(%x: tensor<1x1x4x4xf32>, %w: tensor<1x1x1x1xi32>) {
  // expected-error @+1 {{operands have element types f32 and i32; only integers with an 'accumulator' may differ}}
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xi32>) -> tensor<1x1x4x4xf32>
  func.return
}

// -----

func.func @zeros(%x: tensor<1x1x4x4xf32>, %w: tensor<1x1x1x1xf32>) {
  // expected-error @+1 {{zeros are (1, -1, 0, 0), expected no negative numbers}}
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, zeros_low = array<i64: 1, -1>, groups = 1 : i64} : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x4x4xf32>
  func.return
}

// -----

func.func @zeros_of_another_rank(%x: tensor<1x1x4x4xf32>, %w: tensor<1x1x1x1xf32>) {
  // expected-error @+1 {{zeros have 3 entries for 2 spatial dims, expected 4}}
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, zeros_high = array<i64: 1>, groups = 1 : i64} : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x4x4xf32>
  func.return
}

// -----

func.func @negative_padding(%x: tensor<1x1x4x4xf32>, %w: tensor<1x1x1x1xf32>) {
  // expected-error @+1 {{paddings are (-1, 0, 0, 0), expected no negative numbers}}
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: -1, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x3x4xf32>
  func.return
}

// -----

func.func @bools(%x: tensor<2x2xi1>) {
  // expected-error @+1 {{values of element type i1 cannot be added up; cast them}}
  %0 = braid.matmul %x, %x : (tensor<2x2xi1>, tensor<2x2xi1>) -> tensor<2x2xi1>
  func.return
}

// -----

func.func @sums_of_f32(%a: tensor<2x4xf32>, %b: tensor<4x2xf32>) -> tensor<2x2xf32> {
  // expected-error @+1 {{an operand has element type f32, expected f16 or bf16 for sums in f32}}
  %0 = braid.matmul %a, %b {accumulator = f32} : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
  func.return %0 : tensor<2x2xf32>
}

// -----

func.func @halves_of_two_kinds(%a: tensor<2x4xf16>, %b: tensor<4x2xbf16>) -> tensor<2x2xf32> {
  // expected-error @+1 {{operands have element types f16 and bf16}}
  %0 = braid.matmul %a, %b {accumulator = f32} : (tensor<2x4xf16>, tensor<4x2xbf16>) -> tensor<2x2xf32>
  func.return %0 : tensor<2x2xf32>
}

// -----

func.func @reduction(%a: tensor<2x4xbf16>) -> tensor<2x1xf32> {
  // expected-error @+1 {{accumulator f32, expected an integer type: sums of floats are cast before}}
  %0 = braid.reduce %a {kind = "add", dims = array<i64: 1>, accumulator = f32} : (tensor<2x4xbf16>) -> tensor<2x1xf32>
  func.return %0 : tensor<2x1xf32>
}
