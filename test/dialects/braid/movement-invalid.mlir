// RUN: %braid-opt %s --split-input-file --verify-diagnostics

func.func @permutation(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{permutation is (0, 0), expected each of 0 to 1 once}}
  %0 = braid.transpose %x {permutation = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  func.return
}

// -----

func.func @broadcast(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{shape [2, 3] cannot be repeated to [4, 3]}}
  %0 = braid.broadcast %x : (tensor<2x3xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @reshape(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{6 elements cannot take shape [7]}}
  %0 = braid.reshape %x : (tensor<2x3xf32>) -> tensor<7xf32>
  func.return
}

// -----

func.func @slice(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{dim 1: elements 1 to 3 of 3}}
  %0 = braid.slice %x {offsets = array<i64: 0, 1>, sizes = array<i64: 2, 3>, strides = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @pad_value(%x: tensor<2xf32>) {
  // expected-error @+1 {{the value has type i64, expected f32}}
  %0 = braid.pad %x {low = array<i64: 1>, high = array<i64: 0>, value = 0 : i64} : (tensor<2xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @concat(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) {
  // expected-error @+1 {{differ outside dim 0}}
  %0 = braid.concat %x, %y {dim = 0 : i64} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @concat_of_ranks(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{operands have ranks [1, 2]; reshape them}}
  %0 = braid.concat %a, %b {dim = 1 : i64} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x6xf32>
  func.return
}

// -----

func.func @reshape_to_two_open_dims(%x: tensor<?x?xf32>) {
  // expected-error @+1 {{the result has 2 open dims, expected at most one}}
  %0 = braid.reshape %x : (tensor<?x?xf32>) -> tensor<?x?x1xf32>
  func.return
}
