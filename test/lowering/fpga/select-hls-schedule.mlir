// Nine products and a wide one are made by four slices in three iterations, of the part or of limits that are given.
// RUN: %braid-opt %s -p 'convert-braid-to-hls,select-hls-schedule{dsp=5}' --remarks -o %t.mlir 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: FileCheck %s --input-file %t.mlir
// RUN: %braid-opt %t.mlir -p apply-hls-schedule | FileCheck %s --check-prefix=FOLDED
// RUN: %braid-opt %s -p 'convert-braid-to-hls,select-hls-schedule{target=fpga-zynq7020}' | FileCheck %s --check-prefix=PART
// RUN: not %braid-opt %s -p 'convert-braid-to-hls,select-hls-schedule{dsp=1}' 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: not %braid-opt %s -p 'convert-braid-to-hls,select-hls-schedule' 2>&1 | FileCheck %s --check-prefix=WHERE
// RUN: not %braid-opt %t.mlir -p 'lower-hls-to-verilog{output=%t.sv}' 2>&1 | FileCheck %s --check-prefix=OPEN
// RUN: not %braid-opt %t.mlir -p 'lower-hls-to-cpp{output=%t.cpp}' 2>&1 | FileCheck %s --check-prefix=OPEN
// RUN: not %braid-opt %t.mlir -p 'apply-hls-schedule,select-hls-schedule{dsp=5}' 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: sed 's/unroll = array<i64: 1, 3>/unroll = array<i64: 1, 4>/' %t.mlir > %t.bad.mlir && not %braid-opt %t.bad.mlir -p apply-hls-schedule 2>&1 | FileCheck %s --check-prefix=DIVIDES

// REMARK: remark: [select-hls-schedule] 2 stages, the slowest with 115 iterations, at least 115 with what there is; 4 DSP slices, 0 block RAMs, {{[0-9]+}} look-up tables and {{[0-9]+}} flip-flops
// FEW: error: the stages need 2 DSP slices at their smallest, expected at most 1
// WHERE: error: a schedule of a design for a target without an FPGA
// OPEN: error: stage 'conv' has a schedule that was not applied
// TWICE: error: a design whose stages have been folded
// DIVIDES: error: unroll = [1, 4] on stage 'conv', expected divisors of [1, 9]

// CHECK: braid_hls.stage
// CHECK-SAME: folds = array<i64: 1, 1>
// CHECK-SAME: ii = 1 : i64
// CHECK-SAME: unroll = array<i64: 1, 3>
// The pooling need not be faster than the convolution: one comparison at a time.
// CHECK: unroll = array<i64: 1, 1>

// FOLDED: braid_hls.stage
// FOLDED-SAME: folds = array<i64: 1, 3>
// FOLDED-SAME: ii = 3 : i64
// FOLDED: braid_hls.select %{{.*}} by = "reduction"
// FOLDED: braid_hls.table {{.*}} by = "reduction"
// FOLDED: kind = "mul"
// FOLDED: braid_hls.combine
// FOLDED: braid_hls.accumulate

// PART: unroll = array<i64: 1, 9>
func.func @main(%x: tensor<1x1x6x6xui8>) -> tensor<1x1x3x3xi8> {
  %w = braid.constant {value = dense<[[[[1, -2, 3], [-4, 5, -6], [7, -8, 9]]]]> : tensor<1x1x3x3xi8>} : tensor<1x1x3x3xi8>
  %c = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>, groups = 1 : i64, accumulator = i32} : (tensor<1x1x6x6xui8>, tensor<1x1x3x3xi8>) -> tensor<1x1x6x6xi32>
  %m = braid.constant {value = dense<77> : tensor<1x1x1x1xi32>} : tensor<1x1x1x1xi32>
  %s = braid.constant {value = dense<12> : tensor<1x1x1x1xi32>} : tensor<1x1x1x1xi32>
  %z = braid.constant {value = dense<3> : tensor<1x1x1x1xi8>} : tensor<1x1x1x1xi8>
  %q = braid.requantize %c, %m, %s, %z {rounding = "half_even"} : (tensor<1x1x6x6xi32>, tensor<1x1x1x1xi32>, tensor<1x1x1x1xi32>, tensor<1x1x1x1xi8>) -> tensor<1x1x6x6xi8>
  %y = braid.pool %q {kind = "max", window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>} : (tensor<1x1x6x6xi8>) -> tensor<1x1x3x3xi8>
  func.return %y : tensor<1x1x3x3xi8>
}
