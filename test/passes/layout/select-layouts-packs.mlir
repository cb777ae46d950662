// RUN: %braid-opt %s -p select-layouts,apply-layouts | filecheck %s
// RUN: %braid-opt %s -p 'select-layouts{ignore-profile},apply-layouts' | filecheck %s --check-prefix=IGNORED

// A transpose of what is known before the loop is a matter of layouts: the operand is stored
// column-major once, and the transpose only reads that as rows.
// CHECK-LABEL: @main
// CHECK:       braid.reorder %{{.*}} -> tensor<128x576xf32, #braid.layout<"ba">>
// CHECK:       scf.for
// CHECK-NOT:     braid.fused
// CHECK:         braid.transpose %{{.*}} : (tensor<128x576xf32, #braid.layout<"ba">>) -> tensor<576x128xf32>
// CHECK-NEXT:    braid.fused
// CHECK:           braid.matmul

// Where every op counts once, there is nothing to gain before the loop: the transpose is a view there
// too, and the product of four rows reads what it shows where that lies.
// IGNORED-LABEL: @main
// IGNORED-NOT:   braid.reorder
// IGNORED:       scf.for
// IGNORED:         braid.transpose %{{.*}} : (tensor<128x576xf32>) -> tensor<576x128xf32, #braid.layout<"ba">>
// IGNORED-NOT:     braid.reorder
// IGNORED:         braid.matmul
func.func @main(%x: tensor<4x576xf32>, %m: tensor<128x576xf32>) -> tensor<4x128xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %many = arith.constant 16 : index
  %start = braid.constant {value = dense<0.0> : tensor<4x128xf32>} : tensor<4x128xf32>
  %y = scf.for %i = %zero to %many step %one iter_args(%v = %start) -> (tensor<4x128xf32>) {
    %t = braid.fused(%m) : (tensor<128x576xf32>) -> tensor<576x128xf32> {
    ^bb0(%a: tensor<128x576xf32>):
      %0 = braid.transpose %a {permutation = array<i64: 1, 0>} : (tensor<128x576xf32>) -> tensor<576x128xf32>
      braid.yield %0 : tensor<576x128xf32>
    }
    %p = braid.fused(%x, %t, %v) : (tensor<4x576xf32>, tensor<576x128xf32>, tensor<4x128xf32>) -> tensor<4x128xf32> {
    ^bb0(%a: tensor<4x576xf32>, %b: tensor<576x128xf32>, %c: tensor<4x128xf32>):
      %0 = braid.matmul %a, %b : (tensor<4x576xf32>, tensor<576x128xf32>) -> tensor<4x128xf32>
      %1 = braid.add %0, %c : (tensor<4x128xf32>, tensor<4x128xf32>) -> tensor<4x128xf32>
      braid.yield %1 : tensor<4x128xf32>
    }
    scf.yield %p : tensor<4x128xf32>
  } {braid.trip_count = 16.0 : f64}
  func.return %y : tensor<4x128xf32>
}
