// RUN: %braid-opt %s -p 'select-splits{memory=200KiB}' --remarks -o %t.mlir 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: filecheck %s --input-file %t.mlir
// RUN: %braid-opt %s -p 'select-splits{memory=100MiB}' | filecheck %s --check-prefix=FITS
// FITS-NOT: braid.split

// 10 images of 100 channels: two parts of 5 images.
// CHECK-LABEL: func.func @images
// CHECK: braid.conv {{.*}}braid.split = array<i64: 2, 1, 1, 1>
// REMARK: 327640 bytes, limit 204800: 2 along dim 0, at most 164020 bytes each
func.func @images(%x: tensor<10x100x9x9xf32>, %w: tensor<1x100x1x1xf32>) -> tensor<10x1x9x9xf32> {
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<10x100x9x9xf32>, tensor<1x100x1x1xf32>) -> tensor<10x1x9x9xf32>
  func.return %0 : tensor<10x1x9x9xf32>
}

// Large filters: output channels, since splitting the batch as well would make more parts.
// CHECK-LABEL: func.func @channels
// CHECK: braid.conv {{.*}}braid.split = array<i64: 1, 4, 1, 1>
func.func @channels(%x: tensor<2x64x4x4xf32>, %w: tensor<256x64x3x3xf32>) -> tensor<2x256x2x2xf32> {
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<2x64x4x4xf32>, tensor<256x64x3x3xf32>) -> tensor<2x256x2x2xf32>
  func.return %0 : tensor<2x256x2x2xf32>
}

// Depthwise: output channels are split in whole groups.
// CHECK-LABEL: func.func @depthwise
// CHECK: braid.conv {{.*}}braid.split = array<i64: 1, 2, 1, 1>
func.func @depthwise(%x: tensor<1x30x32x32xf32>, %w: tensor<60x1x1x1xf32>) -> tensor<1x60x32x32xf32> {
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 30 : i64} : (tensor<1x30x32x32xf32>, tensor<60x1x1x1xf32>) -> tensor<1x60x32x32xf32>
  func.return %0 : tensor<1x60x32x32xf32>
}

// One image, one output channel: rows, each part with a halo of two.
// CHECK-LABEL: func.func @rows
// CHECK: braid.conv {{.*}}braid.split = array<i64: 1, 1, 3, 1>
func.func @rows(%x: tensor<1x3x160x160xf32>, %w: tensor<1x3x3x3xf32>) -> tensor<1x1x160x160xf32> {
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x3x160x160xf32>, tensor<1x3x3x3xf32>) -> tensor<1x1x160x160xf32>
  func.return %0 : tensor<1x1x160x160xf32>
}

// CHECK-LABEL: func.func @pooling
// CHECK: braid.pool {{.*}}braid.split = array<i64: 2, 1, 1, 1>
func.func @pooling(%x: tensor<4x16x32x32xf32>) -> tensor<4x16x16x16xf32> {
  %0 = braid.pool %x {kind = "max", window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>} : (tensor<4x16x32x32xf32>) -> tensor<4x16x16x16xf32>
  func.return %0 : tensor<4x16x16x16xf32>
}

// A dim that the permutation does not move; where it moves all, the outermost.
// CHECK-LABEL: func.func @transposes
// CHECK: permutation = array<i64: 2, 1, 0>, braid.split = array<i64: 1, 2, 1>
// CHECK: permutation = array<i64: 1, 0>, braid.split = array<i64: 2, 1>
func.func @transposes(%x: tensor<32x32x32xf32>, %y: tensor<128x256xf32>) -> (tensor<32x32x32xf32>, tensor<256x128xf32>) {
  %0 = braid.transpose %x {permutation = array<i64: 2, 1, 0>} : (tensor<32x32x32xf32>) -> tensor<32x32x32xf32>
  %1 = braid.transpose %y {permutation = array<i64: 1, 0>} : (tensor<128x256xf32>) -> tensor<256x128xf32>
  func.return %0, %1 : tensor<32x32x32xf32>, tensor<256x128xf32>
}

// Reduced dims are never split; of the others, the outermost in storage is.
// CHECK-LABEL: func.func @others
// CHECK: braid.softmax {{.*}}braid.split = array<i64: 1, 2>
// CHECK: braid.reduce {{.*}}braid.split = array<i64: 2, 1>
// CHECK: braid.matmul {{.*}}braid.split = array<i64: 2, 1>
// CHECK: braid.exp {{.*}}braid.split = array<i64: 1, 2>
func.func @others(%x: tensor<128x256xf32>, %y: tensor<256x256xf32>, %z: tensor<128x256xf32, #braid.layout<"ba">>) -> (tensor<128x256xf32>, tensor<256x1xf32>, tensor<128x4xf32>, tensor<128x256xf32, #braid.layout<"ba">>) {
  %0 = braid.softmax %x {dim = 0 : i64} : (tensor<128x256xf32>) -> tensor<128x256xf32>
  %1 = braid.reduce %y {kind = "add", dims = array<i64: 1>} : (tensor<256x256xf32>) -> tensor<256x1xf32>
  %w = braid.parameter {key = "w"} : tensor<2048x4xf32>
  %v = braid.parameter {key = "v"} : tensor<32x2048xf32>
  %2 = braid.matmul %v, %w : (tensor<32x2048xf32>, tensor<2048x4xf32>) -> tensor<32x4xf32>
  %3 = braid.exp %z : (tensor<128x256xf32, #braid.layout<"ba">>) -> tensor<128x256xf32, #braid.layout<"ba">>
  %4 = braid.opaque "use"(%2) : (tensor<32x4xf32>) -> tensor<128x4xf32>
  func.return %0, %1, %4, %3 : tensor<128x256xf32>, tensor<256x1xf32>, tensor<128x4xf32>, tensor<128x256xf32, #braid.layout<"ba">>
}

// Slices, concatenations and reshapes are addressing: nothing is moved.
// CHECK-LABEL: func.func @addressing
// CHECK-NOT: braid.split
func.func @addressing(%x: tensor<128x256xf32>) -> tensor<65536xf32> {
  %0 = braid.concat %x, %x {dim = 1 : i64} : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x512xf32>
  %1 = braid.reshape %0 : (tensor<128x512xf32>) -> tensor<65536xf32>
  func.return %1 : tensor<65536xf32>
}

// Both operands are large: few parts of both dims, not many of one.
// CHECK-LABEL: func.func @both
// CHECK: braid.matmul {{.*}}braid.split = array<i64: 4, 2>
func.func @both(%a: tensor<64x1024xf32>, %b: tensor<1024x64xf32>) -> tensor<64x64xf32> {
  %0 = braid.matmul %a, %b : (tensor<64x1024xf32>, tensor<1024x64xf32>) -> tensor<64x64xf32>
  func.return %0 : tensor<64x64xf32>
}

// A reader of parts, also in another shape, is split into them, or into several put together.
// CHECK-LABEL: func.func @readers
// CHECK: braid.matmul {{.*}}braid.split = array<i64: 1, 6>
// CHECK: braid.exp {{.*}}braid.split = array<i64: 1, 1, 2>
// CHECK: braid.neg {{.*}}braid.split = array<i64: 1, 2, 1>
func.func @readers(%a: tensor<64x192xf32>, %b: tensor<192x768xf32>) -> (tensor<1x64x768xf32>, tensor<64x12x64xf32>) {
  %0 = braid.matmul %a, %b : (tensor<64x192xf32>, tensor<192x768xf32>) -> tensor<64x768xf32>
  %1 = braid.reshape %0 : (tensor<64x768xf32>) -> tensor<1x64x768xf32>
  %2 = braid.exp %1 : (tensor<1x64x768xf32>) -> tensor<1x64x768xf32>
  %3 = braid.reshape %0 : (tensor<64x768xf32>) -> tensor<64x12x64xf32>
  %4 = braid.neg %3 : (tensor<64x12x64xf32>) -> tensor<64x12x64xf32>
  func.return %2, %4 : tensor<1x64x768xf32>, tensor<64x12x64xf32>
}
