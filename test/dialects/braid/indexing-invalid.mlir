// RUN: %braid-opt %s --split-input-file --verify-diagnostics

func.func @index_type(%x: tensor<4xf32>, %i: tensor<2xf32>) {
  // expected-error @+1 {{the indices have element type f32, expected an integer type}}
  %0 = braid.gather %x, %i {dim = 0 : i64} : (tensor<4xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @dim(%x: tensor<4xf32>, %i: tensor<2xi64>) {
  // expected-error @+1 {{dim is 1, expected 0 to 0}}
  %0 = braid.gather %x, %i {dim = 1 : i64} : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  func.return
}

// -----

func.func @elements(%x: tensor<4x5xf32>, %i: tensor<5x6xi64>) {
  // expected-error @+1 {{the indices have shape [5, 6], expected at most [4, 5] outside dim 0}}
  %0 = braid.gather_elements %x, %i {dim = 0 : i64} : (tensor<4x5xf32>, tensor<5x6xi64>) -> tensor<5x6xf32>
  func.return
}

// -----

func.func @tuples(%x: tensor<4x5xf32>, %i: tensor<2x3xi64>) {
  // expected-error @+1 {{index tuples have 3 entries, expected 1 to 2}}
  %0 = braid.gather_nd %x, %i {batch_dims = 0 : i64} : (tensor<4x5xf32>, tensor<2x3xi64>) -> tensor<2xf32>
  func.return
}

// -----

func.func @batch(%x: tensor<4x5xf32>, %i: tensor<3x2x1xi64>) {
  // expected-error @+1 {{1 batch dims of shapes [4, 5] and [3, 2, 1] do not agree}}
  %0 = braid.gather_nd %x, %i {batch_dims = 1 : i64} : (tensor<4x5xf32>, tensor<3x2x1xi64>) -> tensor<3x2xf32>
  func.return
}

// -----

func.func @updates(%x: tensor<4xf32>, %i: tensor<2xi64>, %u: tensor<3xf32>) {
  // expected-error @+1 {{the updates have shape [3], expected [2]}}
  %0 = braid.scatter_elements %x, %i, %u {dim = 0 : i64, reduction = "none"} : (tensor<4xf32>, tensor<2xi64>, tensor<3xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @scatter_reduction(%x: tensor<4xf32>, %i: tensor<2x1xi64>, %u: tensor<2xf32>) {
  // expected-error @+1 {{reduction is 'max', expected one of}}
  %0 = braid.scatter_nd %x, %i, %u {reduction = "max"} : (tensor<4xf32>, tensor<2x1xi64>, tensor<2xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @resize(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{scales has 1 entries, expected 2}}
  %0 = braid.resize %x {mode = "linear", coordinates = "half_pixel", nearest_mode = "floor", scales = array<f64: 2.0>, region = array<f64>, cubic_a = -0.75 : f64, exclude_outside = false, antialias = false, extrapolation = 0.0 : f64} : (tensor<4x5xf32>) -> tensor<4x10xf32>
  func.return
}

// -----

func.func @part_entries(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{part has 4 entries, expected 8}}
  %0 = braid.resize %x {mode = "linear", coordinates = "half_pixel", nearest_mode = "floor", scales = array<f64: 1.0, 2.0>, region = array<f64>, cubic_a = -0.75 : f64, exclude_outside = false, antialias = false, extrapolation = 0.0 : f64, part = array<i64: 4, 0, 4, 0>} : (tensor<4x5xf32>) -> tensor<4x10xf32>
  func.return
}

// -----

func.func @part_outside(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{dim 1: part of 5 elements from 6, expected within 10}}
  %0 = braid.resize %x {mode = "linear", coordinates = "half_pixel", nearest_mode = "floor", scales = array<f64: 1.0, 2.0>, region = array<f64>, cubic_a = -0.75 : f64, exclude_outside = false, antialias = false, extrapolation = 0.0 : f64, part = array<i64: 4, 0, 4, 0, 10, 6, 20, 0>} : (tensor<4x5xf32>) -> tensor<4x10xf32>
  func.return
}

// -----

func.func @part_reads(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{dim 1: the part reads more of the input than the operand is}}
  %0 = braid.resize %x {mode = "linear", coordinates = "half_pixel", nearest_mode = "floor", scales = array<f64: 1.0, 2.0>, region = array<f64>, cubic_a = -0.75 : f64, exclude_outside = false, antialias = false, extrapolation = 0.0 : f64, part = array<i64: 4, 0, 4, 0, 10, 0, 20, 10>} : (tensor<4x5xf32>) -> tensor<4x10xf32>
  func.return
}
