// RUN: %braid-opt %s -p apply-convolution-groups | filecheck %s

// Merged groups read the channels of all, with zero weights for the channels of other groups.
// CHECK-LABEL: @main
// CHECK:         %[[A:.*]] = braid.reshape %w {{.*}}: (tensor<12x2x3x3xi8>) -> tensor<2x2x3x2x3x3xi8>
// CHECK-NEXT:    %[[F:.*]] = braid.slice %[[A]] {{{.*}}offsets = array<i64: 0, 0, 0, 0, 0, 0>
// CHECK-NEXT:    %[[P:.*]] = braid.pad %[[F]] {{{.*}}low = array<i64: 0, 0, 0, 0, 0, 0>, high = array<i64: 0, 0, 0, 2, 0, 0>
// CHECK-NEXT:    %[[S:.*]] = braid.slice %[[A]] {{{.*}}offsets = array<i64: 0, 1, 0, 0, 0, 0>
// CHECK-NEXT:    %[[Q:.*]] = braid.pad %[[S]] {{{.*}}low = array<i64: 0, 0, 0, 2, 0, 0>, high = array<i64: 0, 0, 0, 0, 0, 0>
// CHECK-NEXT:    %[[C:.*]] = braid.concat %[[P]], %[[Q]] {{{.*}}dim = 1
// CHECK-NEXT:    %[[M:.*]] = braid.reshape %[[C]] {{.*}}-> tensor<12x4x3x3xi8>
// CHECK-NEXT:    braid.conv %x, %[[M]] {{.*}}groups = 2 : i64{{.*}}braid.name = "c"}
// CHECK-NOT:     merged_groups
func.func @main(%x: tensor<1x8x5x5xui8>) -> tensor<1x12x3x3xi32> {
  %w = braid.parameter {key = "w"} : tensor<12x2x3x3xi8>
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 4 : i64, accumulator = i32, braid.merged_groups = 2 : i64, braid.name = "c"} : (tensor<1x8x5x5xui8>, tensor<12x2x3x3xi8>) -> tensor<1x12x3x3xi32>
  func.return %0 : tensor<1x12x3x3xi32>
}
