// RUN: %braid-opt %s | %braid-opt | FileCheck %s
// RUN: %braid-opt %s --print-op-generic | %braid-opt | FileCheck %s
// RUN: %braid-opt %s --print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK-LABEL: @conv
// CHECK:         braid.conv %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pad_low = array<i64: 3, 3>, pad_high = array<i64: 3, 3>, groups = 1 : i64}
// CHECK-SAME:      : (tensor<1x3x224x224xf32>, tensor<64x3x7x7xf32>) -> tensor<1x64x112x112xf32>
// GENERIC:       "braid.conv"(%x, %w) {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pad_low = array<i64: 3, 3>, pad_high = array<i64: 3, 3>, groups = 1 : i64}
func.func @conv(%x: tensor<1x3x224x224xf32>, %w: tensor<64x3x7x7xf32>) -> tensor<1x64x112x112xf32> {
  %0 = braid.conv %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pad_low = array<i64: 3, 3>, pad_high = array<i64: 3, 3>, groups = 1 : i64} : (tensor<1x3x224x224xf32>, tensor<64x3x7x7xf32>) -> tensor<1x64x112x112xf32>
  func.return %0 : tensor<1x64x112x112xf32>
}

// CHECK-LABEL: @conv_transpose
// CHECK:         braid.conv_transpose %x, %w {strides = array<i64: 2>, dilations = array<i64: 1>, pad_low = array<i64: 0>, pad_high = array<i64: 1>, output_padding = array<i64: 1>, groups = 2 : i64}
// CHECK-SAME:      : (tensor<1x4x5xf32>, tensor<4x3x3xf32>) -> tensor<1x6x11xf32>
// GENERIC:       "braid.conv_transpose"(%x, %w) {strides = array<i64: 2>
func.func @conv_transpose(%x: tensor<1x4x5xf32>, %w: tensor<4x3x3xf32>) -> tensor<1x6x11xf32> {
  %0 = braid.conv_transpose %x, %w {strides = array<i64: 2>, dilations = array<i64: 1>, pad_low = array<i64: 0>, pad_high = array<i64: 1>, output_padding = array<i64: 1>, groups = 2 : i64} : (tensor<1x4x5xf32>, tensor<4x3x3xf32>) -> tensor<1x6x11xf32>
  func.return %0 : tensor<1x6x11xf32>
}

// CHECK-LABEL: @matmul
// CHECK:         braid.matmul %a, %b : (tensor<?x8x4xf32>, tensor<1x4x16xf32>) -> tensor<?x8x16xf32>
// GENERIC:       "braid.matmul"(%a, %b) : (tensor<?x8x4xf32>, tensor<1x4x16xf32>) -> tensor<?x8x16xf32>
func.func @matmul(%a: tensor<?x8x4xf32>, %b: tensor<1x4x16xf32>) -> tensor<?x8x16xf32> {
  %0 = braid.matmul %a, %b : (tensor<?x8x4xf32>, tensor<1x4x16xf32>) -> tensor<?x8x16xf32>
  func.return %0 : tensor<?x8x16xf32>
}
