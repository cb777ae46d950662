// RUN: %braid-opt %s -p split-concats --remarks -o %t.mlir 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: filecheck %s --input-file %t.mlir
// RUN: %braid-opt %s -p 'split-concats,hoist-parameter-expressions' | filecheck %s --check-prefix=HOIST

// The whole of 4 channels never exists; each part is read by a separate convolution.
// CHECK-LABEL: func.func @sum
// CHECK-NOT:     braid.concat
// CHECK:         %[[W0:.*]] = braid.slice %w {offsets = array<i64: 0, 0, 0, 0>, sizes = array<i64: 1, 1, 3, 3>
// CHECK-NEXT:    %[[P0:.*]] = braid.conv %a, %[[W0]] {{.*}}"c/part0"
// CHECK-NEXT:    %[[W1:.*]] = braid.slice %w {offsets = array<i64: 0, 1, 0, 0>, sizes = array<i64: 1, 3, 3, 3>
// CHECK-NEXT:    %[[P1:.*]] = braid.conv %b, %[[W1]] {{.*}}"c/part1"
// CHECK-NEXT:    %[[S:.*]] = braid.add %[[P1]], %[[P0]] {braid.name = "c/sum1"}
// CHECK-NEXT:    braid.opaque "last"(%[[S]])
// HOIST-LABEL: func.func @sum
// HOIST:         braid.parameter {key = "prepared/1"} : tensor<1x3x3x3xf32>
// HOIST-NEXT:    braid.parameter {key = "prepared/0"} : tensor<1x1x3x3xf32>
func.func @sum(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = braid.parameter {key = "w"} : tensor<1x4x3x3xf32>
  %a = braid.opaque "a"(%x) : (tensor<4xf32>) -> tensor<1x1x8x8xf32>
  %b = braid.opaque "b"(%x) : (tensor<4xf32>) -> tensor<1x3x8x8xf32>
  %c = braid.concat %a, %b {dim = 1 : i64} : (tensor<1x1x8x8xf32>, tensor<1x3x8x8xf32>) -> tensor<1x4x8x8xf32>
  %y = braid.conv %c, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>, groups = 1 : i64, braid.name = "c"} : (tensor<1x4x8x8xf32>, tensor<1x4x3x3xf32>) -> tensor<1x1x8x8xf32>
  %z = braid.opaque "last"(%y) : (tensor<1x1x8x8xf32>) -> tensor<4xf32>
  func.return %z : tensor<4xf32>
}

// What keeps channels apart is made for each part, with its own scales and filters; what is small
// is joined again.
// CHECK-LABEL: func.func @apart
// CHECK:         %[[S:.*]] = braid.slice %s {offsets = array<i64: 0, 2, 0, 0>, sizes = array<i64: 1, 2, 1, 1>
// CHECK-NEXT:    %[[M:.*]] = braid.mul %b, %[[S]]
// CHECK:         %[[F:.*]] = braid.slice %w {offsets = array<i64: 4, 0, 0, 0>, sizes = array<i64: 4, 1, 3, 3>
// CHECK-NEXT:    %[[D:.*]] = braid.conv %[[M]], %[[F]] {{.*}}groups = 2 : i64{{.*}} -> tensor<1x4x6x6xf32>
// CHECK:         %[[R:.*]] = braid.reduce %[[D]] {{.*}} -> tensor<1x4x1x1xf32>
// CHECK-NEXT:    %[[J:.*]] = braid.concat %{{.*}}, %[[R]] {dim = 1 : i64}
// CHECK-NEXT:    func.return %[[J]]
func.func @apart(%x: tensor<4xf32>) -> tensor<1x8x1x1xf32> {
  %s = braid.parameter {key = "s"} : tensor<1x4x1x1xf32>
  %w = braid.parameter {key = "filters"} : tensor<8x1x3x3xf32>
  %a = braid.opaque "a"(%x) : (tensor<4xf32>) -> tensor<1x2x8x8xf32>
  %b = braid.opaque "b"(%x) : (tensor<4xf32>) -> tensor<1x2x8x8xf32>
  %c = braid.concat %a, %b {dim = 1 : i64} : (tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x4x8x8xf32>
  %m = braid.mul %c, %s : (tensor<1x4x8x8xf32>, tensor<1x4x1x1xf32>) -> tensor<1x4x8x8xf32>
  %d = braid.conv %m, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 4 : i64} : (tensor<1x4x8x8xf32>, tensor<8x1x3x3xf32>) -> tensor<1x8x6x6xf32>
  %r = braid.reduce %d {kind = "add", dims = array<i64: 2, 3>} : (tensor<1x8x6x6xf32>) -> tensor<1x8x1x1xf32>
  func.return %r : tensor<1x8x1x1xf32>
}

// One reader needs the whole, so it also exists for the other one.
// CHECK-LABEL: func.func @needed
// CHECK:         %[[C:.*]] = braid.concat %a, %b
// CHECK:         braid.conv %[[C]], %w
func.func @needed(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = braid.parameter {key = "v"} : tensor<1x4x1x1xf32>
  %a = braid.opaque "a"(%x) : (tensor<4xf32>) -> tensor<1x2x8x8xf32>
  %b = braid.opaque "b"(%x) : (tensor<4xf32>) -> tensor<1x2x8x8xf32>
  %c = braid.concat %a, %b {dim = 1 : i64} : (tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x4x8x8xf32>
  %y = braid.conv %c, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x4x8x8xf32>, tensor<1x4x1x1xf32>) -> tensor<1x1x8x8xf32>
  %z = braid.opaque "last"(%y, %c) : (tensor<1x1x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<4xf32>
  func.return %z : tensor<4xf32>
}

// Partial sums of more channels than there are parts need more memory than the whole.
// CHECK-LABEL: func.func @wide
// CHECK:         braid.concat
// CHECK-NEXT:    braid.conv
// CHECK-NEXT:    braid.opaque
func.func @wide(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = braid.parameter {key = "u"} : tensor<32x2x1x1xf32>
  %a = braid.opaque "a"(%x) : (tensor<4xf32>) -> tensor<1x1x8x8xf32>
  %b = braid.opaque "b"(%x) : (tensor<4xf32>) -> tensor<1x1x8x8xf32>
  %c = braid.concat %a, %b {dim = 1 : i64} : (tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>) -> tensor<1x2x8x8xf32>
  %y = braid.conv %c, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x2x8x8xf32>, tensor<32x2x1x1xf32>) -> tensor<1x32x8x8xf32>
  %z = braid.opaque "last"(%y) : (tensor<1x32x8x8xf32>) -> tensor<4xf32>
  func.return %z : tensor<4xf32>
}

// REMARK-DAG: 1 of 1 concatenations split; least peak 1 KiB with all of them split, 2 KiB with none
// REMARK-DAG: 1 of 1 concatenations split; least peak 1.08 KiB with all of them split, 2.12 KiB with none
// REMARK-DAG: 0 of 1 concatenations split; least peak 16.2 KiB with all of them split, 8.5 KiB with none
