// RUN: %braid-opt %s -p 'name-open-dims' --split-input-file | filecheck %s

// Every open dim has a size of its own, named after the input.
// CHECK-LABEL: @inputs
// CHECK-SAME: tensor<?x8x?xf32, #braid.sizes<["\22input0[0]\22", "\22input0[2]\22"]>>
// CHECK-SAME: tensor<?xf32, #braid.sizes<["\22input1[0]\22"]>>
// CHECK-SAME: %c: tensor<4xf32>
// CHECK-SAME: %i: index
func.func @inputs(%a: tensor<?x8x?xf32>, %b: tensor<?xf32>, %c: tensor<4xf32>, %i: index) {
  func.return
}

// -----

// Sizes that a type says stay, and a name that is taken gets a number.
// CHECK-LABEL: @said
// CHECK-SAME: tensor<?xf32, #braid.sizes<["\22input1[0]\22"]>>
// CHECK-SAME: tensor<?xf32, #braid.sizes<["\22input1[0]#2\22"]>>
func.func @said(%a: tensor<?xf32, #braid.sizes<["\22input1[0]\22"]>>, %b: tensor<?xf32>) {
  func.return
}

// -----

// Types of results follow from operands; the function's type is updated.
// CHECK-LABEL: @ops
// CHECK-SAME: -> tensor<?xf32, #braid.sizes<["8 * \22input0[0]\22"]>>
// CHECK-NEXT: braid.exp %x {{.*}} -> tensor<?x8xf32, #braid.sizes<["\22input0[0]\22"]>>
// CHECK-NEXT: braid.reshape {{.*}} -> tensor<?xf32, #braid.sizes<["8 * \22input0[0]\22"]>>
func.func @ops(%x: tensor<?x8xf32>) -> tensor<?xf32> {
  %e = braid.exp %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = braid.reshape %e : (tensor<?x8xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// -----

// What a result says of its extents stays: a run checks that it holds.
// CHECK-LABEL: @declared
// CHECK: braid.exp {{.*}} -> tensor<4xf32>
func.func @declared(%x: tensor<?xf32>) -> tensor<4xf32> {
  %y = braid.exp %x : (tensor<?xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// Branches and loops.
// CHECK-LABEL: @control_flow
// CHECK: scf.if %c -> (tensor<?xf32, #braid.sizes<["\22input0[0]\22"]>>)
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (tensor<?xf32, #braid.sizes<["\22input0[0]\22"]>>)
// CHECK: scf.while {{.*}} : (tensor<?xf32, #braid.sizes<["\22input0[0]\22"]>>) -> tensor<?xf32, #braid.sizes<["\22input0[0]\22"]>>
func.func @control_flow(%x: tensor<?xf32>, %c: i1, %n: index) -> tensor<?xf32> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %a = scf.if %c -> (tensor<?xf32>) {
    %t = braid.neg %x : (tensor<?xf32>) -> tensor<?xf32>
    scf.yield %t : tensor<?xf32>
  } else {
    scf.yield %x : tensor<?xf32>
  }
  %b = scf.for %i = %0 to %n step %1 iter_args(%v = %a) -> (tensor<?xf32>) {
    %w = braid.add %v, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    scf.yield %w : tensor<?xf32>
  }
  %d = scf.while (%v = %b) : (tensor<?xf32>) -> tensor<?xf32> {
    scf.condition(%c) %v : tensor<?xf32>
  } do {
  ^bb0(%v: tensor<?xf32>):
    %w = braid.exp %v : (tensor<?xf32>) -> tensor<?xf32>
    scf.yield %w : tensor<?xf32>
  }
  func.return %d : tensor<?xf32>
}

// -----

// Yielded values get the sizes of the carried ones, where they may be equal.
// CHECK-LABEL: @checked_loop
// CHECK: %[[W:.*]] = braid.slice %y
// CHECK: braid.reshape %[[W]] : {{.*}} -> tensor<?xf32, #braid.sizes<["\22input0[0]\22"]>>
func.func @checked_loop(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %b = scf.for %i = %0 to %n step %1 iter_args(%v = %x) -> (tensor<?xf32>) {
    %w = braid.slice %y {offsets = array<i64: 0>, sizes = array<i64: 4>, strides = array<i64: 1>} : (tensor<?xf32>) -> tensor<?xf32>
    scf.yield %w : tensor<?xf32>
  }
  func.return %b : tensor<?xf32>
}
