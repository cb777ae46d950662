// RUN: %braid-opt %s --split-input-file --verify-diagnostics

func.func @scale(%x: tensor<4xf32>, %s: tensor<1xf64>, %z: tensor<1xi8>) {
  // expected-error @+1 {{the scale has element type f64, expected f32}}
  %0 = braid.quantize %x, %s, %z : (tensor<4xf32>, tensor<1xf64>, tensor<1xi8>) -> tensor<4xi8>
  func.return
}

// -----

func.func @wide(%x: tensor<4xf32>, %s: tensor<1xf32>, %z: tensor<1xi64>) {
  // expected-error @+1 {{the zero point has element type i64, expected i8, ui8, i16 or ui16}}
  %0 = braid.quantize %x, %s, %z : (tensor<4xf32>, tensor<1xf32>, tensor<1xi64>) -> tensor<4xi64>
  func.return
}

// -----

func.func @zero(%x: tensor<4xi8>, %s: tensor<1xf32>, %z: tensor<1xui8>) {
  // expected-error @+1 {{the zero point has element type ui8, expected i8}}
  %0 = braid.dequantize %x, %s, %z : (tensor<4xi8>, tensor<1xf32>, tensor<1xui8>) -> tensor<4xf32>
  func.return
}

// -----

func.func @rounding(%x: tensor<4xi32>, %m: tensor<1xi32>, %z: tensor<1xui8>) {
  // expected-error @+1 {{rounding is 'down', expected one of ['half_even', 'half_up']}}
  %0 = braid.requantize %x, %m, %m, %z {rounding = "down"} : (tensor<4xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xui8>) -> tensor<4xui8>
  func.return
}

// -----

func.func @accumulator(%a: tensor<2x8xi32>, %b: tensor<8x4xi8>) {
  // expected-error @+1 {{an operand has element type i32, expected narrower than i32}}
  %0 = braid.matmul %a, %b {accumulator = i32} : (tensor<2x8xi32>, tensor<8x4xi8>) -> tensor<2x4xi32>
  func.return
}

// -----

func.func @extreme(%x: tensor<2x8xui8>) {
  // expected-error @+1 {{kind 'maximum' with an accumulator, expected 'add'}}
  %0 = braid.reduce %x {kind = "maximum", dims = array<i64: 1>, accumulator = i32} : (tensor<2x8xui8>) -> tensor<2x1xi32>
  func.return
}
