// RUN: %braid-opt %s -p apply-order --split-input-file --verify-diagnostics

// expected-error @+1 {{braid.order is [0, 0], expected each of the 2 positions once}}
func.func @incomplete(%x: tensor<4xf32>) -> tensor<4xf32> attributes {braid.order = [array<i64: 0, 0>]} {
  %0 = braid.opaque "a"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = braid.opaque "b"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// -----

// expected-error @+1 {{braid.order puts 'braid.opaque' before 'braid.opaque', which makes its operand}}
func.func @dominance(%x: tensor<4xf32>) -> tensor<4xf32> attributes {braid.order = [array<i64: 1, 0>]} {
  %0 = braid.opaque "a"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // expected-note @+1 {{the op that would run too early}}
  %1 = braid.opaque "b"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// -----

// expected-error @+1 {{braid.order is not an array of one array<i64> for each of 1 blocks}}
func.func @malformed(%x: tensor<4xf32>) -> tensor<4xf32> attributes {braid.order = array<i64: 0>} {
  %0 = braid.opaque "a"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// -----

func.func private @effect()

// expected-error @+1 {{braid.order puts 'func.call' before 'func.call'; both have side effects}}
func.func @effects() attributes {braid.order = [array<i64: 1, 0>]} {
  func.call @effect() {first} : () -> ()
  func.call @effect() {second} : () -> ()
  func.return
}
