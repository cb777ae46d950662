// Frames first, then channels, where asked; other dims only where these do not suffice.
// RUN: %braid-opt %s -p 'select-splits{memory=20000 dims=N,C}' --remarks -o %t.mlir 2>&1 | filecheck %s
// RUN: %braid-opt %s -p 'select-splits{memory=20000 dims=C,N}' --remarks -o %t.mlir 2>&1 | filecheck %s --check-prefix=CHANNELS
// RUN: %braid-opt %s -p 'select-splits{memory=20000 dims=H}' --remarks -o %t.mlir 2>&1 | filecheck %s --check-prefix=ROWS
// RUN: %braid-opt %s -p 'select-splits{memory=20000 dims=1},apply-splits' -o %t.mlir
// RUN: not %braid-opt %s -p 'select-splits{memory=20000 dims=N,X}' 2>&1 | filecheck %s --check-prefix=ERROR
// RUN: not %braid-opt %s -p 'select-splits{memory=20000 dims=N,N}' 2>&1 | filecheck %s --check-prefix=TWICE

// An operand and a result of 4 frames of 8 channels of 1 KiB.
// CHECK: 65536 bytes, limit 20000: 4 along dim 0, at most 16384 bytes each
// Two frames of one operand, then channels: a frame is 48 KiB.
// CHECK: 98304 bytes, limit 20000: 2 along dim 0 x 3 along dim 1, at most 16384 bytes each
// CHANNELS: 4 along dim 1, at most 16384 bytes each
// CHANNELS: 6 along dim 1, at most 16384 bytes each
// ROWS: 4 along dim 2, at most 16384 bytes each
// ROWS: 6 along dim 2
// ERROR: error: option 'dims' names 'X'
// ERROR: hint: expected N, C, D, H or W, or numbers of dims of results, such as dims=N,C
// TWICE: error: option 'dims' names 'N' twice
func.func @main(%x: tensor<4x8x16x16xf32>, %y: tensor<2x24x16x16xf32>) -> (tensor<4x8x16x16xf32>, tensor<2x24x16x16xf32>) {
  %0 = braid.exp %x : (tensor<4x8x16x16xf32>) -> tensor<4x8x16x16xf32>
  %1 = braid.exp %y : (tensor<2x24x16x16xf32>) -> tensor<2x24x16x16xf32>
  func.return %0, %1 : tensor<4x8x16x16xf32>, tensor<2x24x16x16xf32>
}
