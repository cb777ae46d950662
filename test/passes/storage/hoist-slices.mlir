// RUN: %braid-opt %s -p 'select-fusion,apply-fusion,select-storage,hoist-slices,outline-kernels' --split-input-file --remarks 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// Rows of one tensor are read in place, so that one kernel serves all of them.
// REMARK: [hoist-slices] 4 kernels that read parts of tensors became 1
// CHECK-LABEL: func.func @rows
// CHECK:         %[[A:.*]] = braid.slice %{{.*}} {offsets = array<i64: 0, 0>, {{.*}}braid.view_offset = 0 : i64}
// CHECK:         func.call @kernel_0(%[[A]])
// CHECK:         %[[B:.*]] = braid.slice %{{.*}} {offsets = array<i64: 1, 0>, {{.*}}braid.view_offset = 64 : i64}
// CHECK:         func.call @kernel_0(%[[B]])
// CHECK:         braid.view_offset = 128 : i64
// CHECK:         braid.view_offset = 192 : i64
// CHECK:       func.func private @kernel_0
// CHECK-NEXT:    braid.exp
// CHECK-NOT:   func.func private
func.func @rows(%x: tensor<4x16xf32>) -> (tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
  %a = braid.slice %x {offsets = array<i64: 0, 0>, sizes = array<i64: 1, 16>, strides = array<i64: 1, 1>} : (tensor<4x16xf32>) -> tensor<1x16xf32>
  %b = braid.slice %x {offsets = array<i64: 1, 0>, sizes = array<i64: 1, 16>, strides = array<i64: 1, 1>} : (tensor<4x16xf32>) -> tensor<1x16xf32>
  %c = braid.slice %x {offsets = array<i64: 2, 0>, sizes = array<i64: 1, 16>, strides = array<i64: 1, 1>} : (tensor<4x16xf32>) -> tensor<1x16xf32>
  %d = braid.slice %x {offsets = array<i64: 3, 0>, sizes = array<i64: 1, 16>, strides = array<i64: 1, 1>} : (tensor<4x16xf32>) -> tensor<1x16xf32>
  %e = braid.exp %a : (tensor<1x16xf32>) -> tensor<1x16xf32>
  %f = braid.exp %b : (tensor<1x16xf32>) -> tensor<1x16xf32>
  %g = braid.exp %c : (tensor<1x16xf32>) -> tensor<1x16xf32>
  %h = braid.exp %d : (tensor<1x16xf32>) -> tensor<1x16xf32>
  func.return %e, %f, %g, %h : tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
}

// -----

// Columns, of which copies are wanted: each kernel copies all of its operand, which has strides.
// REMARK: [hoist-slices] 4 kernels that read parts of tensors became 1
// CHECK-LABEL: func.func @columns
// CHECK:         braid.slice %{{.*}}braid.view_offset = 8 : i64
// CHECK:         func.call @kernel_0({{.*}}) {braid.strides = [array<i64: 5, 1>, unit]}
// CHECK:       func.func private @kernel_0
// CHECK-NEXT:    braid.slice %{{.*}} {offsets = array<i64: 0, 0>, sizes = array<i64: 3, 1>
// CHECK-NOT:   func.func private
func.func @columns(%x: tensor<3x5xf32>) -> (tensor<3x1xf32>, tensor<3x1xf32>, tensor<3x1xf32>, tensor<3x1xf32>) {
  %a = braid.slice %x {offsets = array<i64: 0, 2>, sizes = array<i64: 3, 1>, strides = array<i64: 1, 1>} : (tensor<3x5xf32>) -> tensor<3x1xf32>
  %b = braid.slice %x {offsets = array<i64: 0, 1>, sizes = array<i64: 3, 1>, strides = array<i64: 1, 1>} : (tensor<3x5xf32>) -> tensor<3x1xf32>
  %c = braid.slice %x {offsets = array<i64: 0, 3>, sizes = array<i64: 3, 1>, strides = array<i64: 1, 1>} : (tensor<3x5xf32>) -> tensor<3x1xf32>
  %d = braid.slice %x {offsets = array<i64: 0, 4>, sizes = array<i64: 3, 1>, strides = array<i64: 1, 1>} : (tensor<3x5xf32>) -> tensor<3x1xf32>
  func.return %a, %b, %c, %d : tensor<3x1xf32>, tensor<3x1xf32>, tensor<3x1xf32>, tensor<3x1xf32>
}

// -----

// Three kernels stay three, and so do those that compute different things.
// REMARK-NOT: [hoist-slices]
// CHECK-LABEL: func.func @few
// CHECK-NOT:     braid.view_offset
// CHECK:       func.func private @kernel_3
func.func @few(%x: tensor<4x16xf32>) -> (tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
  %a = braid.slice %x {offsets = array<i64: 0, 0>, sizes = array<i64: 1, 16>, strides = array<i64: 1, 1>} : (tensor<4x16xf32>) -> tensor<1x16xf32>
  %b = braid.slice %x {offsets = array<i64: 1, 0>, sizes = array<i64: 1, 16>, strides = array<i64: 1, 1>} : (tensor<4x16xf32>) -> tensor<1x16xf32>
  %c = braid.slice %x {offsets = array<i64: 2, 0>, sizes = array<i64: 1, 16>, strides = array<i64: 1, 1>} : (tensor<4x16xf32>) -> tensor<1x16xf32>
  %d = braid.slice %x {offsets = array<i64: 3, 0>, sizes = array<i64: 1, 16>, strides = array<i64: 1, 1>} : (tensor<4x16xf32>) -> tensor<1x16xf32>
  %e = braid.exp %a : (tensor<1x16xf32>) -> tensor<1x16xf32>
  %f = braid.exp %b : (tensor<1x16xf32>) -> tensor<1x16xf32>
  %g = braid.exp %c : (tensor<1x16xf32>) -> tensor<1x16xf32>
  %h = braid.neg %d : (tensor<1x16xf32>) -> tensor<1x16xf32>
  func.return %e, %f, %g, %h : tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
}

// -----

// A tensor that a kernel reads in two ways is handed to it whole.
// REMARK-NOT: [hoist-slices]
// CHECK-LABEL: func.func @two_ways
// CHECK-NOT:     braid.view_offset
// CHECK:       func.func private @kernel_3
func.func @two_ways(%x: tensor<8x16xf32>) -> (tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
  %a = braid.slice %x {offsets = array<i64: 0, 0>, sizes = array<i64: 1, 16>, strides = array<i64: 1, 1>} : (tensor<8x16xf32>) -> tensor<1x16xf32>
  %b = braid.slice %x {offsets = array<i64: 1, 0>, sizes = array<i64: 1, 16>, strides = array<i64: 1, 1>} : (tensor<8x16xf32>) -> tensor<1x16xf32>
  %c = braid.slice %x {offsets = array<i64: 2, 0>, sizes = array<i64: 1, 16>, strides = array<i64: 1, 1>} : (tensor<8x16xf32>) -> tensor<1x16xf32>
  %d = braid.slice %x {offsets = array<i64: 3, 0>, sizes = array<i64: 1, 16>, strides = array<i64: 1, 1>} : (tensor<8x16xf32>) -> tensor<1x16xf32>
  %e = braid.slice %x {offsets = array<i64: 4, 0>, sizes = array<i64: 1, 16>, strides = array<i64: 1, 1>} : (tensor<8x16xf32>) -> tensor<1x16xf32>
  %f = braid.slice %x {offsets = array<i64: 5, 0>, sizes = array<i64: 1, 16>, strides = array<i64: 1, 1>} : (tensor<8x16xf32>) -> tensor<1x16xf32>
  %g = braid.slice %x {offsets = array<i64: 6, 0>, sizes = array<i64: 1, 16>, strides = array<i64: 1, 1>} : (tensor<8x16xf32>) -> tensor<1x16xf32>
  %h = braid.slice %x {offsets = array<i64: 7, 0>, sizes = array<i64: 1, 16>, strides = array<i64: 1, 1>} : (tensor<8x16xf32>) -> tensor<1x16xf32>
  %i = braid.add %a, %e : (tensor<1x16xf32>, tensor<1x16xf32>) -> tensor<1x16xf32>
  %j = braid.add %b, %f : (tensor<1x16xf32>, tensor<1x16xf32>) -> tensor<1x16xf32>
  %k = braid.add %c, %g : (tensor<1x16xf32>, tensor<1x16xf32>) -> tensor<1x16xf32>
  %l = braid.add %d, %h : (tensor<1x16xf32>, tensor<1x16xf32>) -> tensor<1x16xf32>
  func.return %i, %j, %k, %l : tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
}
