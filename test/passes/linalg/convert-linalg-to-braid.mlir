// RUN: %braid-opt %s -p convert-linalg-to-braid | FileCheck %s

// A product that starts from zeros is one of braid; another start is added.
// CHECK-LABEL: func.func @product
// CHECK-NOT:   linalg
// CHECK:       %[[Y:.*]] = braid.matmul %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK:       %[[M:.*]] = braid.matmul %[[Y]], %b {braid.device = "gpu:0"}
// CHECK:       braid.add %c, %[[M]] {braid.device = "gpu:0"}
func.func @product(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %z = linalg.matmul {braid.device = "gpu:0"} ins(%y, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %z : tensor<4x4xf32>
}

// An op on open dims stays.
// CHECK-LABEL: func.func @open
// CHECK:       linalg.add
func.func @open(%a: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.add ins(%a, %a : tensor<?xf32>, tensor<?xf32>) outs(%a : tensor<?xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// Elements of a tensor that were never written are zeros, never the contents of memory.
// CHECK-LABEL: func.func @unwritten
// CHECK:       %[[ZERO:.*]] = braid.constant {value = dense<0.0
// CHECK:       %[[ZEROS:.*]] = braid.broadcast %[[ZERO]]
// CHECK:       tensor.insert %x into %[[ZEROS]]
// CHECK:       func.return %{{.*}}, %[[ZEROS]]
func.func @unwritten(%x: f32, %i: index) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %y = tensor.insert %x into %e[%i] : tensor<4xf32>
  func.return %y, %e : tensor<4xf32>, tensor<4xf32>
}

// Elements that no iteration writes are read, too.
// CHECK-LABEL: func.func @partly_written
// CHECK:       %[[ZEROS:.*]] = braid.broadcast
// CHECK:       linalg.generic {{.*}} outs(%[[ZEROS]] : tensor<4x3xf32>)
func.func @partly_written(%x: tensor<4xf32>) -> tensor<4x3xf32> {
  %e = tensor.empty() : tensor<4x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i, 1)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4x3xf32>
  func.return %y : tensor<4x3xf32>
}

// Without iterations, results are what they begin as.
// CHECK-LABEL: func.func @no_iterations
// CHECK-NEXT:    func.return %y, %z
func.func @no_iterations(%x: tensor<4x0xf32>, %y: tensor<4xf32>, %z: tensor<4x3xf32>) -> (tensor<4xf32>, tensor<4x3xf32>) {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x0xf32>) outs(%y : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  %1 = tensor.insert_slice %x into %z[0, 1] [4, 0] [1, 1] : tensor<4x0xf32> into tensor<4x3xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<4x3xf32>
}

// Nothing computes a tensor without elements.
// CHECK-LABEL: func.func @no_elements
// CHECK-NEXT:    %[[E:.*]] = braid.constant {value = dense<> : tensor<4x0xf32>}
// CHECK-NEXT:    func.return %[[E]]
func.func @no_elements(%x: tensor<4x0xf32>) -> tensor<4x0xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x0xf32>) outs(%x : tensor<4x0xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.erf %a : f32
    linalg.yield %t : f32
  } -> tensor<4x0xf32>
  func.return %0 : tensor<4x0xf32>
}

// Loops that the result has together are split last: a layout may stand for the transpose.
// CHECK-LABEL: func.func @depthwise
// CHECK:         %[[C:.*]] = braid.conv
// CHECK-NEXT:    %[[T:.*]] = braid.transpose %[[C]] {permutation = array<i64: 0, 2, 3, 1>}
// CHECK-NEXT:    braid.reshape %[[T]] : (tensor<1x4x4x6xf32>) -> tensor<1x4x4x3x2xf32>
func.func @depthwise(%x: tensor<1x6x6x3xf32>, %w: tensor<3x3x3x2xf32>) -> tensor<1x4x4x3x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x4x3x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x4x3x2xf32>) -> tensor<1x4x4x3x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, h, w, c, m, i, j) -> (n, h + i, w + j, c)>, affine_map<(n, h, w, c, m, i, j) -> (i, j, c, m)>, affine_map<(n, h, w, c, m, i, j) -> (n, h, w, c, m)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %w : tensor<1x6x6x3xf32>, tensor<3x3x3x2xf32>) outs(%f : tensor<1x4x4x3x2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<1x4x4x3x2xf32>
  func.return %y : tensor<1x4x4x3x2xf32>
}
