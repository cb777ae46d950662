// RUN: not %braid-opt %s -p 'search-order{objective=size}' 2>&1 | filecheck %s --check-prefix=OBJECTIVE
// RUN: not %braid-opt %s -p 'search-order{key-nodes-per-subgraph=0}' 2>&1 | filecheck %s --check-prefix=KEY
// RUN: not %braid-opt %s -p search-order 2>&1 | filecheck %s

// OBJECTIVE: error: option 'objective' of pass 'search-order' is 'size', expected <memory | latency>
// KEY: key-nodes-per-subgraph is 0, expected at least 1
// CHECK: search-order-errors.mlir:[[# @LINE + 3]]:{{.*}}: error: 'braid.opaque' has an open dim
// CHECK: hint: give the shapes of the inputs
func.func @open(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = braid.opaque "a"(%x) : (tensor<?xf32>) -> tensor<?xf32>
  %1 = braid.opaque "b"(%0) : (tensor<?xf32>) -> tensor<?xf32>
  func.return %1 : tensor<?xf32>
}
