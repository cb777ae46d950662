// RUN: %braid-opt %s -p 'select-layouts{change-signature},apply-layouts{change-signature}' | filecheck %s
// RUN: not %braid-opt %s -p 'select-layouts{change-signature},apply-layouts' 2>&1 | filecheck %s --check-prefix=REFUSED

// REFUSED: change-signature.mlir:{{.*}}: error: the layouts that were chosen change the signature of '@main'
// REFUSED: hint: give apply-layouts{change-signature}, or select without change-signature

// Arguments and results are stored as the op between them wants it; nothing is reordered.
// CHECK:         func.func @main(%x: tensor<1x8x6x6xf32, #braid.layout<"acdb">>, %n: index)
// CHECK-SAME:      -> (tensor<1x8x6x6xf32, #braid.layout<"acdb">>, index)
// CHECK-NOT:     braid.reorder
// CHECK:         func.return %{{.*}}, %n : tensor<1x8x6x6xf32, #braid.layout<"acdb">>, index
func.func @main(%x: tensor<1x8x6x6xf32>, %n: index) -> (tensor<1x8x6x6xf32>, index) {
  %0 = braid.opaque "conv"(%x) {layouts = [{operands = ["acdb"], results = ["acdb"]}], cost = 1.0e-3 : f64} : (tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32>
  func.return %0, %n : tensor<1x8x6x6xf32>, index
}

// What is called keeps its signature: the caller would have to change with it.
// CHECK:         func.func @calls(%x: tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32>
// CHECK:           %y = func.call @called(%x) : (tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32>
// CHECK:         func.func @called(%x: tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32>
// CHECK-COUNT-2:   braid.reorder
func.func @calls(%x: tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32> {
  %y = func.call @called(%x) : (tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32>
  func.return %y : tensor<1x8x6x6xf32>
}
func.func @called(%x: tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32> {
  %0 = braid.opaque "conv"(%x) {layouts = [{operands = ["acdb"], results = ["acdb"]}], cost = 1.0e-3 : f64} : (tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32>
  func.return %0 : tensor<1x8x6x6xf32>
}
