// RUN: %braid-opt %s | %braid-opt | FileCheck %s
// RUN: %braid-opt %s --print-op-generic | %braid-opt | FileCheck %s
// RUN: %braid-opt %s --print-op-generic | FileCheck %s --check-prefix=GENERIC

// Dims of size 1 are repeated; all operands have one rank.
// CHECK-LABEL: @broadcasting
// CHECK:         braid.add %x, %b : (tensor<1x64x8x8xf32>, tensor<1x64x1x1xf32>) -> tensor<1x64x8x8xf32>
// GENERIC:       "braid.add"(%x, %b) : (tensor<1x64x8x8xf32>, tensor<1x64x1x1xf32>) -> tensor<1x64x8x8xf32>
func.func @broadcasting(%x: tensor<1x64x8x8xf32>, %b: tensor<1x64x1x1xf32>) -> tensor<1x64x8x8xf32> {
  %0 = braid.add %x, %b : (tensor<1x64x8x8xf32>, tensor<1x64x1x1xf32>) -> tensor<1x64x8x8xf32>
  func.return %0 : tensor<1x64x8x8xf32>
}

// CHECK-LABEL: @element_types
// CHECK:         braid.lt %x, %x : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xi1>
// CHECK:         braid.select %{{.*}}, %x, %x : (tensor<?x4xi1>, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
// CHECK:         braid.cast %{{.*}} : (tensor<?x4xf32>) -> tensor<?x4xi64>
func.func @element_types(%x: tensor<?x4xf32>) -> tensor<?x4xi64> {
  %0 = braid.lt %x, %x : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xi1>
  %1 = braid.select %0, %x, %x : (tensor<?x4xi1>, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = braid.cast %1 : (tensor<?x4xf32>) -> tensor<?x4xi64>
  func.return %2 : tensor<?x4xi64>
}

// Types of 8 bits and less are moved and bitcast.
// CHECK-LABEL: @narrow_types
// CHECK:         braid.bitcast %x : (tensor<4xui8>) -> tensor<4xf8E4M3FN>
// CHECK:         braid.bitcast %{{.*}} : (tensor<2x2xf8E4M3FN>) -> tensor<2x2xui4>
func.func @narrow_types(%x: tensor<4xui8>) -> tensor<2x2xui4> {
  %0 = braid.bitcast %x : (tensor<4xui8>) -> tensor<4xf8E4M3FN>
  %1 = braid.reshape %0 : (tensor<4xf8E4M3FN>) -> tensor<2x2xf8E4M3FN>
  %2 = braid.bitcast %1 : (tensor<2x2xf8E4M3FN>) -> tensor<2x2xui4>
  func.return %2 : tensor<2x2xui4>
}
