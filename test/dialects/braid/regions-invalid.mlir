// RUN: %braid-opt %s --split-input-file --verify-diagnostics

func.func @argument(%x: tensor<4xf32>) {
  // expected-error @+1 {{block argument 0 has type tensor<5xf32>, expected tensor<4xf32>}}
  %0 = braid.fused(%x) : (tensor<4xf32>) -> tensor<5xf32> {
  ^bb0(%a: tensor<5xf32>):
    braid.yield %a : tensor<5xf32>
  }
  func.return
}

// -----

func.func @yielded(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected 1 yielded values, got 2}}
  %0 = braid.fused(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    braid.yield %a, %a : tensor<4xf32>, tensor<4xf32>
  }
  func.return
}

// -----

func.func @terminator(%x: tensor<4xf32>) {
  // expected-error @+1 {{the body of braid.fused must end in braid.yield}}
  %0 = braid.fused(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    "test.termop"() : () -> ()
  }
  func.return
}

// -----

func.func @from_above(%x: tensor<4xf32>) {
  // expected-error @+1 {{using value defined out of its IsolatedFromAbove parent}}
  %0 = braid.fused(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %b = braid.add %a, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    braid.yield %b : tensor<4xf32>
  }
  func.return
}

// -----

func.func @constant() {
  // expected-error @+1 {{result 0 has type tensor<3xi64>, expected tensor<2xi64>}}
  %0 = braid.constant {value = dense<[1, 2]> : tensor<2xi64>} : tensor<3xi64>
  func.return
}
