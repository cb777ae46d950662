// A convolution with the ops after it is one stage, and so is the pooling, joined by channels.
// RUN: %braid-opt %s -p 'convert-braid-to-hls' -o %t.mlir
// RUN: FileCheck %s --input-file %t.mlir
// RUN: %braid-opt %t.mlir -p select-channel-depths --remarks 2>&1 | FileCheck %s --check-prefix=DEPTHS
// RUN: not %braid-opt %s -p 'convert-braid-to-hls{function=other}' 2>&1 | FileCheck %s --check-prefix=OTHER

// OTHER: error: there is no function 'other'

// Two rows and two pixels are read before the first output.
// CHECK: braid_hls.design "main"
// CHECK: braid_hls.channel %{{.*}} {depth = 2 : i64} : (!braid_hls.stream<1 x ui8>)
// CHECK: braid_hls.stage
// CHECK-SAME: image = array<i64: 6, 6>, window = array<i64: 3, 3>
// CHECK-SAME: outputs = array<i64: 6, 6>, folds = array<i64: 1, 1>
// CHECK-SAME: label = "conv", pad_value = 7 : i64
// CHECK: braid_hls.table {{.*}} by = "none"
// CHECK: kind = "mul"
// CHECK: braid_hls.combine
// CHECK: kind = "shift_right"
// CHECK: braid_hls.yield
// CHECK: braid_hls.stage
// CHECK-SAME: label = "pool", pad_value = -128 : i64
// CHECK: braid_hls.output

// DEPTHS: remark: [select-channel-depths] 2 images in {{[0-9]+}} cycles, as with unbounded channels; {{[0-9]+}} bits in 3 channels, none can be lowered
// DEPTHS: braid_hls.channel
func.func @main(%x: tensor<1x1x6x6xui8>) -> tensor<1x1x3x3xi8> {
  %w = braid.constant {value = dense<[[[[1, -2, 3], [-4, 5, -6], [7, -8, 9]]]]> : tensor<1x1x3x3xi8>} : tensor<1x1x3x3xi8>
  %p = braid.pad %x {low = array<i64: 0, 0, 1, 1>, high = array<i64: 0, 0, 1, 1>, value = 7 : ui8} : (tensor<1x1x6x6xui8>) -> tensor<1x1x8x8xui8>
  %c = braid.conv %p, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64, accumulator = i32} : (tensor<1x1x8x8xui8>, tensor<1x1x3x3xi8>) -> tensor<1x1x6x6xi32>
  %m = braid.constant {value = dense<77> : tensor<1x1x1x1xi32>} : tensor<1x1x1x1xi32>
  %s = braid.constant {value = dense<12> : tensor<1x1x1x1xi32>} : tensor<1x1x1x1xi32>
  %z = braid.constant {value = dense<3> : tensor<1x1x1x1xi8>} : tensor<1x1x1x1xi8>
  %q = braid.requantize %c, %m, %s, %z {rounding = "half_even"} : (tensor<1x1x6x6xi32>, tensor<1x1x1x1xi32>, tensor<1x1x1x1xi32>, tensor<1x1x1x1xi8>) -> tensor<1x1x6x6xi8>
  %y = braid.pool %q {kind = "max", window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>} : (tensor<1x1x6x6xi8>) -> tensor<1x1x3x3xi8>
  func.return %y : tensor<1x1x3x3xi8>
}
