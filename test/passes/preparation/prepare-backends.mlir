// Each backend names the passes that its ops need; kernels of CPUs have no edge cases, and paddings
// of one tensor that became ops are one.
// RUN: %braid-opt %s -p prepare-backends | FileCheck %s
// RUN: %braid-opt %s -p 'expand-padding,simplify' > %t.cpu
// RUN: %braid-opt %s -p 'prepare-backends{target=host}' | diff - %t.cpu
// A chip also gets streams, and splits for them.
// RUN: %braid-opt %s -p 'prepare-backends{target=npu-small}' | FileCheck %s --check-prefix=CHIP

// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[P:.*]] = braid.pad %x
// CHECK-NEXT: braid.pool %[[P]] {{.*}}pad_low = array<i64: 0, 0>
// CHECK-NEXT: braid.pool %[[P]] {{.*}}pad_low = array<i64: 0, 0>
// CHECK-NOT: braid.pad
// CHIP-LABEL: func.func @main
// CHIP-SAME: braid.streams = [{text = "target npu-small
// CHIP: braid.pad %x
func.func @main(%x: tensor<1x4x8x8xf32>) -> (tensor<1x4x8x8xf32>, tensor<1x4x4x4xf32>) {
  %0 = braid.pool %x {kind = "add", window = array<i64: 3, 3>, strides = array<i64: 1, 1>, pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %2 = braid.pool %x {kind = "add", window = array<i64: 3, 3>, strides = array<i64: 2, 2>, pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
  func.return %0, %2 : tensor<1x4x8x8xf32>, tensor<1x4x4x4xf32>
}
