// RUN: %braid-opt %s | %braid-opt | FileCheck %s
// RUN: %braid-opt %s --print-op-generic | %braid-opt | FileCheck %s
// RUN: %braid-opt %s --print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK-LABEL: @gather
// CHECK:         braid.gather %x, %i {dim = 1 : i64} : (tensor<4x5xf32>, tensor<2x3xi64>) -> tensor<4x2x3xf32>
// CHECK:         braid.gather_elements %x, %i {dim = 0 : i64} : (tensor<4x5xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
// CHECK:         braid.gather_nd %x, %j {batch_dims = 0 : i64} : (tensor<4x5xf32>, tensor<3x2xi32>) -> tensor<3xf32>
// GENERIC:       "braid.gather"(%x, %i) {dim = 1 : i64}
func.func @gather(%x: tensor<4x5xf32>, %i: tensor<2x3xi64>, %j: tensor<3x2xi32>) -> tensor<3xf32> {
  %0 = braid.gather %x, %i {dim = 1 : i64} : (tensor<4x5xf32>, tensor<2x3xi64>) -> tensor<4x2x3xf32>
  %1 = braid.gather_elements %x, %i {dim = 0 : i64} : (tensor<4x5xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
  %2 = braid.gather_nd %x, %j {batch_dims = 0 : i64} : (tensor<4x5xf32>, tensor<3x2xi32>) -> tensor<3xf32>
  func.return %2 : tensor<3xf32>
}

// CHECK-LABEL: @scatter
// CHECK:         braid.scatter_elements %x, %i, %u {dim = 0 : i64, reduction = "add"} : (tensor<4x5xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<4x5xf32>
// CHECK:         braid.scatter_nd %x, %j, %v {reduction = "none"} : (tensor<4x5xf32>, tensor<3x2xi32>, tensor<3xf32>) -> tensor<4x5xf32>
// GENERIC:       "braid.scatter_elements"(%x, %i, %u) {dim = 0 : i64, reduction = "add"}
func.func @scatter(%x: tensor<4x5xf32>, %i: tensor<2x3xi64>, %u: tensor<2x3xf32>, %j: tensor<3x2xi32>, %v: tensor<3xf32>) -> tensor<4x5xf32> {
  %0 = braid.scatter_elements %x, %i, %u {dim = 0 : i64, reduction = "add"} : (tensor<4x5xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<4x5xf32>
  %1 = braid.scatter_nd %x, %j, %v {reduction = "none"} : (tensor<4x5xf32>, tensor<3x2xi32>, tensor<3xf32>) -> tensor<4x5xf32>
  func.return %1 : tensor<4x5xf32>
}

// CHECK-LABEL: @resize
// CHECK:         braid.resize %x {mode = "linear", coordinates = "half_pixel", nearest_mode = "floor", scales = array<f64: 1.000000e+00, 2.000000e+00>, region = array<f64>, cubic_a = -7.500000e-01 : f64, exclude_outside = false, antialias = false, extrapolation = 0.000000e+00 : f64} : (tensor<4x5xf32>) -> tensor<4x10xf32>
// GENERIC:       "braid.resize"(%x) {mode = "linear"
func.func @resize(%x: tensor<4x5xf32>) -> tensor<4x10xf32> {
  %0 = braid.resize %x {mode = "linear", coordinates = "half_pixel", nearest_mode = "floor", scales = array<f64: 1.0, 2.0>, region = array<f64>, cubic_a = -0.75 : f64, exclude_outside = false, antialias = false, extrapolation = 0.0 : f64} : (tensor<4x5xf32>) -> tensor<4x10xf32>
  func.return %0 : tensor<4x10xf32>
}
