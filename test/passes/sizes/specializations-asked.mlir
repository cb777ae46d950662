// RUN: %braid-opt %s -p 'add-specializations{sizes="n=8;batch=4,n=8;n=8"}' | filecheck %s
// RUN: not %braid-opt %s -p 'add-specializations{sizes="m=8"}' 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not %braid-opt %s -p 'add-specializations{sizes="n"}' 2>&1 | filecheck %s --check-prefix=TEXT

// UNKNOWN: there is no size 'm' to bind
// UNKNOWN: the open sizes are: batch, n
// TEXT: add-specializations: 'n' is no name and number

// Sizes that are asked for; those with most sizes come first.

// CHECK:       func.func @main(%x: tensor<?x?xf32, #braid.sizes<["batch", "n"]>>)
// CHECK:       func.func @main_1(%x: tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-SAME:    braid.specialized = {batch = 4 : i64, n = 8 : i64}
// CHECK:       func.func @main_0(%x: tensor<?x8xf32, #braid.sizes<["batch"]>>)
// CHECK-SAME:    braid.specialized = {n = 8 : i64}
func.func @main(%x: tensor<?x?xf32, #braid.sizes<["batch", "n"]>>)
    -> tensor<?x?xf32, #braid.sizes<["batch", "n"]>> {
  %y = braid.exp %x : (tensor<?x?xf32, #braid.sizes<["batch", "n"]>>) -> tensor<?x?xf32, #braid.sizes<["batch", "n"]>>
  return %y : tensor<?x?xf32, #braid.sizes<["batch", "n"]>>
}
