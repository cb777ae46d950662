// RUN: %braid-opt %s -p sink-conversions,canonicalize --remarks 2>%t | filecheck %s
// RUN: filecheck %s --check-prefix=REMARK < %t
// RUN: %braid-opt %s -p sink-conversions,canonicalize --settings numerics=strict | filecheck %s --check-prefix=STRICT

// REMARK: [sink-conversions] 2 gathers and 0 products read unconverted weights
// REMARK: [sink-conversions] 0 gathers and 2 products read unconverted weights

// Rows are gathered in 8 bits, with the scale of each row; a scale of each column is reshaped.
// CHECK-LABEL: @tables
// CHECK:         %[[ROWS:.*]] = braid.gather %t, %ids {dim = 0 : i64, braid.name = "words/rows"} : (tensor<100x8xi8>
// CHECK:         %[[X:.*]] = braid.cast %[[ROWS]]
// CHECK:         %[[SCALES:.*]] = braid.gather %s, %ids {dim = 0 : i64, braid.name = "words/scale"} : (tensor<100x1xf32>
// CHECK:         braid.mul %[[X]], %[[SCALES]] {braid.name = "words"}
// CHECK:         braid.gather %h, %ids {dim = 0 : i64} : (tensor<100x8xf16>
// CHECK:         braid.reshape %c : (tensor<1x8xf32>) -> tensor<1x1x8xf32>
func.func @tables(%ids: tensor<?x?xi64, #braid.sizes<["b", "s"]>>) -> (tensor<?x?x8xf32, #braid.sizes<["b", "s"]>>, tensor<?x?x8xf32, #braid.sizes<["b", "s"]>>) {
  %t = braid.parameter {key = "t"} : tensor<100x8xi8>
  %s = braid.parameter {key = "s"} : tensor<100x1xf32>
  %f = braid.cast %t : (tensor<100x8xi8>) -> tensor<100x8xf32>
  %m = braid.mul %s, %f : (tensor<100x1xf32>, tensor<100x8xf32>) -> tensor<100x8xf32>
  %x = braid.gather %m, %ids {dim = 0 : i64, braid.name = "words"} : (tensor<100x8xf32>, tensor<?x?xi64, #braid.sizes<["b", "s"]>>) -> tensor<?x?x8xf32, #braid.sizes<["b", "s"]>>
  %h = braid.parameter {key = "h"} : tensor<100x8xf16>
  %c = braid.parameter {key = "c"} : tensor<1x8xf32>
  %g = braid.cast %h : (tensor<100x8xf16>) -> tensor<100x8xf32>
  %n = braid.mul %g, %c : (tensor<100x8xf32>, tensor<1x8xf32>) -> tensor<100x8xf32>
  %y = braid.gather %n, %ids {dim = 0 : i64} : (tensor<100x8xf32>, tensor<?x?xi64, #braid.sizes<["b", "s"]>>) -> tensor<?x?x8xf32, #braid.sizes<["b", "s"]>>
  func.return %x, %y : tensor<?x?x8xf32, #braid.sizes<["b", "s"]>>, tensor<?x?x8xf32, #braid.sizes<["b", "s"]>>
}

// The product is scaled, also by the scale of rows of what is transposed; not by one of each row.
// CHECK-LABEL: @products
// CHECK:         %[[W:.*]] = braid.cast %w {braid.name = "y/converted"} : (tensor<8x4xi8>) -> tensor<8x4xf32>
// CHECK:         %[[P:.*]] = braid.matmul %x, %[[W]]
// CHECK:         braid.mul %[[P]], %s {braid.name = "y"}
// CHECK:         %[[T:.*]] = braid.transpose %v {{.*}} : (tensor<4x8xi8>) -> tensor<8x4xi8>
// CHECK:         %[[S:.*]] = braid.transpose %r {{.*}} : (tensor<4x1xf32>) -> tensor<1x4xf32>
// CHECK:         %[[V:.*]] = braid.cast %[[T]]
// CHECK:         %[[Q:.*]] = braid.matmul %x, %[[V]]
// CHECK:         braid.mul %[[Q]], %[[S]]
// CHECK:         %[[R:.*]] = braid.mul %f, %d
// CHECK:         braid.matmul %x, %[[R]]
// STRICT-LABEL: @products
// STRICT:         %[[W:.*]] = braid.mul %f, %s
// STRICT:         braid.matmul %x, %[[W]] {braid.name = "y"}
func.func @products(%x: tensor<6x8xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>) {
  %w = braid.parameter {key = "w"} : tensor<8x4xi8>
  %s = braid.parameter {key = "columns"} : tensor<1x4xf32>
  %f = braid.cast %w : (tensor<8x4xi8>) -> tensor<8x4xf32>
  %m = braid.mul %f, %s : (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x4xf32>
  %y = braid.matmul %x, %m {braid.name = "y"} : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  %v = braid.parameter {key = "v"} : tensor<4x8xi8>
  %r = braid.parameter {key = "rows"} : tensor<4x1xf32>
  %zero = braid.constant {value = dense<0> : tensor<4x1xi8>} : tensor<4x1xi8>
  %q = braid.dequantize %v, %r, %zero : (tensor<4x8xi8>, tensor<4x1xf32>, tensor<4x1xi8>) -> tensor<4x8xf32>
  %t = braid.transpose %q {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %z = braid.matmul %x, %t : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  %d = braid.parameter {key = "depths"} : tensor<8x1xf32>
  %n = braid.mul %f, %d : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x4xf32>
  %u = braid.matmul %x, %n : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  func.return %y, %z, %u : tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>
}
