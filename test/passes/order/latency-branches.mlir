// The condition of a branch is the host's, and has no shape. Ops in control flow count as often as
// they are expected to run.
// RUN: %braid-opt %s -p 'search-order{objective=latency target=%S/Inputs/chip.toml}' --remarks 2>&1 | filecheck %s
// 0.9 * 5 us + 0.1 * 1 us
// CHECK: 2 ops, before 4.6e-06, cost 4.6e-06 s, lower bound 4.6e-06 s
func.func @main(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %b = arith.cmpi eq, %n, %zero : index
  %0 = scf.if %b -> (tensor<4xf32>) {
    %1 = braid.opaque "a"(%x) {cost = {vector = 5.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    %1 = braid.opaque "b"(%x) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } {braid.branch_probability = 0.9 : f64}
  func.return %0 : tensor<4xf32>
}

// Seven iterations of 2 us, and 3 us behind them.
// CHECK: 2 ops, before 1.7e-05, cost 1.7e-05 s, lower bound 1.7e-05 s
func.func @loop(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %seven = arith.constant 7 : index
  %0 = scf.for %i = %zero to %seven step %one iter_args(%y = %x) -> (tensor<4xf32>) {
    %1 = braid.opaque "a"(%y) {cost = {vector = 2.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  %2 = braid.opaque "b"(%0) {cost = {vector = 3.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}
