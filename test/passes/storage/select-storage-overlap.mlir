// RUN: %braid-opt %s -p 'select-fusion,apply-fusion,select-storage,outline-kernels' --split-input-file --remarks 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// The matmul is the last reader of %a, whose rows are no longer than those of the result, so %a
// lies in the result's memory.
// REMARK: arena smaller by {{[1-9].*}} KiB
// CHECK-LABEL: func.func @output
// CHECK:         func.call @kernel_0(%{{.*}}) :
// CHECK:         func.call @kernel_1(%{{.*}}, %{{.*}}) {braid.overlap = 0 : i64}
// CHECK:       func.func private @kernel_1
// CHECK-SAME:    braid.overlap = 0 : i64
func.func @output(%x: tensor<64x48xf32>, %w: tensor<48x300xf32>) -> tensor<64x300xf32> {
  %a = braid.softmax %x {dim = 1 : i64} : (tensor<64x48xf32>) -> tensor<64x48xf32>
  %b = braid.matmul %a, %w : (tensor<64x48xf32>, tensor<48x300xf32>) -> tensor<64x300xf32>
  func.return %b : tensor<64x300xf32>
}

// -----

// The same in the arena, through a view.
// REMARK: arena smaller by {{[1-9].*}} KiB
// CHECK-LABEL: func.func @arena
// CHECK:         func.call @kernel_1({{.*}}braid.overlap = 0
// CHECK:         func.call @kernel_2(%{{.*}}) :
func.func @arena(%x: tensor<64x48xf32>, %w: tensor<48x300xf32>) -> tensor<64x1xf32> {
  %a = braid.softmax %x {dim = 1 : i64} : (tensor<64x48xf32>) -> tensor<64x48xf32>
  %v = braid.reshape %a : (tensor<64x48xf32>) -> tensor<1x64x48xf32>
  %r = braid.reshape %w : (tensor<48x300xf32>) -> tensor<1x48x300xf32>
  %b = braid.matmul %v, %r : (tensor<1x64x48xf32>, tensor<1x48x300xf32>) -> tensor<1x64x300xf32>
  %u = braid.reshape %b : (tensor<1x64x300xf32>) -> tensor<64x300xf32>
  %c = braid.reduce %u {kind = "maximum", dims = array<i64: 1>} : (tensor<64x300xf32>) -> tensor<64x1xf32>
  func.return %c : tensor<64x1xf32>
}

// -----

// Not over an input of the function, nor over what is read again.
// REMARK: arena smaller by 0 B
// CHECK-LABEL: func.func @read_again
// CHECK-NOT:     braid.overlap
func.func @read_again(%x: tensor<64x48xf32>, %w: tensor<48x300xf32>) -> (tensor<64x300xf32>, tensor<64x300xf32>, tensor<64x48xf32>) {
  %a = braid.softmax %x {dim = 1 : i64} : (tensor<64x48xf32>) -> tensor<64x48xf32>
  %b = braid.matmul %x, %w : (tensor<64x48xf32>, tensor<48x300xf32>) -> tensor<64x300xf32>
  %c = braid.matmul %a, %w : (tensor<64x48xf32>, tensor<48x300xf32>) -> tensor<64x300xf32>
  %d = braid.exp %a : (tensor<64x48xf32>) -> tensor<64x48xf32>
  func.return %b, %c, %d : tensor<64x300xf32>, tensor<64x300xf32>, tensor<64x48xf32>
}

// -----

// Rows of the result are shorter than those of the operand.
// REMARK: arena smaller by 0 B
// CHECK-LABEL: func.func @short_rows
// CHECK-NOT:     braid.overlap
func.func @short_rows(%x: tensor<64x48xf32>, %w: tensor<48x40xf32>) -> tensor<64x40xf32> {
  %a = braid.softmax %x {dim = 1 : i64} : (tensor<64x48xf32>) -> tensor<64x48xf32>
  %b = braid.matmul %a, %w : (tensor<64x48xf32>, tensor<48x40xf32>) -> tensor<64x40xf32>
  func.return %b : tensor<64x40xf32>
}

// -----

// The arena is fullest elsewhere: the product is computed as ever.
// REMARK: arena smaller by 0 B
// CHECK-LABEL: func.func @not_at_peak
// CHECK-NOT:     braid.overlap
func.func @not_at_peak(%x: tensor<64x48xf32>, %w: tensor<48x300xf32>, %y: tensor<512x512xf32>) -> (tensor<64x300xf32>, tensor<512x1xf32>) {
  %a = braid.softmax %x {dim = 1 : i64} : (tensor<64x48xf32>) -> tensor<64x48xf32>
  %b = braid.matmul %a, %w : (tensor<64x48xf32>, tensor<48x300xf32>) -> tensor<64x300xf32>
  %s = braid.softmax %y {dim = 1 : i64} : (tensor<512x512xf32>) -> tensor<512x512xf32>
  %m = braid.reduce %s {kind = "maximum", dims = array<i64: 1>} : (tensor<512x512xf32>) -> tensor<512x1xf32>
  func.return %b, %m : tensor<64x300xf32>, tensor<512x1xf32>
}
