// RUN: %braid-opt %s -p annotate-weights | FileCheck %s

// All pairs fit; so they do where signs differ, or the rest of each block is small.
// CHECK-LABEL: @products
// CHECK:         braid.matmul %x, %{{.*}} {accumulator = i32, braid.pairable}
// CHECK:         braid.matmul %x, %{{.*}} {accumulator = i32, braid.pairable}
// CHECK:         braid.conv %y, %{{.*}} {{.*}}braid.pairable}
func.func @products(%x: tensor<2x16xui8>, %y: tensor<1x20x5x5xui8>) -> (tensor<2x4xi32>, tensor<2x1xi32>, tensor<1x3x3x3xi32>) {
  %w = braid.constant {value = dense<64> : tensor<16x4xi8>} : tensor<16x4xi8>
  %v = braid.constant {value = dense<[[127], [127], [-128], [-128], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0]]> : tensor<16x1xi8>} : tensor<16x1xi8>
  %f = braid.constant {value = dense<-64> : tensor<3x20x3x3xi8>} : tensor<3x20x3x3xi8>
  %0 = braid.matmul %x, %w {accumulator = i32} : (tensor<2x16xui8>, tensor<16x4xi8>) -> tensor<2x4xi32>
  %1 = braid.matmul %x, %v {accumulator = i32} : (tensor<2x16xui8>, tensor<16x1xi8>) -> tensor<2x1xi32>
  %2 = braid.conv %y, %f {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64, accumulator = i32} : (tensor<1x20x5x5xui8>, tensor<3x20x3x3xi8>) -> tensor<1x3x3x3xi32>
  func.return %0, %1, %2 : tensor<2x4xi32>, tensor<2x1xi32>, tensor<1x3x3x3xi32>
}

// Values computed from constants are known, too.
// CHECK-LABEL: @expression
// CHECK:         braid.matmul %x, %{{.*}} {accumulator = i32, braid.pairable}
func.func @expression(%x: tensor<2x16xui8>) -> tensor<2x4xi32> {
  %w = braid.constant {value = dense<64> : tensor<4x16xi8>} : tensor<4x16xi8>
  %t = braid.transpose %w {permutation = array<i64: 1, 0>} : (tensor<4x16xi8>) -> tensor<16x4xi8>
  %0 = braid.matmul %x, %t {accumulator = i32} : (tensor<2x16xui8>, tensor<16x4xi8>) -> tensor<2x4xi32>
  func.return %0 : tensor<2x4xi32>
}

// 255 times 65 + 65 is above 32767, in whichever order; 14 rows and padding are a block, 12 are less;
// arguments and parameters without a value are not known; two groups have none.
// CHECK-LABEL: @others
// CHECK:         braid.matmul %x, %{{.*}} {accumulator = i32} :
// CHECK:         braid.matmul %u, %{{.*}} {accumulator = i32, braid.pairable} :
// CHECK:         braid.matmul %z, %{{.*}} {accumulator = i32} :
// CHECK:         braid.matmul %x, %a {accumulator = i32} :
// CHECK:         braid.matmul %x, %{{.*}} {accumulator = i32} :
// CHECK:         braid.conv %y, %{{.*}}, accumulator = i32} :
// CHECK:         braid.matmul %i, %{{.*}} {accumulator = i32} :
func.func @others(%x: tensor<2x16xui8>, %u: tensor<2x14xui8>, %z: tensor<2x12xui8>, %a: tensor<16x4xi8>, %y: tensor<1x32x5x5xui8>, %i: tensor<2x16xi8>) -> (tensor<2x4xi32>, tensor<2x4xi32>, tensor<2x4xi32>, tensor<2x4xi32>, tensor<2x4xi32>, tensor<1x4x5x5xi32>, tensor<2x4xi32>) {
  %w = braid.constant {value = dense<65> : tensor<16x4xi8>} : tensor<16x4xi8>
  %v = braid.constant {value = dense<64> : tensor<14x4xi8>} : tensor<14x4xi8>
  %s = braid.constant {value = dense<64> : tensor<12x4xi8>} : tensor<12x4xi8>
  %m = braid.constant {value = dense<64> : tensor<16x4xi8>} : tensor<16x4xi8>
  %p = braid.parameter {key = "p"} : tensor<16x4xi8>
  %f = braid.constant {value = dense<1> : tensor<4x16x1x1xi8>} : tensor<4x16x1x1xi8>
  %0 = braid.matmul %x, %w {accumulator = i32} : (tensor<2x16xui8>, tensor<16x4xi8>) -> tensor<2x4xi32>
  %1 = braid.matmul %u, %v {accumulator = i32} : (tensor<2x14xui8>, tensor<14x4xi8>) -> tensor<2x4xi32>
  %2 = braid.matmul %z, %s {accumulator = i32} : (tensor<2x12xui8>, tensor<12x4xi8>) -> tensor<2x4xi32>
  %3 = braid.matmul %x, %a {accumulator = i32} : (tensor<2x16xui8>, tensor<16x4xi8>) -> tensor<2x4xi32>
  %4 = braid.matmul %x, %p {accumulator = i32} : (tensor<2x16xui8>, tensor<16x4xi8>) -> tensor<2x4xi32>
  %5 = braid.conv %y, %f {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 2 : i64, accumulator = i32} : (tensor<1x32x5x5xui8>, tensor<4x16x1x1xi8>) -> tensor<1x4x5x5xi32>
  %6 = braid.matmul %i, %m {accumulator = i32} : (tensor<2x16xi8>, tensor<16x4xi8>) -> tensor<2x4xi32>
  func.return %0, %1, %2, %3, %4, %5, %6 : tensor<2x4xi32>, tensor<2x4xi32>, tensor<2x4xi32>, tensor<2x4xi32>, tensor<2x4xi32>, tensor<1x4x5x5xi32>, tensor<2x4xi32>
}
