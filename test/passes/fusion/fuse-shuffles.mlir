// RUN: %braid-opt %s -p select-fusion,apply-fusion,fuse-shuffles | filecheck %s
// RUN: %braid-opt %s -p select-fusion,apply-fusion,fuse-shuffles,outline-kernels | filecheck %s --check-prefix=OUTLINED

// CHECK-LABEL: @shuffle
// CHECK-NEXT:    %[[R:.*]] = braid.fused(%x) : (tensor<1x6x8x8xf32>) -> tensor<1x6x8x8xf32> {
// CHECK-NEXT:    ^{{.*}}(%[[A:.*]]: tensor<1x6x8x8xf32>):
// CHECK-NEXT:      %[[S:.*]] = braid.reshape %[[A]]
// CHECK-NEXT:      %[[T:.*]] = braid.transpose %[[S]]
// CHECK-NEXT:      %[[J:.*]] = braid.reshape %[[T]]
// CHECK-NEXT:      braid.yield %[[J]]
// CHECK:         return %[[R]]
// OUTLINED-LABEL: @shuffle
// OUTLINED-NOT:     braid.reshape
// OUTLINED:         return
func.func @shuffle(%x: tensor<1x6x8x8xf32>) -> tensor<1x6x8x8xf32> {
  %0 = braid.reshape %x : (tensor<1x6x8x8xf32>) -> tensor<1x2x3x8x8xf32>
  %1 = braid.transpose %0 {permutation = array<i64: 0, 2, 1, 3, 4>} : (tensor<1x2x3x8x8xf32>) -> tensor<1x3x2x8x8xf32>
  %2 = braid.reshape %1 : (tensor<1x3x2x8x8xf32>) -> tensor<1x6x8x8xf32>
  func.return %2 : tensor<1x6x8x8xf32>
}

// The transposed tensor is used once more, or the rank changes: reshapes stay views.
// CHECK-LABEL: @not_shuffles
// CHECK:         braid.reshape %x
// CHECK-NEXT:    braid.fused
// CHECK-NEXT:    ^
// CHECK-NEXT:      braid.transpose
// CHECK-NEXT:      braid.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    braid.reshape
// CHECK:         braid.reshape %y
// CHECK-NEXT:    braid.fused
// CHECK-NEXT:    ^
// CHECK-NEXT:      braid.transpose
// CHECK-NEXT:      braid.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    braid.reshape
func.func @not_shuffles(%x: tensor<6x8xf32>, %y: tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<3x2x8xf32>, tensor<48xf32>) {
  %0 = braid.reshape %x : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  %1 = braid.transpose %0 {permutation = array<i64: 1, 0, 2>} : (tensor<2x3x8xf32>) -> tensor<3x2x8xf32>
  %2 = braid.reshape %1 : (tensor<3x2x8xf32>) -> tensor<6x8xf32>
  %3 = braid.reshape %y : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  %4 = braid.transpose %3 {permutation = array<i64: 1, 0, 2>} : (tensor<2x3x8xf32>) -> tensor<3x2x8xf32>
  %5 = braid.reshape %4 : (tensor<3x2x8xf32>) -> tensor<48xf32>
  func.return %2, %1, %5 : tensor<6x8xf32>, tensor<3x2x8xf32>, tensor<48xf32>
}
