// RUN: %braid-opt %s -p 'select-storage,outline-kernels' --split-input-file --remarks 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// Both operands are computed inside the result: nothing is left to do for the concatenation, and
// a reader of one of them takes its strides.
// REMARK: [select-storage] 1 of 1 copies spared
// CHECK-LABEL: func.func @concat
// CHECK:         %[[A:.*]] = func.call @kernel_0(%{{.*}}) {braid.strides = [unit, array<i64: 512, 16, 1>]}
// CHECK:         %[[B:.*]] = func.call @kernel_1(%{{.*}}) {braid.strides = [unit, array<i64: 512, 16, 1>]}
// CHECK:         %[[C:.*]] = func.call @kernel_2(%[[A]]) {braid.strides = [array<i64: 512, 16, 1>, unit]}
// CHECK:         braid.concat %[[A]], %[[B]] {dim = 1 : i64, braid.boxes = [array<i64: 0, 0>, array<i64: 1, 1024>]}
func.func @concat(%x: tensor<4x16x16xf32>) -> (tensor<4x32x16xf32>, tensor<4x16x16xf32>) {
  %a = braid.exp %x : (tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
  %b = braid.tanh %x : (tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
  %c = braid.neg %a : (tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
  %d = braid.concat %a, %b {dim = 1 : i64} : (tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x32x16xf32>
  func.return %d, %c : tensor<4x32x16xf32>, tensor<4x16x16xf32>
}

// -----

// Boxes nest: the strides and offsets are those in the outermost tensor. The padding's kernel,
// which gets its operand in place, writes the border.
// REMARK: [select-storage] 2 of 2 copies spared
// CHECK-LABEL: func.func @nested
// CHECK:         %[[A:.*]] = func.call @kernel_0(%{{.*}}) {braid.strides = [unit, array<i64: 1224, 36, 1>]}
// CHECK:         %[[B:.*]] = func.call @kernel_1(%{{.*}}) {braid.strides = [unit, array<i64: 1224, 36, 1>]}
// CHECK:         %[[C:.*]] = braid.concat %[[A]], %[[B]] {dim = 2 : i64, braid.boxes = [array<i64: 0, 0>, array<i64: 1, 64>], braid.strides = [unit, unit, array<i64: 1224, 36, 1>]}
// CHECK:         func.call @kernel_2(%[[C]]) {braid.boxes = [array<i64: 0, 152>]}
// CHECK:       func.func private @kernel_2
// CHECK-SAME:    braid.boxes = [array<i64: 0, 152>]
func.func @nested(%x: tensor<8x32x16xf32>) -> tensor<8x34x36xf32> {
  %a = braid.exp %x : (tensor<8x32x16xf32>) -> tensor<8x32x16xf32>
  %b = braid.tanh %x : (tensor<8x32x16xf32>) -> tensor<8x32x16xf32>
  %c = braid.concat %a, %b {dim = 2 : i64} : (tensor<8x32x16xf32>, tensor<8x32x16xf32>) -> tensor<8x32x32xf32>
  %d = braid.pad %c {low = array<i64: 0, 1, 2>, high = array<i64: 0, 1, 2>, value = 0.0 : f32} : (tensor<8x32x32xf32>) -> tensor<8x34x36xf32>
  func.return %d : tensor<8x34x36xf32>
}

// -----

// A slice is read where it lies, through a reshape as well.
// REMARK: [select-storage] 1 of 1 copies spared
// CHECK-LABEL: func.func @slice
// CHECK:         %[[S:.*]] = braid.slice %{{.*}} {{.*}}braid.view_offset = 64 : i64
// CHECK:         %[[R:.*]] = braid.reshape %[[S]]
// CHECK:         func.call @kernel_0(%[[R]]) {braid.strides = [array<i64: 48, 4, 1>, unit]}
func.func @slice(%x: tensor<64x48xf32>) -> tensor<64x4x4xf32> {
  %s = braid.slice %x {offsets = array<i64: 0, 16>, sizes = array<i64: 64, 16>, strides = array<i64: 1, 1>} : (tensor<64x48xf32>) -> tensor<64x16xf32>
  %r = braid.reshape %s : (tensor<64x16xf32>) -> tensor<64x4x4xf32>
  %y = braid.exp %r : (tensor<64x4x4xf32>) -> tensor<64x4x4xf32>
  func.return %y : tensor<64x4x4xf32>
}

// -----

// The copy stays where a value is an input, or has a place already.
// REMARK: [select-storage] 1 of 3 copies spared
// CHECK-LABEL: func.func @kept
// CHECK:         func.call @kernel_0
// CHECK:         func.call @kernel_1
// CHECK:         func.call @kernel_2
// CHECK:         func.call @kernel_3
// CHECK:         braid.concat {{.*}}braid.boxes
func.func @kept(%x: tensor<64x16xf32>) -> (tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x32xf32>) {
  %a = braid.exp %x : (tensor<64x16xf32>) -> tensor<64x16xf32>
  %b = braid.tanh %x : (tensor<64x16xf32>) -> tensor<64x16xf32>
  %c = braid.concat %x, %a {dim = 1 : i64} : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x32xf32>
  %d = braid.concat %b, %a {dim = 1 : i64} : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x32xf32>
  %e = braid.concat %a, %b {dim = 1 : i64} : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x32xf32>
  func.return %c, %d, %e : tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x32xf32>
}

// -----

// A slice that is computed inside another tensor is a copy into that: it cannot be a view of its
// operand too, neither directly nor seen through a reshape.
// REMARK: [select-storage] 1 of 2 copies spared
// CHECK-LABEL: func.func @slice_inside
// CHECK:         %[[S:.*]] = func.call @kernel_0(%{{.*}}) {braid.strides = [unit, array<i64: 48, 1>]}
// CHECK:         %[[T:.*]] = func.call @kernel_1(%{{.*}}) {braid.strides = [unit, array<i64: 48, 1>]}
// CHECK:         braid.concat %[[S]], %[[T]] {dim = 1 : i64, braid.boxes = [array<i64: 0, 0>, array<i64: 1, 64>]}
func.func @slice_inside(%x: tensor<64x48xf32>, %y: tensor<64x32xf32>) -> tensor<64x48xf32> {
  %s = braid.slice %x {offsets = array<i64: 0, 16>, sizes = array<i64: 64, 16>, strides = array<i64: 1, 1>} : (tensor<64x48xf32>) -> tensor<64x16xf32>
  %t = braid.exp %y : (tensor<64x32xf32>) -> tensor<64x32xf32>
  %z = braid.concat %s, %t {dim = 1 : i64} : (tensor<64x16xf32>, tensor<64x32xf32>) -> tensor<64x48xf32>
  func.return %z : tensor<64x48xf32>
}

// -----

// A tensor without elements takes no time to copy.
// REMARK: [select-storage] 0 of 1 copies spared
// CHECK-LABEL: func.func @empty
// CHECK:         func.call @kernel_0
func.func @empty(%x: tensor<4x0xf32>) -> tensor<6x0xf32> {
  %a = braid.exp %x : (tensor<4x0xf32>) -> tensor<4x0xf32>
  %p = braid.pad %a {low = array<i64: 1, 0>, high = array<i64: 1, 0>, value = 0.0 : f32} : (tensor<4x0xf32>) -> tensor<6x0xf32>
  func.return %p : tensor<6x0xf32>
}

// -----

// A tensor that is joined with itself, or with a view of itself, cannot lie at both places.
// REMARK: [select-storage] 1 of 3 copies spared
// CHECK-LABEL: func.func @twice
// CHECK:         func.call @kernel_0
// CHECK:         func.call @kernel_1
// CHECK:         func.call @kernel_2{{.*}}braid.boxes
// CHECK:         func.call @kernel_3
func.func @twice(%x: tensor<16x60xf32>) -> (tensor<32x61xf32>, tensor<64x30xf32>) {
  %a = braid.tanh %x : (tensor<16x60xf32>) -> tensor<16x60xf32>
  %c = braid.concat %a, %a {dim = 0 : i64} : (tensor<16x60xf32>, tensor<16x60xf32>) -> tensor<32x60xf32>
  %d = braid.pad %c {low = array<i64: 0, 0>, high = array<i64: 0, 1>, value = 0.0 : f32} : (tensor<32x60xf32>) -> tensor<32x61xf32>
  %r = braid.reshape %a : (tensor<16x60xf32>) -> tensor<32x30xf32>
  %s = braid.reshape %a : (tensor<16x60xf32>) -> tensor<32x30xf32>
  %e = braid.concat %r, %s {dim = 0 : i64} : (tensor<32x30xf32>, tensor<32x30xf32>) -> tensor<64x30xf32>
  func.return %d, %e : tensor<32x61xf32>, tensor<64x30xf32>
}

// -----

// Attention reads q, k and v where the product that they are slices of has them.
// REMARK: [select-storage] 3 of 3 copies spared
// CHECK-LABEL: func.func @packed_attention
// CHECK:         %[[P:.*]] = func.call @kernel_0
// CHECK:         %[[Q:.*]] = braid.slice %[[P]] {{.*}}braid.view_offset = 0 : i64
// CHECK:         %[[K:.*]] = braid.slice %[[P]] {{.*}}braid.view_offset = 64 : i64
// CHECK:         %[[V:.*]] = braid.slice %[[P]] {{.*}}braid.view_offset = 128 : i64
// CHECK:         func.call @kernel_1(%[[Q]], %[[K]], %[[V]]) {braid.strides = [array<i64: 12288, 48, 1>, array<i64: 12288, 48, 1>, array<i64: 12288, 48, 1>, unit]}
func.func @packed_attention(%x: tensor<4x256x48xf32>) -> tensor<4x256x16xf32> {
  %p = braid.exp %x : (tensor<4x256x48xf32>) -> tensor<4x256x48xf32>
  %q = braid.slice %p {offsets = array<i64: 0, 0, 0>, sizes = array<i64: 4, 256, 16>, strides = array<i64: 1, 1, 1>} : (tensor<4x256x48xf32>) -> tensor<4x256x16xf32>
  %k = braid.slice %p {offsets = array<i64: 0, 0, 16>, sizes = array<i64: 4, 256, 16>, strides = array<i64: 1, 1, 1>} : (tensor<4x256x48xf32>) -> tensor<4x256x16xf32>
  %v = braid.slice %p {offsets = array<i64: 0, 0, 32>, sizes = array<i64: 4, 256, 16>, strides = array<i64: 1, 1, 1>} : (tensor<4x256x48xf32>) -> tensor<4x256x16xf32>
  %y = braid.fused(%q, %k, %v) : (tensor<4x256x16xf32>, tensor<4x256x16xf32>, tensor<4x256x16xf32>) -> tensor<4x256x16xf32> {
  ^bb0(%a: tensor<4x256x16xf32>, %b: tensor<4x256x16xf32>, %c: tensor<4x256x16xf32>):
    %0 = braid.transpose %b {permutation = array<i64: 0, 2, 1>} : (tensor<4x256x16xf32>) -> tensor<4x16x256xf32>
    %1 = braid.matmul %a, %0 : (tensor<4x256x16xf32>, tensor<4x16x256xf32>) -> tensor<4x256x256xf32>
    %2 = braid.softmax %1 {dim = 2 : i64} : (tensor<4x256x256xf32>) -> tensor<4x256x256xf32>
    %3 = braid.matmul %2, %c : (tensor<4x256x256xf32>, tensor<4x256x16xf32>) -> tensor<4x256x16xf32>
    braid.yield %3 : tensor<4x256x16xf32>
  }
  func.return %y : tensor<4x256x16xf32>
}
