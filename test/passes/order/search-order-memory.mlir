// RUN: %braid-opt %s -p search-order --remarks -o %t.mlir 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: filecheck %s --input-file %t.mlir
// RUN: %braid-opt %s -p 'search-order{objective=memory time-limit=5 seed=3 key-nodes-per-subgraph=2 min-nodes=4}' | filecheck %s --check-prefix=OPTIONS

// relu and softmax are on every path; between them C(8, 4) = 70 orders. Running one branch to its
// end first keeps only its small result: the other branch's largest pair of tensors decides.
// CHECK-LABEL: func.func @two_branches
// CHECK-SAME:    braid.order = [array<i64: 0, 1, 3, 5, 7, 2, 4, 6, 8, 9>]
// CHECK-NEXT:    "relu"(%x) {braid.key_node}
// CHECK-NEXT:    "conv"(%0) :
// CHECK:         "softmax"(%7, %8) {braid.key_node}
// OPTIONS-LABEL: func.func @two_branches
// OPTIONS-SAME:    braid.order = [array<i64: 0, 1, 3, 5, 7, 2, 4, 6, 8, 9>]
func.func @two_branches(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.opaque "relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = braid.opaque "conv"(%0) : (tensor<4xf32>) -> tensor<400xf32>
  %2 = braid.opaque "conv"(%0) : (tensor<4xf32>) -> tensor<300xf32>
  %3 = braid.opaque "matmul"(%1) : (tensor<400xf32>) -> tensor<40xf32>
  %4 = braid.opaque "axpy"(%2) : (tensor<300xf32>) -> tensor<30xf32>
  %5 = braid.opaque "mean"(%3) : (tensor<40xf32>) -> tensor<20xf32>
  %6 = braid.opaque "sub"(%4) : (tensor<30xf32>) -> tensor<300xf32>
  %7 = braid.opaque "add"(%5) : (tensor<20xf32>) -> tensor<4xf32>
  %8 = braid.opaque "add"(%6) : (tensor<300xf32>) -> tensor<40xf32>
  %9 = braid.opaque "softmax"(%7, %8) : (tensor<4xf32>, tensor<40xf32>) -> tensor<4xf32>
  func.return %9 : tensor<4xf32>
}

// The two orders need the same memory.
// CHECK-LABEL: func.func @diamond
// CHECK-SAME:    braid.order = [array<i64: 0, 1, 2, 3>]
func.func @diamond(%x: tensor<8xf32>) -> tensor<2xf32> {
  %0 = braid.opaque "conv"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = braid.opaque "matmul"(%0) : (tensor<8xf32>) -> tensor<4xf32>
  %2 = braid.opaque "mean"(%0) : (tensor<8xf32>) -> tensor<2xf32>
  %3 = braid.opaque "softmax"(%1, %2) : (tensor<4xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %3 : tensor<2xf32>
}

// A view has no buffer of its own, declared bytes win over the type, and parameters stand first.
// CHECK-LABEL: func.func @buffers
// CHECK-SAME:    braid.order = [array<i64: 1, 0, 2, 3, 4>]
func.func @buffers(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = braid.opaque "a"(%x) {bytes = array<i64: 1000>} : (tensor<8xf32>) -> tensor<8xf32>
  %w = braid.parameter {key = "w"} : tensor<2x4xf32>
  %1 = braid.reshape %0 : (tensor<8xf32>) -> tensor<2x4xf32>
  %2 = braid.add %1, %w : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = braid.opaque "b"(%2) : (tensor<2x4xf32>) -> tensor<8xf32>
  func.return %3 : tensor<8xf32>
}

// Memory that a branch needs while it runs is added to the live bytes around it.
// CHECK-LABEL: func.func @branches
// CHECK:         scf.if
// CHECK:         {braid.order = [array<i64: 1, 2, 0, 3>, array<i64>]
func.func @branches(%c: i1, %x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = scf.if %c -> (tensor<8xf32>) {
    %1 = braid.opaque "keep"(%x) : (tensor<8xf32>) -> tensor<16xf32>
    %2 = braid.opaque "grow"(%x) : (tensor<8xf32>) -> tensor<64xf32>
    %3 = braid.opaque "shrink"(%2) : (tensor<64xf32>) -> tensor<2xf32>
    %4 = braid.opaque "join"(%1, %3) : (tensor<16xf32>, tensor<2xf32>) -> tensor<8xf32>
    scf.yield %4 : tensor<8xf32>
  } else {
    scf.yield %x : tensor<8xf32>
  }
  %5 = braid.opaque "last"(%0) : (tensor<8xf32>) -> tensor<8xf32>
  func.return %5 : tensor<8xf32>
}

// REMARK-DAG: subgraph 0: 10 ops, 70 orders, cost 1776 bytes, lower bound 1776 bytes, gap 0.0 %
// REMARK-DAG: 10 ops, before 2960, cost 1776 bytes, lower bound 1776 bytes, gap 0.0 %
// REMARK-DAG: subgraph 0: 4 ops, 2 orders, cost 56 bytes
// REMARK-DAG: 4 ops, before 1032, cost 1032 bytes
// REMARK-DAG: subgraph 0: 4 ops, 3 orders, cost 264 bytes
// REMARK-DAG: 2 ops, before 296, cost 296 bytes
