// RUN: %braid-opt %s -p canonicalize | filecheck %s

// An op in another cluster replaces no op, and is merged with none.

// CHECK-LABEL: func.func @clusters
// CHECK-NEXT:    %[[A:.*]] = braid.transpose %x {{.*}}braid.name = "a"
// CHECK-NEXT:    %[[B:.*]] = braid.transpose %[[A]] {{.*}}braid.name = "b"
// CHECK-NEXT:    %[[C:.*]] = braid.reshape %[[B]] {{.*}}braid.name = "c"
// CHECK-NEXT:    func.return %[[C]]
func.func @clusters(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = braid.transpose %x {permutation = array<i64: 1, 0>, braid.name = "a", braid.cluster = 0 : i64, braid.device = "cpu:0"} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %b = braid.transpose %a {permutation = array<i64: 1, 0>, braid.name = "b", braid.cluster = 1 : i64, braid.device = "npu:0"} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %c = braid.reshape %b {braid.name = "c", braid.cluster = 2 : i64, braid.device = "cpu:0"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %c : tensor<2x3xf32>
}


// An op that replaces two ops of one cluster has the names of both.

// CHECK-LABEL: func.func @names_of_both
// CHECK-NEXT:    braid.transpose %x {{.*}}braid.cluster = 7 : i64, braid.device = "cpu:0", braid.name = ["b", "a"]}
func.func @names_of_both(%x: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %a = braid.transpose %x {permutation = array<i64: 1, 2, 0>, braid.name = "a", braid.cluster = 7 : i64, braid.device = "cpu:0"} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %b = braid.transpose %a {permutation = array<i64: 1, 2, 0>, braid.name = "b", braid.cluster = 7 : i64, braid.device = "cpu:0"} : (tensor<3x4x2xf32>) -> tensor<4x2x3xf32>
  return %b : tensor<4x2x3xf32>
}
