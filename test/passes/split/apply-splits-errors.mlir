// RUN: %braid-opt %s -p apply-splits --split-input-file --verify-diagnostics

func.func @reduced(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{braid.split splits dim 1; expected one of [0]}}
  %0 = braid.softmax %x {dim = 1 : i64, braid.split = array<i64: 1, 2>} : (tensor<2x6xf32>) -> tensor<2x6xf32>
  func.return %0 : tensor<2x6xf32>
}

// -----

func.func @many(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{braid.split splits dim 0 into 3 parts, expected 1 to 2}}
  %0 = braid.exp %x {braid.split = array<i64: 3, 1>} : (tensor<2x6xf32>) -> tensor<2x6xf32>
  func.return %0 : tensor<2x6xf32>
}

// -----

func.func @form(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  // expected-error @+1 {{braid.split is 2 : i64, expected array<i64>}}
  %0 = braid.exp %x {braid.split = 2 : i64} : (tensor<2x6xf32>) -> tensor<2x6xf32>
  func.return %0 : tensor<2x6xf32>
}
