// RUN: %braid-opt %s -p transpose-known-operands --remarks 2>%t | filecheck %s
// RUN: filecheck %s --input-file=%t --check-prefix=REMARK

// A known matrix times a vector, which is gathered from a known table.
// REMARK: 1 products have their matrix on the right, 1 tables turned
// CHECK-LABEL: @experts
// CHECK:         %[[T:.*]] = braid.transpose %table {permutation = array<i64: 0, 2, 1>{{.*}} -> tensor<4x3x6xf32>
// CHECK:         %[[G:.*]] = braid.gather_nd %[[T]], %ids
// CHECK-SAME:      -> tensor<2x3x6xf32>
// CHECK:         %[[Y:.*]] = braid.matmul %{{.*}}, %[[G]] {braid.name = "product"} : (tensor<2x1x3xf32>, tensor<2x3x6xf32>) -> tensor<2x1x6xf32>
// CHECK-NEXT:    %[[Z:.*]] = braid.reshape %[[Y]] {{.*}} -> tensor<2x6x1xf32>
// CHECK-NEXT:    return %[[Z]]
func.func @experts(%x: tensor<2x3x1xf32>, %ids: tensor<2x1xi64>) -> tensor<2x6x1xf32> {
  %table = braid.parameter {key = "w"} : tensor<4x6x3xf32>
  %0 = braid.gather_nd %table, %ids {batch_dims = 0 : i64} : (tensor<4x6x3xf32>, tensor<2x1xi64>) -> tensor<2x6x3xf32>
  %1 = braid.matmul %0, %x {braid.name = "product"} : (tensor<2x6x3xf32>, tensor<2x3x1xf32>) -> tensor<2x6x1xf32>
  func.return %1 : tensor<2x6x1xf32>
}

// CHECK-LABEL: @known
// CHECK:         %[[R:.*]] = braid.reshape %x {{.*}} -> tensor<1x3xf32>
// CHECK:         %[[T:.*]] = braid.transpose %w
// CHECK:         braid.matmul %[[R]], %[[T]]
func.func @known(%x: tensor<3x1xf32>) -> tensor<6x1xf32> {
  %w = braid.parameter {key = "w"} : tensor<6x3xf32>
  %0 = braid.matmul %w, %x : (tensor<6x3xf32>, tensor<3x1xf32>) -> tensor<6x1xf32>
  func.return %0 : tensor<6x1xf32>
}

// Transposed slabs of a known table, by a gather of one index of any rank.
// CHECK-LABEL: @slabs
// CHECK:         %[[T:.*]] = braid.transpose %table {permutation = array<i64: 0, 2, 1>
// CHECK-NEXT:    %[[G:.*]] = braid.gather %[[T]], %ids {{.*}} -> tensor<2x5x3x6xf32>
// CHECK-NEXT:    return %[[G]]
func.func @slabs(%ids: tensor<2x5xi64>) -> tensor<2x5x3x6xf32> {
  %table = braid.parameter {key = "w"} : tensor<4x6x3xf32>
  %0 = braid.gather %table, %ids {dim = 0 : i64} : (tensor<4x6x3xf32>, tensor<2x5xi64>) -> tensor<2x5x6x3xf32>
  %1 = braid.transpose %0 {permutation = array<i64: 0, 1, 3, 2>} : (tensor<2x5x6x3xf32>) -> tensor<2x5x3x6xf32>
  func.return %1 : tensor<2x5x3x6xf32>
}

// Unknown matrices and tables stay, and transposes of what is indexed, or read once more.
// CHECK-LABEL: @others
// CHECK-NOT:     braid.reshape
// CHECK:         braid.matmul %w, %x
// CHECK:         braid.gather %w, %ids
// CHECK-NEXT:    braid.transpose
// CHECK:         braid.gather %table, %ids
// CHECK-NEXT:    braid.transpose
func.func @others(%w: tensor<6x3xf32>, %x: tensor<3x1xf32>, %ids: tensor<2x5xi64>) -> (tensor<6x1xf32>, tensor<5x2x3xf32>, tensor<5x2x3xf32>) {
  %table = braid.parameter {key = "w"} : tensor<6x3xf32>
  %0 = braid.matmul %w, %x : (tensor<6x3xf32>, tensor<3x1xf32>) -> tensor<6x1xf32>
  %1 = braid.gather %w, %ids {dim = 0 : i64} : (tensor<6x3xf32>, tensor<2x5xi64>) -> tensor<2x5x3xf32>
  %2 = braid.transpose %1 {permutation = array<i64: 1, 0, 2>} : (tensor<2x5x3xf32>) -> tensor<5x2x3xf32>
  %3 = braid.gather %table, %ids {dim = 0 : i64} : (tensor<6x3xf32>, tensor<2x5xi64>) -> tensor<2x5x3xf32>
  %4 = braid.transpose %3 {permutation = array<i64: 1, 0, 2>} : (tensor<2x5x3xf32>) -> tensor<5x2x3xf32>
  func.return %0, %2, %4 : tensor<6x1xf32>, tensor<5x2x3xf32>, tensor<5x2x3xf32>
}
