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

// Factors of the convolution that are read from memory, as the attribute on its stage decides.
// RUN: sed 's/label = "conv",/label = "conv", memory_latency = 20 : i64,/' %t.mlir > %t.read.mlir
// RUN: %braid-opt %t.read.mlir -p apply-hls-schedule -o %t.applied.mlir && FileCheck %s --check-prefix=READ --input-file %t.applied.mlir
// RUN: %braid-opt %t.applied.mlir -p 'select-channel-depths,lower-hls-to-verilog{output=%t.sv}' && FileCheck %s --check-prefix=PORTS --input-file %t.sv
// RUN: not %braid-opt %t.read.mlir -p 'lower-hls-to-cpp{output=%t.cpp}' 2>&1 | FileCheck %s --check-prefix=OPEN
// RUN: sed 's/burst = [0-9]* /burst = 3 /' %t.applied.mlir > %t.bad.mlir && not %braid-opt %t.bad.mlir 2>&1 | FileCheck %s --check-prefix=BURST
// RUN: sed 's/port = 32 /port = 16 /' %t.applied.mlir > %t.bad.mlir && not %braid-opt %t.bad.mlir 2>&1 | FileCheck %s --check-prefix=PORT
// RUN: sed 's/label = "pool",/label = "pool", memory_latency = 20 : i64,/' %t.mlir > %t.bad.mlir && not %braid-opt %t.bad.mlir -p apply-hls-schedule 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not %braid-opt %s -p 'convert-braid-to-hls,select-hls-schedule{dsp=5 memory=32 memory_latency=0}' 2>&1 | FileCheck %s --check-prefix=NEVER

// READ: braid_hls.weights {values = {{.*}} repeats = 36 : i64, port = 32 : i64, burst = 4 : i64, bursts = {{[0-9]+}} : i64, latency = 20 : i64} : !braid_hls.stream<3 x i5>
// READ: braid_hls.stage(%{{.*}}) weights %{{.*}} : !braid_hls.stream<3 x i5>
// READ-NOT: braid_hls.table {{.*}} by = "reduction"
// PORTS: m_axi0_araddr
// BURST: bursts of 3 words of 32 bits, expected a power of two
// PORT: a port of 16 bits for rows of 15, expected one of
// NONE: error: memory_latency on stage 'pool', which has no known factors
// NEVER: error: memory_latency = 0, expected at least 1 cycle

// REMARK: remark: [select-hls-schedule] 2 stages, the slowest with 115 iterations, at least 115 with these resources; 4 DSP slices, 0 block RAMs, {{[0-9]+}} look-up tables and {{[0-9]+}} flip-flops
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
