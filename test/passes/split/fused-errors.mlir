// RUN: %braid-opt %s -p 'select-splits{memory=1000}' --verify-diagnostics

// No dim is left that both members can be cut along.
func.func @both(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  // expected-error@+1 {{'braid.fused' uses 2 KiB (2048 bytes) and cannot be split to fit 1000 B (1000 bytes)}}
  %0 = braid.fused(%x) : (tensor<16x16xf32>) -> tensor<16x16xf32> {
  ^bb0(%a: tensor<16x16xf32>):
    %1 = braid.softmax %a {dim = 0 : i64} : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %2 = braid.softmax %1 {dim = 1 : i64} : (tensor<16x16xf32>) -> tensor<16x16xf32>
    braid.yield %2 : tensor<16x16xf32>
  }
  func.return %0 : tensor<16x16xf32>
}
