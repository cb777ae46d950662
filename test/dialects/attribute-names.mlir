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
