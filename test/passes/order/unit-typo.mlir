// A resource that the chip does not have takes no time by mistake alone.
// RUN: not %braid-opt %s -p 'search-order{objective=latency target=npu-small}' 2>&1 | filecheck %s
// RUN: not %braid-opt %s -p 'search-order{objective=latency target=host}' 2>&1 | filecheck %s --check-prefix=HOST
// HOST: error: opaque op 'conv1' declares 'matrix', which is neither a unit nor a resource of backend 'cpu'
// HOST: hint: expected one of bytes, flops, load/store, vector
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.opaque "relu"(%x) {cost = {vector = 2.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = braid.opaque "conv1"(%0) {cost = {matrix = 3.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: unit-typo.mlir:[[# @LINE + 2]]:{{.*}}: error: opaque op 'matmul' declares 'matrx', which is neither a unit nor a resource of backend 'npu'
// CHECK: hint: did you mean 'matrix'?
  %2 = braid.opaque "matmul"(%1) {cost = {matrx = 7.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = braid.opaque "mean"(%2) {cost = {vector = 4.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %4 = braid.opaque "add1"(%3) {cost = {vector = 6.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %5 = braid.opaque "conv2"(%0) {cost = {matrix = 5.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %6 = braid.opaque "apxy"(%5) {cost = {vector = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %7 = braid.opaque "sub"(%6) {cost = {vector = 8.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %8 = braid.opaque "add2"(%7) {cost = {vector = 3.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %9 = braid.opaque "softmax"(%4, %8) {cost = {vector = 2.0e-6 : f64}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %9 : tensor<4xf32>
}
