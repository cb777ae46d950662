// RUN: %braid-opt %s -p group-upstream-ops --split-input-file --verify-diagnostics | FileCheck %s

// Values that only one op reads are in its group; scalars and empty tensors are cloned into it.
// CHECK-LABEL: func.func @chain
// CHECK-NEXT:  %[[T:.*]] = braid.tanh %x
// CHECK-NEXT:  %[[G:.*]] = braid.fused(%[[T]], %w) {{{.*}}braid.name = "product"}
// CHECK:         arith.constant 0.000000e+00 : f32
// CHECK:         tensor.empty() : tensor<8x16xf32>
// CHECK:         linalg.fill
// CHECK:         linalg.matmul
// CHECK:         arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK:         braid.yield
// CHECK:       %[[C:.*]] = braid.constant {value = dense<1.000000e+00> : tensor<8x16xf32>}
// CHECK-NEXT:  braid.add %[[G]], %[[C]]
// CHECK-NEXT:  func.return
func.func @chain(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> tensor<8x16xf32> {
  %t = braid.tanh %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %m = linalg.matmul {braid.name = "product"} ins(%t, %w : tensor<8x16xf32>, tensor<16x16xf32>) outs(%f : tensor<8x16xf32>) -> tensor<8x16xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %two : f32
    linalg.yield %s : f32
  } -> tensor<8x16xf32>
  %c = arith.constant dense<1.0> : tensor<8x16xf32>
  %r = braid.add %g, %c : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  func.return %r : tensor<8x16xf32>
}

// -----

// An op that two groups read is a group of its own.
// CHECK-LABEL: func.func @two_readers
// CHECK:         math.exp
// CHECK:       braid.fused
// CHECK:         arith.addf
// CHECK:       braid.fused
// CHECK:         arith.mulf
func.func @two_readers(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = math.exp %x : tensor<4xf32>
  %a = arith.addf %e, %x : tensor<4xf32>
  %b = arith.mulf %e, %x : tensor<4xf32>
  func.return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// -----

// Branches are blocks of their own. Ops that the program itself supports need no kernel.
// CHECK-LABEL: func.func @branches
// CHECK:       tensor.from_elements
// CHECK-NOT:   braid.fused
// CHECK:       scf.if
// CHECK-NEXT:    braid.fused(%x)
// CHECK:           arith.addf
func.func @branches(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  %q = tensor.extract %c[] : tensor<i1>
  %d = tensor.from_elements %q : tensor<i1>
  %p = tensor.extract %d[] : tensor<i1>
  %y = scf.if %p -> (tensor<4xf32>) {
    %a = arith.addf %x, %x : tensor<4xf32>
    scf.yield %a : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @computed_index(%x: tensor<4xf32>, %i: tensor<index>) -> tensor<1xf32> {
  %j = tensor.extract %i[] : tensor<index>
  // expected-error @+1 {{'tensor.extract_slice' reads a value of type index that is computed at run time}}
  %s = tensor.extract_slice %x[%j] [1] [1] : tensor<4xf32> to tensor<1xf32>
  func.return %s : tensor<1xf32>
}
