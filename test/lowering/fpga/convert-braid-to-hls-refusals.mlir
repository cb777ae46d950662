// Ops that stages do not support are refused with their location, by whichever pass finds them.
// RUN: %braid-opt %s -p convert-braid-to-hls --split-input-file --verify-diagnostics
func.func @main(%x: tensor<1x2x4x4xi8>, %z: tensor<1x2x4x4xi8>) -> tensor<2x2x4x4xi8> {
  // expected-error @+1 {{'braid.concat' along dim 0 on an FPGA}}
  %y = braid.concat %x, %z {dim = 0 : i64} : (tensor<1x2x4x4xi8>, tensor<1x2x4x4xi8>) -> tensor<2x2x4x4xi8>
  func.return %y : tensor<2x2x4x4xi8>
}
// -----
func.func @main(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {
  // expected-error @+1 {{lanes of f32 on an FPGA}}
  %y = braid.tanh %x : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  func.return %y : tensor<1x2x4x4xf32>
}
// -----
func.func @main(%x: tensor<1x2x4x4xi32>, %z: tensor<1x2x4x4xi32>) -> tensor<1x2x4x4xi32> {
  %m = braid.maximum %x, %z : (tensor<1x2x4x4xi32>, tensor<1x2x4x4xi32>) -> tensor<1x2x4x4xi32>
  // expected-error @+1 {{a shift by a number that is not known, on an FPGA}}
  %y = braid.shift_right %m, %z : (tensor<1x2x4x4xi32>, tensor<1x2x4x4xi32>) -> tensor<1x2x4x4xi32>
  func.return %y : tensor<1x2x4x4xi32>
}
// -----
func.func @main(%x: tensor<1x2x4x4xi8>, %w: tensor<3x2x1x1xi8>) -> tensor<1x3x4x4xi32> {
  // expected-error @+1 {{'braid.conv' with weights that are not known on an FPGA}}
  %y = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64, accumulator = i32} : (tensor<1x2x4x4xi8>, tensor<3x2x1x1xi8>) -> tensor<1x3x4x4xi32>
  func.return %y : tensor<1x3x4x4xi32>
}
// -----
func.func @main(%x: tensor<2x2x4x4xi8>) -> tensor<2x2x4x4xi8> {
  // expected-error @+1 {{a tensor of 2 images on an FPGA}}
  %y = braid.maximum %x, %x : (tensor<2x2x4x4xi8>, tensor<2x2x4x4xi8>) -> tensor<2x2x4x4xi8>
  func.return %y : tensor<2x2x4x4xi8>
}
