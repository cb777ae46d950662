// RUN: %braid-opt %s -p 'name-open-dims' --split-input-file --verify-diagnostics

func.func @branches(%x: tensor<?xf32>, %y: tensor<?xf32>, %c: i1) -> tensor<?xf32> {
  // expected-error @+1 {{'scf.if': its branches give tensor<?xf32, #braid.sizes<["\22input0[0]\22"]>> and tensor<?xf32, #braid.sizes<["\22input1[0]\22"]>>, expected one shape}}
  %a = scf.if %c -> (tensor<?xf32>) {
    scf.yield %x : tensor<?xf32>
  } else {
    scf.yield %y : tensor<?xf32>
  }
  func.return %a : tensor<?xf32>
}

// -----

func.func @grows(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  // expected-error @+1 {{'scf.for': value 0 enters it as tensor<?xf32, #braid.sizes<["\22input0[0]\22"]>> and leaves as tensor<?xf32, #braid.sizes<["\22input0[0]\22 + 1"]>>, expected one shape}}
  %b = scf.for %i = %0 to %n step %1 iter_args(%v = %x) -> (tensor<?xf32>) {
    %w = braid.pad %v {low = array<i64: 0>, high = array<i64: 1>, value = 0.0 : f32} : (tensor<?xf32>) -> tensor<?xf32>
    scf.yield %w : tensor<?xf32>
  }
  func.return %b : tensor<?xf32>
}

// -----

func.func @impossible(%x: tensor<?x3xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // expected-error @+1 {{'braid.add' op}}
  %z = braid.add %x, %y : (tensor<?x3xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %z : tensor<?x4xf32>
}
