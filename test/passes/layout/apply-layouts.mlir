// RUN: %braid-opt %s -p 'select-layouts{algorithm=fixed:acdb},apply-layouts' | filecheck %s
// RUN: not %braid-opt %s -p apply-layouts 2>&1 | filecheck %s --check-prefix=UNDECIDED

// UNDECIDED: apply-layouts.mlir:{{.*}}: error: no layouts are decided for the 1 operands of 'braid.fused'

// The signature stays, both users read one reorder, weights are reordered outside groups.
// CHECK-LABEL: func.func @main(%x: tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32> {
// CHECK-NEXT:    %[[R:.*]] = braid.fused(%x) {braid.name = "input0/to-acdb"} : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32, #braid.layout<"acdb">> {
// CHECK-NEXT:    ^{{.*}}(%[[A:.*]]: tensor<1x8x4x4xf32>):
// CHECK-NEXT:      %[[B:.*]] = braid.reorder %[[A]]
// CHECK-NEXT:      braid.yield %[[B]] : tensor<1x8x4x4xf32, #braid.layout<"acdb">>
// CHECK-NEXT:    }
// CHECK-NEXT:    %w = braid.parameter {key = "w"} : tensor<1x8x4x4xf32>
// CHECK-NEXT:    %[[W:.*]] = braid.reorder %w
// CHECK-NEXT:    %[[E:.*]] = braid.fused(%[[R]])
// CHECK-NEXT:    ^{{.*}}(%[[C:.*]]: tensor<1x8x4x4xf32, #braid.layout<"acdb">>):
// CHECK-NEXT:      %[[D:.*]] = braid.exp %[[C]] : {{.*}} -> tensor<1x8x4x4xf32, #braid.layout<"acdb">>
// CHECK:         %[[S:.*]] = braid.fused(%[[R]], %[[E]], %[[W]])
// CHECK:         %[[Y:.*]] = braid.fused(%[[S]])
// CHECK:           braid.reorder
// CHECK:         func.return %[[Y]] : tensor<1x8x4x4xf32>
func.func @main(%x: tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32> {
  %w = braid.parameter {key = "w"} : tensor<1x8x4x4xf32>
  %0 = braid.fused(%x) : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32> {
  ^bb0(%a: tensor<1x8x4x4xf32>):
    %1 = braid.exp %a : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
    braid.yield %1 : tensor<1x8x4x4xf32>
  }
  %2 = braid.fused(%x, %0, %w) : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32> {
  ^bb0(%a: tensor<1x8x4x4xf32>, %b: tensor<1x8x4x4xf32>, %c: tensor<1x8x4x4xf32>):
    %3 = braid.maximum %a, %b : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
    %4 = braid.add %3, %c : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
    braid.yield %4 : tensor<1x8x4x4xf32>
  }
  func.return %2 : tensor<1x8x4x4xf32>
}

// Values that control flow carries have one layout inside and outside.
// CHECK-LABEL: func.func @loop
// CHECK:         %[[R:.*]] = braid.fused(%x)
// CHECK:         %[[F:.*]] = scf.for {{.*}} iter_args(%[[I:.*]] = %[[R]]) -> (tensor<1x8x4x4xf32, #braid.layout<"acdb">>)
// CHECK-NEXT:      %[[E:.*]] = braid.fused(%[[I]])
// CHECK:           scf.yield %[[E]] : tensor<1x8x4x4xf32, #braid.layout<"acdb">>
// CHECK:         %[[Y:.*]] = braid.fused(%[[F]])
// CHECK:         func.return %[[Y]] : tensor<1x8x4x4xf32>
func.func @loop(%x: tensor<1x8x4x4xf32>, %n: index) -> tensor<1x8x4x4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0 = scf.for %i = %zero to %n step %one iter_args(%v = %x) -> (tensor<1x8x4x4xf32>) {
    %1 = braid.fused(%v) : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32> {
    ^bb0(%a: tensor<1x8x4x4xf32>):
      %2 = braid.exp %a : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
      braid.yield %2 : tensor<1x8x4x4xf32>
    }
    scf.yield %1 : tensor<1x8x4x4xf32>
  } {braid.trip_count = 5.0 : f64}
  func.return %0 : tensor<1x8x4x4xf32>
}

// Where all but one dim have extent 1, the layouts differ in name only: a view, not a kernel.
// CHECK-LABEL: func.func @vector
// CHECK:         %[[V:.*]] = braid.reorder %x {braid.name = "input0/to-acdb"} : (tensor<1x8x1x4xf32, #braid.layout<"adcb">>) -> tensor<1x8x1x4xf32, #braid.layout<"acdb">>
// CHECK-NEXT:    braid.fused(%[[V]])
func.func @vector(%x: tensor<1x8x1x4xf32, #braid.layout<"adcb">>) {
  %0 = braid.fused(%x) : (tensor<1x8x1x4xf32, #braid.layout<"adcb">>) -> tensor<1x8x1x4xf32> {
  ^bb0(%a: tensor<1x8x1x4xf32, #braid.layout<"adcb">>):
    %1 = braid.exp %a : (tensor<1x8x1x4xf32, #braid.layout<"adcb">>) -> tensor<1x8x1x4xf32>
    braid.yield %1 : tensor<1x8x1x4xf32>
  }
  func.return
}
