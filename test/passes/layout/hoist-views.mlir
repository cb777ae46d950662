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

// A cluster stands in one block: a view that leaves that joins one out there.
// CHECK-LABEL: @clusters
// CHECK:       braid.reshape %{{.*}} {braid.cluster = 1 : i64, braid.device = "cpu:0"}
// CHECK:       scf.for
// CHECK:         braid.add %{{.*}} {braid.device = "npu:0", braid.cluster = 0 : i64}
func.func private @clusters(%x: tensor<2x6xf32>) -> tensor<12xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %e = braid.exp %x {braid.device = "cpu:0", braid.cluster = 1 : i64} : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %start = braid.constant {value = dense<0.0> : tensor<12xf32>} : tensor<12xf32>
  %y = scf.for %i = %zero to %one step %one iter_args(%v = %start) -> (tensor<12xf32>) {
    %r = braid.reshape %e {braid.device = "npu:0", braid.cluster = 0 : i64} : (tensor<2x6xf32>) -> tensor<12xf32>
    %s = braid.add %r, %v {braid.device = "npu:0", braid.cluster = 0 : i64} : (tensor<12xf32>, tensor<12xf32>) -> tensor<12xf32>
    scf.yield %s : tensor<12xf32>
  }
  func.return %y : tensor<12xf32>
}

// If a branch is not taken, a view of its sizes may be out of bounds of its operand.
// CHECK-LABEL: @checked
// CHECK-NOT:   braid.reshape
// CHECK:       scf.if
// CHECK-NEXT:    braid.reshape
// CHECK:       } else {
func.func private @checked(%x: tensor<?xf32, #braid.sizes<["n"]>>, %z: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %y = scf.if %c -> (tensor<4xf32>) {
    %r = braid.reshape %x : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<4xf32>
    %e = braid.exp %r : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  } else {
    scf.yield %z : tensor<4xf32>
  } {braid.branch_size_checks = [[{size = #braid.sizes<["n - 4"]>, zero = true, message = "'r' needs n = 4"}], []]}
  func.return %y : tensor<4xf32>
}
