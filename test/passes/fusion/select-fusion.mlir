// RUN: %braid-opt %s -p select-fusion | filecheck %s
// RUN: %braid-opt %s -p select-fusion --remarks -o %t 2>&1 | filecheck %s --check-prefix=REMARK

// REMARK: select-fusion.mlir:{{.*}}: remark: [select-fusion] 3 ops in 1 groups

// An epilogue: the other operand of the addition is whatever is there already.
// CHECK-LABEL: @epilogue
// CHECK-NEXT:    braid.matmul {{.*}}braid.fusion_group = 0 : i64
// CHECK-NEXT:    braid.add {{.*}}braid.fusion_group = 0 : i64
// CHECK-NEXT:    braid.maximum {{.*}}braid.fusion_group = 0 : i64
func.func @epilogue(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %y: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = braid.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = braid.add %y, %0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = braid.maximum %1, %y : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %2 : tensor<2x4xf32>
}

// Two matmuls are two kernels; the sum joins the later one, when both operands exist.
// CHECK-LABEL: @two_anchors
// CHECK-NEXT:    braid.matmul {{.*}}braid.fusion_group = 1 : i64
// CHECK-NEXT:    braid.matmul {{.*}}braid.fusion_group = 0 : i64
// CHECK-NEXT:    braid.add {{.*}}braid.fusion_group = 0 : i64
func.func @two_anchors(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %v: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %0 = braid.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = braid.matmul %x, %v : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %2 = braid.add %0, %1 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %2 : tensor<2x4xf32>
}

// Ops on the other matmul stay with it.
// CHECK-LABEL: @two_epilogues
// CHECK-NEXT:    braid.matmul {{.*}}braid.fusion_group = 1 : i64
// CHECK-NEXT:    braid.matmul {{.*}}braid.fusion_group = 0 : i64
// CHECK-NEXT:    braid.neg {{.*}}braid.fusion_group = 1 : i64
// CHECK-NEXT:    braid.exp {{.*}}braid.fusion_group = 0 : i64
// CHECK-NEXT:    braid.add {{.*}}braid.fusion_group = 0 : i64
func.func @two_epilogues(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %v: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %0 = braid.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = braid.matmul %x, %v : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %2 = braid.neg %0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = braid.exp %1 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %4 = braid.add %2, %3 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %4 : tensor<2x4xf32>
}

// Values that are used elsewhere, too, that would be computed repeatedly, and operands of a matmul.
// CHECK-LABEL: @not_fused
// CHECK-NEXT:    braid.exp {{.*}}braid.fusion_group = 4 : i64
// CHECK-NEXT:    braid.neg {{.*}}braid.fusion_group = 3 : i64
// CHECK-NEXT:    braid.abs {{.*}}braid.fusion_group = 2 : i64
// CHECK-NEXT:    braid.add {{.*}}braid.fusion_group = 1 : i64
// CHECK-NEXT:    braid.matmul {{.*}}braid.fusion_group = 0 : i64
func.func @not_fused(%x: tensor<2x3xf32>, %r: tensor<1x3xf32>, %w: tensor<3x4xf32>) -> (tensor<2x4xf32>, tensor<2x3xf32>) {
  %0 = braid.exp %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = braid.neg %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = braid.abs %r : (tensor<1x3xf32>) -> tensor<1x3xf32>
  %3 = braid.add %0, %2 : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
  %4 = braid.matmul %3, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  func.return %4, %1 : tensor<2x4xf32>, tensor<2x3xf32>
}

// A value with several users is computed inside if all of them are.
// CHECK-LABEL: @diamond
// CHECK-NEXT:    braid.neg {{.*}}braid.fusion_group = 0 : i64
// CHECK-NEXT:    braid.exp {{.*}}braid.fusion_group = 0 : i64
// CHECK-NEXT:    braid.mul {{.*}}braid.fusion_group = 0 : i64
func.func @diamond(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = braid.neg %x : (tensor<2xf32>) -> tensor<2xf32>
  %1 = braid.exp %0 : (tensor<2xf32>) -> tensor<2xf32>
  %2 = braid.mul %0, %1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %2 : tensor<2xf32>
}

// An op that reads the result of an earlier matmul, which has another reader, joins the later one.
// CHECK-LABEL: @residual
// CHECK-NEXT:    braid.matmul {{.*}}braid.fusion_group = 1 : i64
// CHECK-NEXT:    braid.matmul {{.*}}braid.fusion_group = 0 : i64
// CHECK-NEXT:    braid.neg {{.*}}braid.fusion_group = 0 : i64
// CHECK-NEXT:    braid.add {{.*}}braid.fusion_group = 0 : i64
func.func @residual(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = braid.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = braid.matmul %0, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = braid.neg %0 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = braid.add %1, %2 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %3 : tensor<4x4xf32>
}

// What widens the result of an earlier product goes with the later one: bytes are stored, not i32.
// CHECK-LABEL: @widened
// CHECK:         %[[A:.*]] = braid.matmul %x, %w {accumulator = i32, braid.fusion_group = [[F:.*]] : i64}
// CHECK:         %[[R:.*]] = braid.requantize %[[A]], {{.*}}braid.fusion_group = [[F]] : i64}
// CHECK:         braid.cast %[[R]] {braid.fusion_group = [[S:.*]] : i64}
// CHECK:         braid.mul {{.*}} {braid.fusion_group = [[S]] : i64}
// CHECK:         braid.matmul %y, %w {accumulator = i32, braid.fusion_group = [[S]] : i64}
// CHECK:         braid.add {{.*}} {braid.fusion_group = [[S]] : i64}
func.func @widened(%x: tensor<4x4xui8>, %y: tensor<4x4xui8>, %w: tensor<4x4xi8>) -> tensor<4x4xi32> {
  %m = braid.constant {value = dense<1000> : tensor<1x1xi32>} : tensor<1x1xi32>
  %s = braid.constant {value = dense<20> : tensor<1x1xi32>} : tensor<1x1xi32>
  %z = braid.constant {value = dense<0> : tensor<1x1xui8>} : tensor<1x1xui8>
  %0 = braid.matmul %x, %w {accumulator = i32} : (tensor<4x4xui8>, tensor<4x4xi8>) -> tensor<4x4xi32>
  %1 = braid.requantize %0, %m, %s, %z {rounding = "half_even"} : (tensor<4x4xi32>, tensor<1x1xi32>, tensor<1x1xi32>, tensor<1x1xui8>) -> tensor<4x4xui8>
  %2 = braid.cast %1 : (tensor<4x4xui8>) -> tensor<4x4xi32>
  %3 = braid.mul %2, %m : (tensor<4x4xi32>, tensor<1x1xi32>) -> tensor<4x4xi32>
  %4 = braid.matmul %y, %w {accumulator = i32} : (tensor<4x4xui8>, tensor<4x4xi8>) -> tensor<4x4xi32>
  %5 = braid.add %3, %4 : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi32>
  func.return %5 : tensor<4x4xi32>
}
