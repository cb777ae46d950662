// A transpose is a memory; the banks that it is read from are chosen as the folds of stages are.
// RUN: %braid-opt %s -p 'convert-braid-to-hls' | FileCheck %s
// RUN: %braid-opt %s -p 'convert-braid-to-hls,select-hls-schedule{dsp=0}' -o %t.mlir
// RUN: FileCheck %s --input-file %t.mlir --check-prefix=CHOSEN
// RUN: %braid-opt %t.mlir -p 'apply-hls-schedule,select-channel-depths' --remarks 2>&1 | FileCheck %s --check-prefix=APPLIED
// RUN: not %braid-opt %t.mlir -p 'lower-hls-to-verilog{output=%t.sv}' 2>&1 | FileCheck %s --check-prefix=OPEN
// RUN: sed 's/unroll = array<i64: 2, 2>/unroll = array<i64: 1, 2>/' %t.mlir > %t.bad.mlir && not %braid-opt %t.bad.mlir -p apply-hls-schedule 2>&1 | FileCheck %s --check-prefix=BANKS

// CHECK: braid_hls.permute %{{.*}} {order = array<i64: 0, 3, 1, 4, 2, 5>, images = 2 : i64, banks = 1 : i64, ii = 2 : i64} : (!braid_hls.stream<3 x i8>) -> !braid_hls.stream<2 x i8>
// CHOSEN: braid_hls.permute {{.*}} banks = 1 : i64, ii = 2 : i64, unroll = array<i64: 2, 2>
// APPLIED: remark: [select-channel-depths] 2 images in 12 cycles, as with unbounded channels; {{[0-9]+}} bits in 3 channels, none can be lowered
// APPLIED: braid_hls.permute {{.*}} banks = 2 : i64, ii = 1 : i64
// OPEN: error: stage 'permute' has a schedule that was not applied
// BANKS: error: ii = 1 of a permute with 1 banks, expected 2 at least
func.func @main(%x: tensor<2x3xi8>) -> tensor<3x2xi8> {
  %y = braid.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  func.return %y : tensor<3x2xi8>
}
