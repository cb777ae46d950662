// RUN: %braid-opt %s | %braid-opt | FileCheck %s
// RUN: %braid-opt %s --print-op-generic | %braid-opt | FileCheck %s

// CHECK-LABEL: @quantization
// CHECK:         braid.quantize %x, %s, %z : (tensor<2x4xf32>, tensor<1x4xf32>, tensor<1x1xui8>) -> tensor<2x4xui8>
// CHECK:         braid.dequantize %{{.*}}, %s, %z : (tensor<2x4xui8>, tensor<1x4xf32>, tensor<1x1xui8>) -> tensor<2x4xf32>
func.func @quantization(%x: tensor<2x4xf32>, %s: tensor<1x4xf32>, %z: tensor<1x1xui8>) -> tensor<2x4xf32> {
  %0 = braid.quantize %x, %s, %z : (tensor<2x4xf32>, tensor<1x4xf32>, tensor<1x1xui8>) -> tensor<2x4xui8>
  %1 = braid.dequantize %0, %s, %z : (tensor<2x4xui8>, tensor<1x4xf32>, tensor<1x1xui8>) -> tensor<2x4xf32>
  func.return %1 : tensor<2x4xf32>
}

// CHECK-LABEL: @product
// CHECK:         braid.matmul %a, %b {accumulator = i32} : (tensor<2x8xui8>, tensor<8x4xi8>) -> tensor<2x4xi32>
// CHECK:         braid.requantize %{{.*}}, %m, %s, %z {rounding = "half_even"}
// CHECK-SAME:      : (tensor<2x4xi32>, tensor<1x4xi32>, tensor<1x4xi32>, tensor<1x1xi8>) -> tensor<2x4xi8>
func.func @product(%a: tensor<2x8xui8>, %b: tensor<8x4xi8>, %m: tensor<1x4xi32>, %s: tensor<1x4xi32>, %z: tensor<1x1xi8>) -> tensor<2x4xi8> {
  %0 = braid.matmul %a, %b {accumulator = i32} : (tensor<2x8xui8>, tensor<8x4xi8>) -> tensor<2x4xi32>
  %1 = braid.requantize %0, %m, %s, %z {rounding = "half_even"} : (tensor<2x4xi32>, tensor<1x4xi32>, tensor<1x4xi32>, tensor<1x1xi8>) -> tensor<2x4xi8>
  func.return %1 : tensor<2x4xi8>
}

// CHECK-LABEL: @sums
// CHECK:         braid.reduce %x {kind = "add", dims = array<i64: 1>, accumulator = i32} : (tensor<2x8xui8>) -> tensor<2x1xi32>
func.func @sums(%x: tensor<2x8xui8>) -> tensor<2x1xi32> {
  %0 = braid.reduce %x {kind = "add", dims = array<i64: 1>, accumulator = i32} : (tensor<2x8xui8>) -> tensor<2x1xi32>
  func.return %0 : tensor<2x1xi32>
}
