// Clusters have separate paddings, which an FPGA supports in windows only; copies that the host
// makes stay on the host.
// RUN: %braid-opt %s -p 'select-clusters{target=fpga-sim}' | FileCheck %s
// RUN: %braid-opt %s -p 'select-clusters{target=fpga-sim},select-fusion,apply-fusion,select-layouts{target=fpga-sim},apply-layouts,apply-clusters{target=fpga-sim}' | FileCheck %s --check-prefix=APPLIED

// CHECK: %[[X:.*]] = braid.maximum %{{.*}}braid.device = "cpu:0", braid.cluster = 0
// CHECK-DAG: %[[A:.*]] = braid.pad %[[X]] {{.*}}braid.device = "fpga:0"
// CHECK-DAG: %[[B:.*]] = braid.pad %[[X]] {{.*}}braid.device = "cpu:0"
// CHECK-DAG: braid.conv %[[A]], {{.*}}braid.device = "fpga:0"
// CHECK-DAG: braid.conv %[[B]], {{.*}}braid.device = "cpu:0"
// APPLIED: braid.launch async
func.func @main(%x: tensor<1x2x5x5xui8>) -> (tensor<1x3x5x5xi32>, tensor<1x3x5x5xi32>) {
  %w = braid.parameter {key = "w"} : tensor<3x2x3x3xi8>
  %m = braid.maximum %x, %x {braid.device = "cpu:0"} : (tensor<1x2x5x5xui8>, tensor<1x2x5x5xui8>) -> tensor<1x2x5x5xui8>
  %p = braid.pad %m {low = array<i64: 0, 0, 1, 1>, high = array<i64: 0, 0, 1, 1>, value = 133 : ui8, braid.device = "fpga:0"} : (tensor<1x2x5x5xui8>) -> tensor<1x2x7x7xui8>
  %a = braid.conv %p, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64, accumulator = i32, braid.device = "fpga:0"} : (tensor<1x2x7x7xui8>, tensor<3x2x3x3xi8>) -> tensor<1x3x5x5xi32>
  %b = braid.conv %p, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64, accumulator = i32, braid.device = "cpu:0"} : (tensor<1x2x7x7xui8>, tensor<3x2x3x3xi8>) -> tensor<1x3x5x5xi32>
  func.return %a, %b : tensor<1x3x5x5xi32>, tensor<1x3x5x5xi32>
}
