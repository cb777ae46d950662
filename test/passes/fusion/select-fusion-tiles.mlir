// RUN: %braid-opt %s -p select-fusion | filecheck %s
// RUN: %braid-opt %s -p 'select-fusion{tiles=false}' | filecheck %s --check-prefix=APART
// RUN: %braid-opt %s -p select-fusion,apply-fusion | filecheck %s --check-prefix=FUSED

// Attention: the scores exist as tiles only, and the transposes are part of reading them.
// CHECK-LABEL: @attention
// CHECK-NEXT:    braid.transpose {{.*}}braid.fusion_group = 0 : i64
// CHECK-NEXT:    braid.matmul {{.*}}braid.fusion_group = 0 : i64
// CHECK-NEXT:    braid.softmax {{.*}}braid.fusion_group = 0 : i64
// CHECK-NEXT:    braid.matmul {{.*}}braid.fusion_group = 0 : i64
// APART-LABEL: @attention
// APART-NEXT:    braid.transpose {{.*}}braid.fusion_group = 3 : i64
// APART-NEXT:    braid.matmul {{.*}}braid.fusion_group = 2 : i64
// APART-NEXT:    braid.softmax {{.*}}braid.fusion_group = 1 : i64
// APART-NEXT:    braid.matmul {{.*}}braid.fusion_group = 0 : i64
// FUSED-LABEL: @attention
// FUSED-NEXT:    braid.fused
// FUSED:         braid.transpose
// FUSED:         braid.softmax
// FUSED:         braid.yield
// FUSED-NEXT:  }
// FUSED-NEXT:  func.return
func.func @attention(%q: tensor<4x256x16xf32>, %k: tensor<4x256x16xf32>, %v: tensor<4x256x16xf32>) -> tensor<4x256x16xf32> {
  %0 = braid.transpose %k {permutation = array<i64: 0, 2, 1>} : (tensor<4x256x16xf32>) -> tensor<4x16x256xf32>
  %1 = braid.matmul %q, %0 : (tensor<4x256x16xf32>, tensor<4x16x256xf32>) -> tensor<4x256x256xf32>
  %2 = braid.softmax %1 {dim = 2 : i64} : (tensor<4x256x256xf32>) -> tensor<4x256x256xf32>
  %3 = braid.matmul %2, %v : (tensor<4x256x256xf32>, tensor<4x256x16xf32>) -> tensor<4x256x16xf32>
  func.return %3 : tensor<4x256x16xf32>
}

// The weights are read elsewhere as well: they must exist, so that nothing is gained.
// CHECK-LABEL: @weights_escape
// CHECK-NEXT:    braid.matmul {{.*}}braid.fusion_group = 2 : i64
// CHECK-NEXT:    braid.softmax {{.*}}braid.fusion_group = 1 : i64
// CHECK-NEXT:    braid.matmul {{.*}}braid.fusion_group = 0 : i64
func.func @weights_escape(%q: tensor<4x256x16xf32>, %k: tensor<4x16x256xf32>, %v: tensor<4x256x16xf32>) -> (tensor<4x256x16xf32>, tensor<4x256x256xf32>) {
  %1 = braid.matmul %q, %k : (tensor<4x256x16xf32>, tensor<4x16x256xf32>) -> tensor<4x256x256xf32>
  %2 = braid.softmax %1 {dim = 2 : i64} : (tensor<4x256x256xf32>) -> tensor<4x256x256xf32>
  %3 = braid.matmul %2, %v : (tensor<4x256x256xf32>, tensor<4x256x16xf32>) -> tensor<4x256x16xf32>
  func.return %3, %2 : tensor<4x256x16xf32>, tensor<4x256x256xf32>
}

// Small scores stay in the first-level cache anyway.
// CHECK-LABEL: @small
// CHECK-NEXT:    braid.matmul {{.*}}braid.fusion_group = 2 : i64
// CHECK-NEXT:    braid.softmax {{.*}}braid.fusion_group = 1 : i64
// CHECK-NEXT:    braid.matmul {{.*}}braid.fusion_group = 0 : i64
func.func @small(%q: tensor<2x32x16xf32>, %k: tensor<2x16x32xf32>, %v: tensor<2x32x16xf32>) -> tensor<2x32x16xf32> {
  %1 = braid.matmul %q, %k : (tensor<2x32x16xf32>, tensor<2x16x32xf32>) -> tensor<2x32x32xf32>
  %2 = braid.softmax %1 {dim = 2 : i64} : (tensor<2x32x32xf32>) -> tensor<2x32x32xf32>
  %3 = braid.matmul %2, %v : (tensor<2x32x32xf32>, tensor<2x32x16xf32>) -> tensor<2x32x16xf32>
  func.return %3 : tensor<2x32x16xf32>
}

// Sums over rows, and ops on the rows and their sums.
// CHECK-LABEL: @rows
// CHECK-NEXT:    braid.sub {{.*}}braid.fusion_group = 0 : i64
// CHECK-NEXT:    braid.exp {{.*}}braid.fusion_group = 0 : i64
// CHECK-NEXT:    braid.reduce {{.*}}braid.fusion_group = 0 : i64
// CHECK-NEXT:    braid.div {{.*}}braid.fusion_group = 0 : i64
// CHECK-NEXT:    braid.reduce {{.*}}braid.fusion_group = 0 : i64
func.func @rows(%x: tensor<4096x1x64xf32>, %y: tensor<1x128x64xf32>) -> tensor<4096x128x1xf32> {
  %0 = braid.sub %x, %y : (tensor<4096x1x64xf32>, tensor<1x128x64xf32>) -> tensor<4096x128x64xf32>
  %1 = braid.exp %0 : (tensor<4096x128x64xf32>) -> tensor<4096x128x64xf32>
  %2 = braid.reduce %1 {kind = "add", dims = array<i64: 2>} : (tensor<4096x128x64xf32>) -> tensor<4096x128x1xf32>
  %3 = braid.div %1, %2 : (tensor<4096x128x64xf32>, tensor<4096x128x1xf32>) -> tensor<4096x128x64xf32>
  %4 = braid.reduce %3 {kind = "maximum", dims = array<i64: 2>} : (tensor<4096x128x64xf32>) -> tensor<4096x128x1xf32>
  func.return %4 : tensor<4096x128x1xf32>
}

// Columns and rows: no tile has whole ones of both.
// CHECK-LABEL: @no_common_dim
// CHECK-NEXT:    braid.exp {{.*}}braid.fusion_group = 0 : i64
// CHECK-NEXT:    braid.softmax {{.*}}braid.fusion_group = 0 : i64
// CHECK-NEXT:    braid.softmax {{.*}}braid.fusion_group = 1 : i64
func.func @no_common_dim(%x: tensor<4096x2048xf32>) -> tensor<4096x2048xf32> {
  %0 = braid.exp %x : (tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
  %1 = braid.softmax %0 {dim = 0 : i64} : (tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
  %2 = braid.softmax %1 {dim = 1 : i64} : (tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
  func.return %2 : tensor<4096x2048xf32>
}

// A convolution of a padded image of usual size keeps its layouts.
// CHECK-LABEL: @convolution
// CHECK-NEXT:    braid.pad {{.*}}braid.fusion_group = 1 : i64
// CHECK-NEXT:    braid.conv {{.*}}braid.fusion_group = 0 : i64
func.func @convolution(%x: tensor<1x64x56x56xf32>, %w: tensor<64x64x3x3xf32>) -> tensor<1x64x56x56xf32> {
  %0 = braid.pad %x {low = array<i64: 0, 0, 1, 1>, high = array<i64: 0, 0, 1, 1>, value = 0.0 : f32} : (tensor<1x64x56x56xf32>) -> tensor<1x64x58x58xf32>
  %1 = braid.conv %0, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x64x58x58xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x56x56xf32>
  func.return %1 : tensor<1x64x56x56xf32>
}

// One query: its scores are small beside keys and values, which each product reads where they lie.
// CHECK-LABEL: @one_query
// CHECK-NEXT:    braid.transpose {{.*}}braid.fusion_group = 3 : i64
// CHECK-NEXT:    braid.matmul {{.*}}braid.fusion_group = 2 : i64
// CHECK-NEXT:    braid.softmax {{.*}}braid.fusion_group = 1 : i64
// CHECK-NEXT:    braid.matmul {{.*}}braid.fusion_group = 0 : i64
func.func @one_query(%q: tensor<8x1x64xf32>, %k: tensor<8x2048x64xf32>, %v: tensor<8x2048x64xf32>) -> tensor<8x1x64xf32> {
  %0 = braid.transpose %k {permutation = array<i64: 0, 2, 1>} : (tensor<8x2048x64xf32>) -> tensor<8x64x2048xf32>
  %1 = braid.matmul %q, %0 : (tensor<8x1x64xf32>, tensor<8x64x2048xf32>) -> tensor<8x1x2048xf32>
  %2 = braid.softmax %1 {dim = 2 : i64} : (tensor<8x1x2048xf32>) -> tensor<8x1x2048xf32>
  %3 = braid.matmul %2, %v : (tensor<8x1x2048xf32>, tensor<8x2048x64xf32>) -> tensor<8x1x64xf32>
  func.return %3 : tensor<8x1x64xf32>
}

// Values computed from a weight alone are computed at compile time, not tile by tile.
// CHECK-LABEL: @known
// CHECK:         braid.cast {{.*}}braid.fusion_group = 1 : i64
// CHECK-NEXT:    braid.matmul {{.*}}braid.fusion_group = 0 : i64
func.func @known(%x: tensor<1x4096xbf16>) -> tensor<1x4096xf32> {
  %0 = braid.parameter {key = "w"} : tensor<4096x4096xf32>
  %1 = braid.cast %0 : (tensor<4096x4096xf32>) -> tensor<4096x4096xbf16>
  %2 = braid.matmul %x, %1 {accumulator = f32} : (tensor<1x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<1x4096xf32>
  func.return %2 : tensor<1x4096xf32>
}
