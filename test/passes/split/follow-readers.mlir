// RUN: %braid-opt %s -p 'select-splits{memory=200KiB follow-readers}' | filecheck %s
// RUN: %braid-opt %s -p 'select-splits{memory=200KiB}' | filecheck %s --check-prefix=DEFAULT

// Channels are the outermost of all its dims, but its reader needs all channels.
// CHECK-LABEL: func.func @read_by_rows
// DEFAULT-LABEL: func.func @read_by_rows
// CHECK: braid.exp {{.*}}braid.split = array<i64: 1, 1, 3, 1>
// DEFAULT: braid.exp {{.*}}braid.split = array<i64: 1, 3, 1, 1>
// CHECK: braid.conv {{.*}}braid.split = array<i64: 1, 1, 3, 1>
func.func @read_by_rows(%x: tensor<1x64x32x32xf32>, %w: tensor<64x64x1x1xf32>) -> tensor<1x64x32x32xf32> {
  %0 = braid.exp %x : (tensor<1x64x32x32xf32>) -> tensor<1x64x32x32xf32>
  %1 = braid.conv %0, %w {groups = 1 : i64, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>} : (tensor<1x64x32x32xf32>, tensor<64x64x1x1xf32>) -> tensor<1x64x32x32xf32>
  func.return %1 : tensor<1x64x32x32xf32>
}

// If pieces are cut equally, the whole is cut in the same way.
// CHECK-LABEL: func.func @joined
// DEFAULT-LABEL: func.func @joined
// CHECK: braid.exp {{.*}}braid.split = array<i64: 1, 3>
// CHECK: braid.softmax {{.*}}braid.split = array<i64: 1, 6>
func.func @joined(%a: tensor<1x65536xf32>, %b: tensor<1x65536xf32>) -> tensor<2x65536xf32> {
  %0 = braid.exp %a : (tensor<1x65536xf32>) -> tensor<1x65536xf32>
  %1 = braid.abs %b : (tensor<1x65536xf32>) -> tensor<1x65536xf32>
  %2 = braid.concat %0, %1 {dim = 0 : i64} : (tensor<1x65536xf32>, tensor<1x65536xf32>) -> tensor<2x65536xf32>
  %3 = braid.softmax %2 {dim = 0 : i64} : (tensor<2x65536xf32>) -> tensor<2x65536xf32>
  func.return %3 : tensor<2x65536xf32>
}
