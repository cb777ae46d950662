// RUN: %braid-opt %s --split-input-file --verify-diagnostics -p apply-rematerialization

func.func @no_member(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{the decision to recompute is malformed: set 0 lacks members}}
  %1 = braid.neg %0 {braid.recompute_operands = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// -----

func.func @wrong_member(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.exp %x {braid.recompute_sets = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = braid.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{set 0 does not have the op that makes operand 0}}
  %2 = braid.neg %1 {braid.recompute_operands = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}

// -----

// expected-error@+1 {{braid.order is malformed: 'braid.neg' runs before 'braid.exp', which it reads}}
func.func @early(%x: tensor<4xf32>) -> tensor<4xf32> attributes {braid.order = [array<i64: 1, 0>]} {
  %0 = braid.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  // expected-note@+1 {{this op}}
  %1 = braid.neg %0 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// -----

// expected-error@+1 {{'func.call' runs twice but cannot be recomputed}}
func.func @effect(%x: tensor<4xf32>) -> tensor<4xf32> attributes {braid.order = [array<i64: 0, 0>]} {
  // expected-note@+1 {{this op}}
  %0 = func.call @random(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @random(tensor<4xf32>) -> tensor<4xf32>
