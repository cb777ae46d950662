// Attributes of braid's namespace that mean nothing are errors: they would be ignored.
// RUN: %braid-opt %s --split-input-file --verify-diagnostics
func.func @main(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'scf.if' op has an attribute 'braid.branch_probabilty', which means nothing}}
  %0 = scf.if %c -> (tensor<4xf32>) {
    scf.yield %x : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  } {braid.branch_probabilty = 0.9 : f64}
  func.return %0 : tensor<4xf32>
}
// -----
// expected-error @+1 {{'func.func' op has an attribute 'braid.dim', which means nothing}}
func.func @main(%x: tensor<4xf32> {braid.dim = [""]}) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
// -----
// Other namespaces are other people's.
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {mine.name = "x", braid.name = "main"} {
  func.return %x : tensor<4xf32>
}
// -----
// Values of another kind are errors, too, and so are numbers that cannot be times.
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'braid.seconds' of 'braid.exp' op is -1.000000e+00 : f64, expected a finite number from 0 on}}
  %0 = braid.exp %x {braid.seconds = -1.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// -----
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'braid.seconds' of 'braid.exp' op is 0x7ff8000000000000 : f64, expected a finite number from 0 on}}
  %0 = braid.exp %x {braid.seconds = 0x7FF8000000000000 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// -----
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'braid.layout_seconds' of 'braid.exp' op is {"a->a" = 1 : i64}, expected a dictionary from layouts to seconds}}
  %0 = braid.exp %x {braid.layout_seconds = {"a->a" = 1 : i64}} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// -----
func.func @main(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'braid.profile_keys' of 'scf.if' op is {thne = "a"}, expected a dictionary of strings under condition, then, else, default, enter, next or the numbers of cases}}
  %0 = scf.if %c -> (tensor<4xf32>) {
    scf.yield %x : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  } {braid.profile_keys = {thne = "a"}}
  func.return %0 : tensor<4xf32>
}
