// RUN: %braid-opt %s -p convert-tosa-to-braid --split-input-file --verify-diagnostics

func.func @no_counterpart(%x: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error @+1 {{'tosa.clz': there is nothing in braid to convert it to}}
  %y = tosa.clz %x : (tensor<4xi32>) -> tensor<4xi32>
  func.return %y : tensor<4xi32>
}

// -----

func.func @nan_mode(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'tosa.maximum': NaNs are ignored by its 'nan_mode', and braid propagates them}}
  %y = tosa.maximum %x, %x {nan_mode = IGNORE} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @not_a_constant(%x: tensor<4xf32>, %p: tensor<2xi32>, %v: tensor<1xf32>) -> tensor<6xf32> {
  // expected-error @+1 {{'tosa.pad': operand 1 is not a constant}}
  %y = tosa.pad %x, %p, %v : (tensor<4xf32>, tensor<2xi32>, tensor<1xf32>) -> tensor<6xf32>
  func.return %y : tensor<6xf32>
}

// -----

func.func @wrong_result(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{'tosa.transpose': the result has type tensor<2x3xf32>, expected tensor<3x2xf32>}}
  %y = tosa.transpose %x {perms = array<i32: 1, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}

// -----

func.func @shapes_that_differ(%x: tensor<2xf32>, %z: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{'tosa.add': dim 0 has extents [2, 3] in different operands}}
  %y = tosa.add %x, %z : (tensor<2xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}

// -----

func.func @missing_field(%x: tensor<2x3xf32>) -> tensor<2x1xf32> {
  // expected-error @+1 {{'tosa.reduce_sum': expected a number 'axis'}}
  %y = tosa.reduce_sum %x : (tensor<2x3xf32>) -> tensor<2x1xf32>
  func.return %y : tensor<2x1xf32>
}

// -----

func.func @missing_operand(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{'tosa.pad': expected an operand 1}}
  %y = tosa.pad %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}
