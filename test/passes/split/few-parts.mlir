// One dim alone would do, but a part would have one of 1000 channels beside the whole image, which
// all of them read: two dims make thirty parts.
// RUN: %braid-opt %s -p 'select-splits{memory=349525}' --remarks 2>&1 | filecheck %s
// CHECK: 15 along dim 1 x 2 along dim 2
func.func @main(%x: tensor<1x512x13x13xf32>, %w: tensor<1000x512x1x1xf32>) -> tensor<1x1000x13x13xf32> {
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x512x13x13xf32>, tensor<1000x512x1x1xf32>) -> tensor<1x1000x13x13xf32>
  func.return %0 : tensor<1x1000x13x13xf32>
}
