// RUN: %braid-opt %s -p select-fusion --split-input-file | FileCheck %s
// RUN: %braid-opt %s -p select-fusion,apply-fusion,select-layouts --split-input-file --remarks 2>%t | FileCheck %s --check-prefix=LAYOUTS
// RUN: FileCheck %s --check-prefix=REMARK < %t

// No kernel of products adds their right operand to the result: the sum is a kernel of its own.
// CHECK-LABEL: @operand_again
// CHECK-NEXT:    braid.matmul {{.*}}braid.fusion_group = 1 : i64
// CHECK-NEXT:    braid.add {{.*}}braid.fusion_group = 0 : i64
// REMARK-NOT:  generic loops compute matmul, add
// LAYOUTS-LABEL: @operand_again
// LAYOUTS:       braid.fused
// LAYOUTS:       braid.fused
func.func @operand_again(%x: tensor<256x256xf32>, %w: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %0 = braid.matmul %x, %w : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %1 = braid.add %0, %w : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  func.return %1 : tensor<256x256xf32>
}

// -----

// Families take the matmul with the ops before the constant, and the ops after it.
// CHECK-LABEL: @constant
// CHECK:         braid.matmul {{.*}}braid.fusion_group = 1 : i64
// CHECK-NEXT:    braid.exp {{.*}}braid.fusion_group = 1 : i64
// CHECK-NEXT:    braid.add {{.*}}braid.fusion_group = 2 : i64
// CHECK-NEXT:    braid.tanh {{.*}}braid.fusion_group = 0 : i64
func.func @constant(%x: tensor<64x64xf32>, %w: tensor<64x4xf32>) -> tensor<64x4xf32> {
  %b = braid.constant {value = dense<[[1.0, 2.0, 3.0, 4.0]]> : tensor<1x4xf32>} : tensor<1x4xf32>
  %0 = braid.matmul %x, %w : (tensor<64x64xf32>, tensor<64x4xf32>) -> tensor<64x4xf32>
  %1 = braid.exp %0 : (tensor<64x4xf32>) -> tensor<64x4xf32>
  %2 = braid.add %1, %b : (tensor<64x4xf32>, tensor<1x4xf32>) -> tensor<64x4xf32>
  %3 = braid.tanh %2 : (tensor<64x4xf32>) -> tensor<64x4xf32>
  func.return %3 : tensor<64x4xf32>
}

// -----

// Groups that are left to generic loops are named if they take more than 1 % of the time.
// REMARK: [select-layouts] generic loops compute matmul, {{.*}} of the predicted time in 'square'
func.func @square(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = braid.matmul %x, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %0 : tensor<64x64xf32>
}
