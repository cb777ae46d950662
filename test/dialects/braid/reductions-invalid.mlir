// RUN: %braid-opt %s --split-input-file --verify-diagnostics

func.func @kind(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{kind is 'mean', expected one of}}
  %0 = braid.reduce %x {kind = "mean", dims = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<1x3xf32>
  func.return
}

// -----

func.func @bitwise(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{kind 'and' on element type f32, expected an integer type}}
  %0 = braid.reduce %x {kind = "and", dims = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<1x3xf32>
  func.return
}

// -----

func.func @dims(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{dim is 2, expected 0 to 1}}
  %0 = braid.reduce %x {kind = "add", dims = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @twice(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{dims are (0, 0), expected each at most once}}
  %0 = braid.reduce %x {kind = "add", dims = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<1x3xf32>
  func.return
}

// -----

func.func @kept(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{result 0 has type tensor<3xf32>, expected tensor<1x3xf32>}}
  %0 = braid.reduce %x {kind = "add", dims = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @empty(%x: tensor<2x0xf32>) {
  // expected-error @+1 {{dim 1 has no elements}}
  %0 = braid.arg_reduce %x {kind = "max", dim = 1 : i64, select_last = false} : (tensor<2x0xf32>) -> tensor<2x1xi64>
  func.return
}

// -----

func.func @pool(%x: tensor<1x2x8xf32>) {
  // expected-error @+1 {{kind is 'average', expected one of ['max', 'add']}}
  %0 = braid.pool %x {kind = "average", window = array<i64: 2>, strides = array<i64: 1>, dilations = array<i64: 1>, pad_low = array<i64: 0>, pad_high = array<i64: 0>} : (tensor<1x2x8xf32>) -> tensor<1x2x7xf32>
  func.return
}

// -----

func.func @softmax(%x: tensor<2xi32>) {
  // expected-error @+1 {{element type is i32, expected a float type}}
  %0 = braid.softmax %x {dim = 0 : i64} : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

func.func @scale(%x: tensor<2x8xf32>, %s: tensor<1x4xf32>) {
  // expected-error @+1 {{the scale has shape [1, 4], expected that of the input, [2, 8], or 1s}}
  %0 = braid.layer_norm %x, %s, %s {first_dim = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<2x8xf32>
  func.return
}

// -----

func.func @open_dims(%x: tensor<2x?xf32>, %s: tensor<1x1xf32>) {
  // expected-error @+1 {{expected known positive ones}}
  %0 = braid.layer_norm %x, %s, %s {first_dim = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x?xf32>, tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<2x?xf32>
  func.return
}

// -----

func.func @top_k(%x: tensor<3xf32>) {
  // expected-error @+1 {{k is 4, expected 0 to 3, the extent of dim 0}}
  %0, %1 = braid.top_k %x {k = 4 : i64, dim = 0 : i64, largest = true} : (tensor<3xf32>) -> (tensor<4xf32>, tensor<4xi64>)
  func.return
}

// -----

func.func @sum_of_bools(%x: tensor<2x3xi1>) {
  // expected-error @+1 {{values of element type i1 cannot be added up; cast them}}
  %0 = braid.reduce %x {kind = "add", dims = array<i64: 1>} : (tensor<2x3xi1>) -> tensor<2x1xi1>
  func.return
}
