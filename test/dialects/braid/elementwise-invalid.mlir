// RUN: %braid-opt %s --split-input-file --verify-diagnostics

func.func @ranks(%x: tensor<2x3xf32>, %y: tensor<3xf32>) {
  // expected-error @+1 {{operands have ranks 2 and 1; reshape one of them}}
  %0 = braid.add %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @extents(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) {
  // expected-error @+1 {{dim 1 has extents [3, 4] in different operands}}
  %0 = braid.add %x, %y : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @element_types(%x: tensor<2xf32>, %y: tensor<2xi32>) {
  // expected-error @+1 {{operands have element types f32 and i32}}
  %0 = braid.add %x, %y : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @count(%x: tensor<2xf32>) {
  // expected-error @+1 {{expected 2 operands, got 1}}
  %0 = braid.add %x : (tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @result(%x: tensor<2xf32>) {
  // expected-error @+1 {{result 0 has type tensor<2xf32>, expected tensor<2xi1>}}
  %0 = braid.lt %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @condition(%x: tensor<2xf32>) {
  // expected-error @+1 {{the condition has element type f32, expected i1}}
  %0 = braid.select %x, %x, %x : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @sizes(%x: tensor<2xf32>) {
  // expected-error @+1 {{a bitcast of f32 to i64, expected types of the same size}}
  %0 = braid.bitcast %x : (tensor<2xf32>) -> tensor<2xi64>
  func.return
}

// -----

func.func @narrow(%x: tensor<2xf8E4M3FN>) {
  // expected-error @+1 {{'cast' on element type f8E4M3FN, which is stored but not computed with}}
  %0 = braid.cast %x : (tensor<2xf8E4M3FN>) -> tensor<2xf32>
  func.return
}

// -----

func.func @bits_of_floats(%x: tensor<2xf32>) {
  // expected-error @+1 {{'and' on element type f32, expected i1 or an integer type; cast it}}
  %0 = braid.and %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @sum_of_bools(%x: tensor<2xi1>) {
  // expected-error @+1 {{'add' on element type i1, expected an integer type or a float type; cast it}}
  %0 = braid.add %x, %x : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
  func.return
}

// -----

func.func @exponential_of_integers(%x: tensor<2xi32>) {
  // expected-error @+1 {{'exp' on element type i32, expected a float type; cast it}}
  %0 = braid.exp %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}
