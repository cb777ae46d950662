// RUN: %braid-opt %s -p hoist-views | filecheck %s

// A view of what is made before a loop does not belong to the loop.
// CHECK-LABEL: @main
// CHECK:       %[[R:.*]] = braid.reshape %{{.*}} : (tensor<2x6xf32>) -> tensor<12xf32>
// CHECK:       scf.for
// CHECK-NOT:     braid.reshape %x
// CHECK:         braid.add %[[R]]
// CHECK:         braid.reshape %{{.*}} -> tensor<3x4xf32>
func.func @main(%x: tensor<2x6xf32>) -> tensor<12xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %start = braid.constant {value = dense<0.0> : tensor<12xf32>} : tensor<12xf32>
  %y = scf.for %i = %zero to %four step %one iter_args(%v = %start) -> (tensor<12xf32>) {
    %r = braid.reshape %x : (tensor<2x6xf32>) -> tensor<12xf32>
    %s = braid.add %r, %v : (tensor<12xf32>, tensor<12xf32>) -> tensor<12xf32>
    %m = braid.reshape %s : (tensor<12xf32>) -> tensor<3x4xf32>
    %n = braid.exp %m : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %w = braid.reshape %n : (tensor<3x4xf32>) -> tensor<12xf32>
    scf.yield %w : tensor<12xf32>
  }
  func.return %y : tensor<12xf32>
}
