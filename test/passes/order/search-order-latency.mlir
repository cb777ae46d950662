// RUN: %braid-opt %s -p 'search-order{objective=latency target=npu-small}' --remarks -o %t.mlir 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: filecheck %s --input-file %t.mlir
// RUN: %braid-opt %s -p 'search-order{objective=latency target=npu-davinci good-enough=1.0},apply-order' | filecheck %s --check-prefix=DAVINCI

// While the matrix unit works on one branch, the vector unit works on the other: the long chain
// of vector work goes first.
// CHECK-LABEL: func.func @two_branches
// CHECK-SAME:    braid.order = [array<i64: 0, 5, {{.*}}]
// DAVINCI-LABEL: func.func @two_branches
// DAVINCI-NOT:   braid.order
func.func @two_branches(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.opaque "relu"(%x) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = braid.opaque "conv"(%0) {cost = {matrix = 9.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = braid.opaque "matmul"(%1) {cost = {matrix = 2.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = braid.opaque "mean"(%2) {cost = {vector = 8.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %4 = braid.opaque "add"(%3) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %5 = braid.opaque "conv"(%0) {cost = {matrix = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %6 = braid.opaque "axpy"(%5) {cost = {vector = 4.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %7 = braid.opaque "sub"(%6) {cost = {vector = 3.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %8 = braid.opaque "add"(%7) {cost = {vector = 2.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %9 = braid.opaque "softmax"(%4, %8) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %9 : tensor<4xf32>
}

// The product and the sum have exactly two orders.
// CHECK-LABEL: func.func @diamond
func.func @diamond(%x: tensor<1x8x32x32xf32>, %w: tensor<8x8x3x3xf32>, %v: tensor<1x8x32x32xf32>) -> tensor<1x8x32x32xf32> {
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x8x32x32xf32>, tensor<8x8x3x3xf32>) -> tensor<1x8x32x32xf32>
  %1 = braid.matmul %0, %v : (tensor<1x8x32x32xf32>, tensor<1x8x32x32xf32>) -> tensor<1x8x32x32xf32>
  %2 = braid.reduce %0 {kind = "add", dims = array<i64: 3>} : (tensor<1x8x32x32xf32>) -> tensor<1x8x32x1xf32>
  %3 = braid.add %1, %2 : (tensor<1x8x32x32xf32>, tensor<1x8x32x1xf32>) -> tensor<1x8x32x32xf32>
  %4 = braid.softmax %3 {dim = 3 : i64} : (tensor<1x8x32x32xf32>) -> tensor<1x8x32x32xf32>
  func.return %4 : tensor<1x8x32x32xf32>
}

// REMARK-DAG: subgraph 0: 10 ops, 70 orders, cost 2.3e-05 s, lower bound 2.3e-05 s
// REMARK-DAG: 10 ops, before 3.1e-05, cost
// REMARK-DAG: subgraph 0: 5 ops, 2 orders,
