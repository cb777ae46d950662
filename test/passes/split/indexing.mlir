// RUN: %braid-opt %s -p 'select-splits{memory=1000},apply-splits' | filecheck %s

// Every tuple addresses a row: the dims of the rows are split, of data alone.
// CHECK-LABEL: func.func @gather_nd
// CHECK-NEXT:    braid.slice %x {offsets = array<i64: 0, 0, 0>, sizes = array<i64: 4, 4, [[N:[0-9]+]]>
// CHECK-NEXT:    braid.gather_nd %{{.*}}, %i {{.*}} -> tensor<3x[[N]]xf32>
// CHECK:         braid.concat {{.*}}dim = 1 : i64
func.func @gather_nd(%x: tensor<4x4x16xf32>, %i: tensor<3x2xi64>) -> tensor<3x16xf32> {
  %0 = braid.gather_nd %x, %i {batch_dims = 0 : i64} : (tensor<4x4x16xf32>, tensor<3x2xi64>) -> tensor<3x16xf32>
  func.return %0 : tensor<3x16xf32>
}

// Elements move along dim 1 alone: dim 0 is split, of all operands.
// CHECK-LABEL: func.func @scatter_elements
// CHECK-NEXT:    braid.slice %x {offsets = array<i64: 0, 0>, sizes = array<i64: [[N:[0-9]+]], 8>
// CHECK-NEXT:    braid.slice %i {offsets = array<i64: 0, 0>, sizes = array<i64: [[N]], 2>
// CHECK-NEXT:    braid.slice %u {offsets = array<i64: 0, 0>, sizes = array<i64: [[N]], 2>
// CHECK-NEXT:    braid.scatter_elements
func.func @scatter_elements(%x: tensor<16x8xf32>, %i: tensor<16x2xi64>, %u: tensor<16x2xf32>) -> tensor<16x8xf32> {
  %0 = braid.scatter_elements %x, %i, %u {dim = 1 : i64, reduction = "add"} : (tensor<16x8xf32>, tensor<16x2xi64>, tensor<16x2xf32>) -> tensor<16x8xf32>
  func.return %0 : tensor<16x8xf32>
}

// Rows are replaced: what they consist of is split, of data and of updates.
// CHECK-LABEL: func.func @scatter_nd
// CHECK-NEXT:    braid.slice %x {offsets = array<i64: 0, 0>, sizes = array<i64: 8, [[N:[0-9]+]]>
// CHECK-NEXT:    braid.slice %u {offsets = array<i64: 0, 0>, sizes = array<i64: 3, [[N]]>
// CHECK-NEXT:    braid.scatter_nd %{{.*}}, %i, %{{.*}} -> tensor<8x[[N]]xf32>
func.func @scatter_nd(%x: tensor<8x16xf32>, %i: tensor<3x1xi64>, %u: tensor<3x16xf32>) -> tensor<8x16xf32> {
  %0 = braid.scatter_nd %x, %i, %u {reduction = "none"} : (tensor<8x16xf32>, tensor<3x1xi64>, tensor<3x16xf32>) -> tensor<8x16xf32>
  func.return %0 : tensor<8x16xf32>
}

// Both results are joined.
// CHECK-LABEL: func.func @top_k
// CHECK:         %[[A:.*]], %[[I:.*]] = braid.top_k {{.*}} -> (tensor<8x4xf32>, tensor<8x4xi64>)
// CHECK:         %[[B:.*]], %[[J:.*]] = braid.top_k {{.*}} -> (tensor<8x4xf32>, tensor<8x4xi64>)
// CHECK-NEXT:    %[[V:.*]] = braid.concat %[[A]], %[[B]] {dim = 0 : i64}
// CHECK-NEXT:    %[[K:.*]] = braid.concat %[[I]], %[[J]] {dim = 0 : i64}
// CHECK-NEXT:    return %[[V]], %[[K]]
func.func @top_k(%x: tensor<16x16xf32>) -> (tensor<16x4xf32>, tensor<16x4xi64>) {
  %0, %1 = braid.top_k %x {k = 4 : i64, dim = 1 : i64, largest = true} : (tensor<16x16xf32>) -> (tensor<16x4xf32>, tensor<16x4xi64>)
  func.return %0, %1 : tensor<16x4xf32>, tensor<16x4xi64>
}
