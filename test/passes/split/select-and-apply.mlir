// RUN: %braid-opt %s -p 'select-splits{memory=64},apply-splits' | filecheck %s
// RUN: %braid-opt %s -p 'select-splits{memory=48 allow-split-reduction},apply-splits' | filecheck %s --check-prefix=REDUCTION
// RUN: not %braid-opt %s -p 'select-splits{memory=48},apply-splits' 2>&1 | filecheck %s --check-prefix=ERROR

// The second op is split like the first.
// CHECK-LABEL: func.func @chain
// CHECK-COUNT-3: braid.exp
// CHECK-COUNT-3: braid.neg
// CHECK-NEXT:    braid.concat
// REDUCTION-LABEL: func.func @chain
func.func @chain(%x: tensor<6x4xf32>) -> tensor<6x4xf32> {
  %0 = braid.exp %x : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %1 = braid.neg %0 : (tensor<6x4xf32>) -> tensor<6x4xf32>
  func.return %1 : tensor<6x4xf32>
}

// CHECK-LABEL: func.func @sum
// CHECK-NEXT:    braid.reduce
// REDUCTION-LABEL: func.func @sum
// REDUCTION-COUNT-2: braid.reduce
// REDUCTION-NEXT:    braid.maximum
// ERROR: error: 'braid.reduce' uses
// ERROR: hint: give more memory, or allow-split-reduction=true
func.func @sum(%x: tensor<14xf32>) -> tensor<1xf32> {
  %0 = braid.reduce %x {kind = "maximum", dims = array<i64: 0>} : (tensor<14xf32>) -> tensor<1xf32>
  func.return %0 : tensor<1xf32>
}
