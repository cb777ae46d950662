// RUN: %braid-opt %s -p 'name-open-dims,convert-linalg-to-braid' --split-input-file | filecheck %s

// Sizes of created tensors are those of inputs; the ops that compute them are removed.
// CHECK-LABEL: @layer
// CHECK-NOT: tensor.dim
// CHECK: braid.matmul %x, %w : {{.*}} -> tensor<?x4xf32, #braid.sizes<["\22input0[0]\22"]>>
// CHECK-NOT: tensor.empty
func.func @layer(%x: tensor<?x8xf32>, %w: tensor<8x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x8xf32>, tensor<8x4xf32>) outs(%f : tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// -----

// A size that other ops read stays, as data.
// CHECK-LABEL: @bound
// CHECK: %[[N:.*]] = braid.size_values {values = #braid.sizes<["\22input0[0]\22"]>} : tensor<i64>
// CHECK: tensor.extract %[[N]]
// CHECK: scf.for
func.func @bound(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%v = %x) -> (tensor<?xf32>) {
    %w = braid.neg %v : (tensor<?xf32>) -> tensor<?xf32>
    scf.yield %w : tensor<?xf32>
  }
  func.return %y : tensor<?xf32>
}
