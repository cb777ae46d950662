// RUN: %braid-opt %s -p 'select-splits{memory=1KiB}' --split-input-file --verify-diagnostics
// RUN: not %braid-opt %s -p 'select-splits{memory=lots}' 2>&1 | filecheck %s
// CHECK: error: option 'memory': 'lots' is not a size

func.func @one_sum(%x: tensor<512xf32>) -> tensor<1xf32> {
  // expected-error @+1 {{'braid.reduce' uses 2 KiB (2052 bytes) and cannot be split to fit 1 KiB (1024 bytes)}}
  %0 = braid.reduce %x {kind = "add", dims = array<i64: 0>} : (tensor<512xf32>) -> tensor<1xf32>
  func.return %0 : tensor<1xf32>
}

// -----

func.func @softmax(%x: tensor<1x512xf32>) -> tensor<1x512xf32> {
  // expected-error @+1 {{'braid.softmax' uses}}
  %0 = braid.softmax %x {dim = 1 : i64} : (tensor<1x512xf32>) -> tensor<1x512xf32>
  func.return %0 : tensor<1x512xf32>
}

// -----

func.func @opaque(%x: tensor<512xf32>) -> tensor<512xf32> {
  // expected-error @+1 {{'braid.opaque' uses}}
  %0 = braid.opaque "op"(%x) : (tensor<512xf32>) -> tensor<512xf32>
  func.return %0 : tensor<512xf32>
}

// -----

func.func @window(%x: tensor<1x1x16x16xf32>, %w: tensor<1x1x16x16xf32>) -> tensor<1x1x1x1xf32> {
  // expected-error @+1 {{'braid.conv' uses}}
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x1x16x16xf32>, tensor<1x1x16x16xf32>) -> tensor<1x1x1x1xf32>
  func.return %0 : tensor<1x1x1x1xf32>
}
