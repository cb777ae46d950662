// RUN: %braid-opt %s --split-input-file --verify-diagnostics -p split-phases

func.func @main(%c: tensor<1xi64>, %q: tensor<i1>) -> tensor<1xi64> {
  %p = tensor.extract %q[] : tensor<i1>
  %r = scf.if %p -> (tensor<1xi64>) {
    // expected-error @below {{data decide a size inside of control flow}}
    braid.decide_sizes %c {sizes = #braid.sizes<["n"]>} : tensor<1xi64>
    scf.yield %c : tensor<1xi64>
  } else {
    scf.yield %c : tensor<1xi64>
  }
  return %r : tensor<1xi64>
}

// -----

func.func @main(%c: tensor<1xi64>) -> tensor<1xi64> {
  // expected-error @below {{'braid.size_values' op has size 'n', which is decided after it}}
  %n = braid.size_values {values = #braid.sizes<["n"]>} : tensor<1xi64>
  braid.decide_sizes %c {sizes = #braid.sizes<["n"]>} : tensor<1xi64>
  return %n : tensor<1xi64>
}

// -----

func.func @main(%c: tensor<1xi64>, %d: tensor<1xi64>) -> tensor<1xi64> {
  braid.decide_sizes %c {sizes = #braid.sizes<["n"]>} : tensor<1xi64>
  // expected-error @below {{size 'n' is decided twice}}
  braid.decide_sizes %d {sizes = #braid.sizes<["n"]>} : tensor<1xi64>
  return %c : tensor<1xi64>
}

// -----

func.func @main(%c: tensor<2xi64>) -> tensor<2xi64> {
  // expected-error @below {{expected a symbol for each element of tensor<2xi64>, all different}}
  braid.decide_sizes %c {sizes = #braid.sizes<["n", "n"]>} : tensor<2xi64>
  return %c : tensor<2xi64>
}

// -----

func.func @main(%c: tensor<1xf32>) -> tensor<1xf32> {
  // expected-error @below {{operand has type tensor<1xf32>, expected a fixed shape of i32 or i64}}
  braid.decide_sizes %c {sizes = #braid.sizes<["n"]>} : tensor<1xf32>
  return %c : tensor<1xf32>
}

// -----

func.func @main(%x: tensor<?xf32, #braid.sizes<["n"]>>, %c: tensor<1xi64>) -> tensor<1xi64> {
  // expected-error @below {{size 'n' is decided, and is one of an input}}
  braid.decide_sizes %c {sizes = #braid.sizes<["n"]>} : tensor<1xi64>
  return %c : tensor<1xi64>
}

// -----

func.func @main(%c: tensor<1xi64>) -> tensor<1xi64> {
  braid.decide_sizes %c {sizes = #braid.sizes<["n"]>} : tensor<1xi64>
  // expected-error @below {{the elements of a tensor are decided twice}}
  braid.decide_sizes %c {sizes = #braid.sizes<["m"]>} : tensor<1xi64>
  return %c : tensor<1xi64>
}

// -----

// expected-error @below {{data decide sizes in a function with an argument of type i1}}
func.func @main(%p: i1, %c: tensor<1xi64>) -> tensor<1xi64> {
  braid.decide_sizes %c {sizes = #braid.sizes<["n"]>} : tensor<1xi64>
  return %c : tensor<1xi64>
}

// -----

// expected-error @below {{data decide sizes in a function of several blocks}}
func.func @main(%c: tensor<1xi64>) -> tensor<1xi64> {
  braid.decide_sizes %c {sizes = #braid.sizes<["n"]>} : tensor<1xi64>
  cf.br ^bb1
^bb1:
  return %c : tensor<1xi64>
}

// -----

func.func @main(%c: tensor<1xi64> {braid.value_sizes = #braid.sizes<["m"]>}) -> tensor<1xi64> {
  // expected-error @below {{the elements of a tensor are decided twice}}
  braid.decide_sizes %c {sizes = #braid.sizes<["n"]>} : tensor<1xi64>
  return %c : tensor<1xi64>
}
