// RUN: %braid-opt %s -p select-fusion,apply-fusion | filecheck %s
// RUN: not %braid-opt %s -p apply-fusion 2>&1 | filecheck %s --check-prefix=UNDECIDED

// UNDECIDED: apply-fusion.mlir:{{[0-9]+}}:{{[0-9]+}}: error: 'braid.mul' is in no fusion group
// UNDECIDED: hint: run select-fusion before apply-fusion

// Constants move inside, parameters and views stay outside; a single op is a group too.
// CHECK-LABEL: @main
// CHECK-NOT:     braid.constant
// CHECK:         %b = braid.parameter
// CHECK-NEXT:    %[[F:.*]] = braid.fused(%x, %b) {braid.name = ["scale", "bias"]} : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32> {
// CHECK-NEXT:    ^{{.*}}(%[[A:.*]]: tensor<2x3xf32>, %[[B:.*]]: tensor<1x3xf32>):
// CHECK-NEXT:      %[[C:.*]] = braid.constant
// CHECK-NEXT:      %[[M:.*]] = braid.mul %[[A]], %[[C]] {braid.name = "scale"}
// CHECK-NEXT:      %[[S:.*]] = braid.add %[[M]], %[[B]] {braid.name = "bias"}
// CHECK-NEXT:      braid.yield %[[S]]
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[R:.*]] = braid.reshape %[[F]]
// CHECK-NEXT:    %[[G:.*]] = braid.fused(%[[R]])
// CHECK:           braid.exp
// CHECK:         func.return %[[G]]
func.func @main(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  %two = braid.constant {value = dense<2.0> : tensor<1x1xf32>} : tensor<1x1xf32>
  %b = braid.parameter {key = "b"} : tensor<1x3xf32>
  %0 = braid.mul %x, %two {braid.name = "scale"} : (tensor<2x3xf32>, tensor<1x1xf32>) -> tensor<2x3xf32>
  %1 = braid.add %0, %b {braid.name = "bias"} : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
  %2 = braid.reshape %1 : (tensor<2x3xf32>) -> tensor<6xf32>
  %3 = braid.exp %2 : (tensor<6xf32>) -> tensor<6xf32>
  func.return %3 : tensor<6xf32>
}
