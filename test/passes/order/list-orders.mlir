// All orders of a subgraph with their values, best first.
// RUN: %braid-opt %s -p 'search-order{objective=latency target=%S/Inputs/chip.toml list-orders=9}' --remarks 2>&1 | filecheck %s
// RUN: %braid-opt %s -p 'search-order{list-orders=1}' --remarks 2>&1 | filecheck %s --check-prefix=MEMORY
// RUN: not %braid-opt %s -p 'search-order{list-orders=-1}' 2>&1 | filecheck %s --check-prefix=ERROR
// The matrix unit works while "r" does, or after it.
// CHECK: subgraph 0, order 0: 7e-06 s: fork#0 l#2
// CHECK: subgraph 0, order 1: 7e-06 s: fork#0 l#2
// CHECK: subgraph 0, order 2: 9e-06 s: fork#0 r#1 l#2 after#3 join#4
// CHECK-NOT: order 3
// MEMORY: subgraph 0, order 0: 48 bytes:
// MEMORY-NOT: order 1
// ERROR: error: {{.*}}list-orders is -1, expected no negative number
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.opaque "fork"(%x) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = braid.opaque "r"(%0) {cost = {vector = 2.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = braid.opaque "l"(%0) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = braid.opaque "after"(%2) {cost = {matrix = 3.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %4 = braid.opaque "join"(%1, %3) {cost = {vector = 2.0e-6 : f64}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %4 : tensor<4xf32>
}
