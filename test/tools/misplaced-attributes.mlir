// An attribute for execution counts is an error where it would be ignored, and so is a type of
// products where results would have another type.
// RUN: not %braid-opt %s --split-input-file -p canonicalize 2>&1 | filecheck %s

// CHECK: error: 'braid.trip_count' of 'scf.if' op means nothing there, it is for 'scf.for' and 'scf.while'
// CHECK: hint: 'scf.if' takes 'braid.branch_probability'
func.func @main(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = scf.if %c -> (tensor<4xf32>) {
    scf.yield %x : tensor<4xf32>
  } else {
    %1 = braid.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } {braid.trip_count = 3.0 : f64}
  func.return %y : tensor<4xf32>
}

// -----

// CHECK: error: 'braid.branch_probability' of 'scf.for' op means nothing there, it is for 'scf.if'
// CHECK: hint: 'scf.for' takes 'braid.trip_count'
func.func @main(%a: index, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = scf.for %i = %a to %a step %a iter_args(%v = %x) -> (tensor<4xf32>) {
    scf.yield %v : tensor<4xf32>
  } {braid.branch_probability = 0.5 : f64}
  func.return %y : tensor<4xf32>
}

// -----

// CHECK: error: 'braid.trip_count' of 'braid.tanh' op means nothing there
// CHECK: hint: move it there, or remove it
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = braid.tanh %x {braid.trip_count = 3.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// CHECK: error: 'braid.reorder_costs' of 'func.func' op means nothing there, it is for 'builtin.module'
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {braid.reorder_costs = []} {
  func.return %x : tensor<4xf32>
}

// -----

// CHECK: error: 'braid.profile_keys' of 'scf.if' op has a key 'next', which means nothing there
// CHECK: hint: expected condition, then, else
func.func @main(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = scf.if %c -> (tensor<4xf32>) {
    scf.yield %x : tensor<4xf32>
  } else {
    %1 = braid.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } {braid.profile_keys = {then = "a", next = "b"}}
  func.return %y : tensor<4xf32>
}

// -----

// CHECK: error: 'braid.product_type' of 'braid.matmul' op with a result of f64 means nothing there, it is for results of f32
// CHECK: hint: remove it
func.func @main(%x: tensor<4x8xf64>, %w: tensor<8x8xf64>) -> tensor<4x8xf64> {
  %0 = braid.matmul %x, %w {braid.product_type = bf16} : (tensor<4x8xf64>, tensor<8x8xf64>) -> tensor<4x8xf64>
  func.return %0 : tensor<4x8xf64>
}

// -----

// CHECK: error: 'braid.product_type' of 'braid.matmul' op with a result of i32 means nothing there
func.func @main(%x: tensor<4x8xi8>, %w: tensor<8x8xi8>) -> tensor<4x8xi32> {
  %0 = braid.matmul %x, %w {accumulator = i32, braid.product_type = bf16} : (tensor<4x8xi8>, tensor<8x8xi8>) -> tensor<4x8xi32>
  func.return %0 : tensor<4x8xi32>
}

// -----

// CHECK: error: 'braid.merged_groups' of 'braid.conv' op is 3, expected what divides 4 groups
// CHECK: hint: run select-convolution-groups, or remove it
func.func @main(%x: tensor<1x8x5x5xui8>, %w: tensor<8x2x3x3xi8>) -> tensor<1x8x3x3xi32> {
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 4 : i64, accumulator = i32, braid.merged_groups = 3 : i64} : (tensor<1x8x5x5xui8>, tensor<8x2x3x3xi8>) -> tensor<1x8x3x3xi32>
  func.return %0 : tensor<1x8x3x3xi32>
}

// -----

// CHECK: error: 'braid.merged_groups' of 'braid.conv' op with a result of f32 means nothing there, it is for integers
// CHECK: hint: remove it
func.func @main(%x: tensor<1x8x5x5xf32>, %w: tensor<8x2x3x3xf32>) -> tensor<1x8x3x3xf32> {
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 4 : i64, braid.merged_groups = 2 : i64} : (tensor<1x8x5x5xf32>, tensor<8x2x3x3xf32>) -> tensor<1x8x3x3xf32>
  func.return %0 : tensor<1x8x3x3xf32>
}
