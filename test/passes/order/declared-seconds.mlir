// Seconds are those that are declared, as a plain number or by name, however short they are.
// RUN: %braid-opt %s -p 'search-order{objective=latency target=npu-small}' --remarks 2>&1 | filecheck %s
// RUN: %braid-opt %s -p 'lower-to-instructions{target=npu-small function=small output=%t.txt}' -o %t.mlir
// RUN: %braid simulate %t.txt --target npu-small | filecheck %s --check-prefix=SIMULATED
// SIMULATED: total 0.00
// CHECK: 2 ops, before 1e-05, cost 1e-05 s
func.func @seconds(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.opaque "a"(%x) {cost = {seconds = 5.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = braid.opaque "b"(%0) {cost = 5.0e-6 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// CHECK: 2 ops, before 2e-09, cost 2e-09 s
func.func @small(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.opaque "a"(%x) {cost = {vector = 1.0e-9 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = braid.opaque "b"(%0) {cost = {vector = 1.0e-9 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// Beside seconds, other resources may be declared.
// CHECK: 2 ops, before 3e-06, cost 3e-06 s
func.func @energy(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.opaque "a"(%x) {cost = {seconds = 1.0e-6 : f64, energy = 5.0 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = braid.opaque "b"(%0) {cost = {matrix = 2.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
