// RUN: %braid-opt %s -p 'bind-sizes{values="batch=2,length=5"}' --split-input-file | filecheck %s

// Types, lists, sizes as data and what is assumed of symbols; other symbols stay.
// CHECK-LABEL: @binds(%x: tensor<2x5x8xf32>, %table: tensor<64x8xf32>, %free: tensor<?x5xf32, #braid.sizes<["other"]>>)
// CHECK-SAME: attributes {braid.symbols = {other = #braid.symbol<{}>}}
// CHECK-NEXT: braid.slice %table {{.*}}sizes = array<i64: 5, 8>{{.*}} -> tensor<5x8xf32>
// CHECK-NEXT: braid.sized_pad %free {low = #braid.sizes<["other", "0"]>, high = #braid.sizes<["0", "2"]>
// CHECK-NEXT: braid.constant {value = dense<[2, 10]> : tensor<2xi64>} : tensor<2xi64>
// CHECK-NEXT: braid.iota {dim = 0 : i64} : tensor<7xi64>
// CHECK-NEXT: braid.reshape %x {{.*}} -> tensor<10x8xf32, #braid.layout<"ba">>
func.func @binds(%x: tensor<?x?x8xf32, #braid.sizes<["batch", "length"]>>, %table: tensor<64x8xf32>, %free: tensor<?x?xf32, #braid.sizes<["other", "length"]>>)
    attributes {braid.symbols = {batch = #braid.symbol<{min = 1 : i64}>, length = #braid.symbol<{max = 64 : i64}>, other = #braid.symbol<{}>}} {
  %part = braid.sized_slice %table {offsets = #braid.sizes<["0", "0"]>, sizes = #braid.sizes<["length", "8"]>, strides = array<i64: 1, 1>} : (tensor<64x8xf32>) -> tensor<?x8xf32, #braid.sizes<["length"]>>
  %wide = braid.sized_pad %free {low = #braid.sizes<["other", "0"]>, high = #braid.sizes<["0", "batch"]>, value = 0.0 : f32} : (tensor<?x?xf32, #braid.sizes<["other", "length"]>>) -> tensor<?x?xf32, #braid.sizes<["2 * other", "batch + length"]>>
  %sizes = braid.size_values {values = #braid.sizes<["batch", "batch * length"]>} : tensor<2xi64>
  %places = braid.iota {dim = 0 : i64} : tensor<?xi64, #braid.sizes<["batch + length"]>>
  %flat = braid.reshape %x : (tensor<?x?x8xf32, #braid.sizes<["batch", "length"]>>) -> tensor<?x8xf32, #braid.sized_layout<"ba", ["batch * length"]>>
  func.return
}

// -----

// Carried values of a loop and the results of a branch.
// CHECK-LABEL: @control_flow
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %x) -> (tensor<2x5xf32>)
// CHECK: braid.neg %{{.*}} : (tensor<2x5xf32>) -> tensor<2x5xf32>
// CHECK-NOT: ?
func.func @control_flow(%x: tensor<?x?xf32, #braid.sizes<["batch", "length"]>>, %n: index) -> tensor<?x?xf32, #braid.sizes<["batch", "length"]>> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = scf.for %i = %zero to %n step %one iter_args(%c = %x) -> (tensor<?x?xf32, #braid.sizes<["batch", "length"]>>) {
    %y = braid.neg %c : (tensor<?x?xf32, #braid.sizes<["batch", "length"]>>) -> tensor<?x?xf32, #braid.sizes<["batch", "length"]>>
    scf.yield %y : tensor<?x?xf32, #braid.sizes<["batch", "length"]>>
  }
  return %r : tensor<?x?xf32, #braid.sizes<["batch", "length"]>>
}
