// RUN: %braid-opt %s -p transpose-known-operands | filecheck %s

// A value that another device gathers from a known table would have to be transposed at run time.
// CHECK-LABEL: @apart
// CHECK:         %[[G:.*]] = braid.gather_nd %table
// CHECK-NEXT:    braid.matmul %[[G]], %x
func.func @apart(%x: tensor<2x3x1xf32>, %ids: tensor<2x1xi64>) -> tensor<2x6x1xf32> {
  %table = braid.parameter {key = "w"} : tensor<4x6x3xf32>
  %0 = braid.gather_nd %table, %ids {batch_dims = 0 : i64, braid.cluster = 0 : i64, braid.device = "cpu:0"} : (tensor<4x6x3xf32>, tensor<2x1xi64>) -> tensor<2x6x3xf32>
  %1 = braid.matmul %0, %x {braid.cluster = 1 : i64, braid.device = "cpu:1"} : (tensor<2x6x3xf32>, tensor<2x3x1xf32>) -> tensor<2x6x1xf32>
  func.return %1 : tensor<2x6x1xf32>
}

// A known matrix has no device.
// CHECK-LABEL: @known
// CHECK:         braid.reshape %x
// CHECK-NEXT:    braid.transpose %w
func.func @known(%x: tensor<3x1xf32>) -> tensor<6x1xf32> {
  %w = braid.parameter {key = "w"} : tensor<6x3xf32>
  %0 = braid.matmul %w, %x {braid.cluster = 2 : i64, braid.device = "cpu:1"} : (tensor<6x3xf32>, tensor<3x1xf32>) -> tensor<6x1xf32>
  func.return %0 : tensor<6x1xf32>
}
