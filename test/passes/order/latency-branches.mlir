// The condition of a branch is the host's, and has no shape.
// RUN: %braid-opt %s -p 'search-order{objective=latency target=npu-small}' --remarks 2>&1 | filecheck %s
// CHECK: 2 ops, before 5e-06, cost 5e-06 s
func.func @main(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %b = arith.cmpi eq, %n, %zero : index
  %0 = scf.if %b -> (tensor<4xf32>) {
    %1 = braid.opaque "a"(%x) {cost = {vector = 5.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    %1 = braid.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  func.return %0 : tensor<4xf32>
}
