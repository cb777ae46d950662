// RUN: %braid-opt %s -p apply-splits | filecheck %s

// CHECK-LABEL: func.func @images
// CHECK-NEXT:    %[[A:.*]] = braid.slice %x {offsets = array<i64: 0, 0, 0, 0>, sizes = array<i64: 5, 100, 9, 9>
// CHECK-NEXT:    %[[B:.*]] = braid.conv %[[A]], %w {{.*}} -> tensor<5x2x9x9xf32>
// CHECK-NEXT:    %[[C:.*]] = braid.slice %x {offsets = array<i64: 5, 0, 0, 0>, sizes = array<i64: 5, 100, 9, 9>
// CHECK-NEXT:    %[[D:.*]] = braid.conv %[[C]], %w {{.*}} -> tensor<5x2x9x9xf32>
// CHECK-NEXT:    braid.concat %[[B]], %[[D]] {dim = 0 : i64}
func.func @images(%x: tensor<10x100x9x9xf32>, %w: tensor<2x100x1x1xf32>) -> tensor<10x2x9x9xf32> {
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64, braid.split = array<i64: 2, 1, 1, 1>, braid.name = "conv1"} : (tensor<10x100x9x9xf32>, tensor<2x100x1x1xf32>) -> tensor<10x2x9x9xf32>
  func.return %0 : tensor<10x2x9x9xf32>
}

// Each part of a depthwise convolution has its own groups and input channels.
// CHECK-LABEL: func.func @depthwise
// CHECK-NEXT:    braid.slice %x {offsets = array<i64: 0, 0, 0, 0>, sizes = array<i64: 1, 2, 4, 4>
// CHECK-NEXT:    braid.slice %w {offsets = array<i64: 0, 0, 0, 0>, sizes = array<i64: 4, 1, 1, 1>
// CHECK-NEXT:    braid.conv {{.*}}groups = 2 : i64{{.*}} -> tensor<1x4x4x4xf32>
// CHECK-NEXT:    braid.slice %x {offsets = array<i64: 0, 2, 0, 0>, sizes = array<i64: 1, 1, 4, 4>
// CHECK:         braid.conv {{.*}}groups = 1 : i64{{.*}} -> tensor<1x2x4x4xf32>
func.func @depthwise(%x: tensor<1x3x4x4xf32>, %w: tensor<6x1x1x1xf32>) -> tensor<1x6x4x4xf32> {
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 3 : i64, braid.split = array<i64: 1, 2, 1, 1>} : (tensor<1x3x4x4xf32>, tensor<6x1x1x1xf32>) -> tensor<1x6x4x4xf32>
  func.return %0 : tensor<1x6x4x4xf32>
}

// Rows 0 to 3 need the input's rows 0 to 4, of which the window's first lies in the padding.
// CHECK-LABEL: func.func @halo
// CHECK-NEXT:    braid.slice %x {offsets = array<i64: 0, 0, 0, 0>, sizes = array<i64: 1, 1, 5, 8>
// CHECK-NEXT:    braid.conv {{.*}}pad_low = array<i64: 1, 1>, pad_high = array<i64: 0, 1>{{.*}} -> tensor<1x1x4x8xf32>
// CHECK-NEXT:    braid.slice %x {offsets = array<i64: 0, 0, 3, 0>, sizes = array<i64: 1, 1, 5, 8>
// CHECK-NEXT:    braid.conv {{.*}}pad_low = array<i64: 0, 1>, pad_high = array<i64: 1, 1>{{.*}} -> tensor<1x1x4x8xf32>
// CHECK-NEXT:    braid.concat {{.*}}dim = 2 : i64
func.func @halo(%x: tensor<1x1x8x8xf32>, %w: tensor<1x1x3x3xf32>) -> tensor<1x1x8x8xf32> {
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>, groups = 1 : i64, braid.split = array<i64: 1, 1, 2, 1>} : (tensor<1x1x8x8xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x8x8xf32>
  func.return %0 : tensor<1x1x8x8xf32>
}

// Parts flow from one op to the next: nothing is joined between them.
// CHECK-LABEL: func.func @aligned
// CHECK-NOT:     braid.concat
// CHECK:         braid.exp %{{.*}} -> tensor<2x3xf32>
// CHECK-NEXT:    braid.slice
// CHECK-NEXT:    braid.exp %{{.*}} -> tensor<2x3xf32>
// CHECK-NEXT:    braid.neg
// CHECK-NEXT:    braid.neg
// CHECK-NEXT:    braid.concat
func.func @aligned(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %0 = braid.exp %x {braid.split = array<i64: 2, 1>} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = braid.neg %0 {braid.split = array<i64: 2, 1>} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return %1 : tensor<4x3xf32>
}

// Parts of a reduced dim are accumulated.
// CHECK-LABEL: func.func @accumulate
// CHECK:         %[[A:.*]] = braid.matmul {{.*}}(tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
// CHECK:         %[[B:.*]] = braid.matmul {{.*}}(tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
// CHECK-NEXT:    braid.add %[[A]], %[[B]]
func.func @accumulate(%a: tensor<2x5xf32>, %b: tensor<5x2xf32>) -> tensor<2x2xf32> {
  %0 = braid.matmul %a, %b {braid.split = array<i64: 1, 1, 2>} : (tensor<2x5xf32>, tensor<5x2xf32>) -> tensor<2x2xf32>
  func.return %0 : tensor<2x2xf32>
}

// A decision of one part only is removed.
// CHECK-LABEL: func.func @one
// CHECK-NEXT:    braid.exp %x :
func.func @one(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.exp %x {braid.split = array<i64: 1>} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// Also through a reshape: a half of the rows is the first of two pieces.
// CHECK-LABEL: func.func @reshaped
// CHECK:         %[[A:.*]] = braid.exp %{{.*}} -> tensor<2x6xf32>
// CHECK:         %[[B:.*]] = braid.exp %{{.*}} -> tensor<2x6xf32>
// CHECK-NEXT:    %[[C:.*]] = braid.reshape %[[A]] : (tensor<2x6xf32>) -> tensor<1x2x2x3xf32>
// CHECK-NEXT:    braid.neg %[[C]]
// CHECK-NEXT:    %[[D:.*]] = braid.reshape %[[B]] : (tensor<2x6xf32>) -> tensor<1x2x2x3xf32>
// CHECK-NEXT:    braid.neg %[[D]]
// CHECK-NEXT:    braid.concat {{.*}}dim = 1 : i64
func.func @reshaped(%x: tensor<4x6xf32>) -> tensor<1x4x2x3xf32> {
  %0 = braid.exp %x {braid.split = array<i64: 2, 1>} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = braid.reshape %0 : (tensor<4x6xf32>) -> tensor<1x4x2x3xf32>
  %2 = braid.neg %1 {braid.split = array<i64: 1, 2, 1, 1>} : (tensor<1x4x2x3xf32>) -> tensor<1x4x2x3xf32>
  func.return %2 : tensor<1x4x2x3xf32>
}

// Parts are stored as the whole is.
// CHECK-LABEL: func.func @layout
// CHECK:         braid.slice %x {{.*}} -> tensor<4x3xf32, #braid.layout<"ba">>
// CHECK:         braid.exp {{.*}} -> tensor<4x3xf32, #braid.layout<"ba">>
// CHECK:         braid.concat {{.*}} -> tensor<4x6xf32, #braid.layout<"ba">>
func.func @layout(%x: tensor<4x6xf32, #braid.layout<"ba">>) -> tensor<4x6xf32, #braid.layout<"ba">> {
  %0 = braid.exp %x {braid.split = array<i64: 1, 2>} : (tensor<4x6xf32, #braid.layout<"ba">>) -> tensor<4x6xf32, #braid.layout<"ba">>
  func.return %0 : tensor<4x6xf32, #braid.layout<"ba">>
}

// A group is split as a whole, whatever was decided for its ops before fusion.
// CHECK-LABEL: func.func @group_of_a_split_op
// CHECK-COUNT-2: braid.fused
// CHECK-NOT:     braid.split
func.func @group_of_a_split_op(%x: tensor<8x9xf32>) -> tensor<8x9xf32> {
  %y = braid.fused(%x) {braid.split = array<i64: 2, 1>} : (tensor<8x9xf32>) -> tensor<8x9xf32> {
  ^bb0(%p: tensor<8x9xf32>):
    %e = braid.exp %p {braid.split = array<i64: 4, 1>} : (tensor<8x9xf32>) -> tensor<8x9xf32>
    braid.yield %e : tensor<8x9xf32>
  }
  func.return %y : tensor<8x9xf32>
}
