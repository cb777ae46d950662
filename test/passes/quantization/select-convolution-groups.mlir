// RUN: sed s/CPU/znver4/ %s | %braid-opt -p select-convolution-groups --remarks 2>&1 | filecheck %s
// RUN: sed s/CPU/haswell/ %s | %braid-opt -p select-convolution-groups --remarks 2>&1 | filecheck %s --check-prefix=AVX2

// Groups of whole steps, and of vectors with masks, are fast without merging; groups of five
// channels are not. Earlier decisions are dropped. Depthwise convolutions, float ones, those with
// unknown weights, and a single group stay.
// CHECK:       [select-convolution-groups] groups of 1 of 2 convolutions are merged
// CHECK-LABEL: @main
// CHECK:       braid.conv %x, %w {{.*}}accumulator = i32} :
// CHECK-NEXT:  braid.conv %y, %v {{.*}}braid.merged_groups = {{2|4|8}} : i64
// CHECK-NOT:   merged_groups

// AVX2:       [select-convolution-groups] groups of 2 of 2 convolutions are merged
// AVX2:       braid.conv %x, %w {{.*}}braid.merged_groups
// AVX2:       braid.conv %y, %v {{.*}}braid.merged_groups
// AVX2-NOT:   merged_groups
module attributes {braid.target = #braid.target<"host", {cpu = "CPU"}>} {
func.func @main(%x: tensor<1x80x14x14xui8>, %y: tensor<1x40x14x14xui8>, %z: tensor<40x5x3x3xi8>, %f: tensor<1x40x14x14xf32>) -> (tensor<1x80x12x12xi32>, tensor<1x40x12x12xi32>, tensor<1x40x12x12xi32>, tensor<1x40x12x12xi32>, tensor<1x40x12x12xf32>, tensor<1x40x12x12xi32>) {
  %w = braid.parameter {key = "w"} : tensor<80x20x3x3xi8>
  %v = braid.parameter {key = "v"} : tensor<40x5x3x3xi8>
  %d = braid.parameter {key = "d"} : tensor<40x1x3x3xi8>
  %g = braid.parameter {key = "g"} : tensor<40x5x3x3xf32>
  %o = braid.parameter {key = "o"} : tensor<40x40x3x3xi8>
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 4 : i64, accumulator = i32, braid.merged_groups = 2 : i64} : (tensor<1x80x14x14xui8>, tensor<80x20x3x3xi8>) -> tensor<1x80x12x12xi32>
  %1 = braid.conv %y, %v {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 8 : i64, accumulator = i32} : (tensor<1x40x14x14xui8>, tensor<40x5x3x3xi8>) -> tensor<1x40x12x12xi32>
  %2 = braid.conv %y, %z {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 8 : i64, accumulator = i32} : (tensor<1x40x14x14xui8>, tensor<40x5x3x3xi8>) -> tensor<1x40x12x12xi32>
  %3 = braid.conv %y, %d {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 40 : i64, accumulator = i32} : (tensor<1x40x14x14xui8>, tensor<40x1x3x3xi8>) -> tensor<1x40x12x12xi32>
  %4 = braid.conv %f, %g {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 8 : i64} : (tensor<1x40x14x14xf32>, tensor<40x5x3x3xf32>) -> tensor<1x40x12x12xf32>
  %5 = braid.conv %y, %o {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64, accumulator = i32} : (tensor<1x40x14x14xui8>, tensor<40x40x3x3xi8>) -> tensor<1x40x12x12xi32>
  func.return %0, %1, %2, %3, %4, %5 : tensor<1x80x12x12xi32>, tensor<1x40x12x12xi32>, tensor<1x40x12x12xi32>, tensor<1x40x12x12xi32>, tensor<1x40x12x12xf32>, tensor<1x40x12x12xi32>
}
}
