// RUN: %braid-opt %s -p "select-rematerialization{tensor-threshold=8KiB},apply-rematerialization,select-fusion,apply-fusion" --print-ir-after-all -o /dev/null 2>&1 | filecheck %s

// Squared distances of all pairs of points on a line, and the nearest of each: from G1, in which
// two tensors are large, to G4, in which one kernel makes and consumes them.

func.func @main(%a: tensor<64x1xf32>, %b: tensor<1x64xf32>) -> (tensor<64x1xf32>, tensor<1x64xf32>) {
  %0 = braid.sub %a, %b {braid.name = "difference"} : (tensor<64x1xf32>, tensor<1x64xf32>) -> tensor<64x64xf32>
  %1 = braid.mul %0, %0 {braid.name = "square"} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = braid.reduce %1 {braid.name = "rows", kind = "minimum", dims = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x1xf32>
  %3 = braid.reduce %1 {braid.name = "columns", kind = "minimum", dims = array<i64: 0>} : (tensor<64x64xf32>) -> tensor<1x64xf32>
  func.return %2, %3 : tensor<64x1xf32>, tensor<1x64xf32>
}

// G1 with the sets: a set per reader, with all that is large.
// CHECK-LABEL: IR Dump After SelectRematerializationPass
// CHECK:         braid.sub %a, %b {braid.name = "difference", braid.recompute_sets = array<i64: 0, 1>}
// CHECK-NEXT:    braid.mul %0, %0 {braid.name = "square", braid.recompute_sets = array<i64: 0, 1>}
// CHECK-NEXT:    braid.reduce %1 {braid.name = "rows", {{.*}}braid.recompute_operands = array<i64: 0>}
// CHECK-NEXT:    braid.reduce %1 {braid.name = "columns", {{.*}}braid.recompute_operands = array<i64: 1>}
// CHECK-NEXT:    func.return

// G3: the subgraphs of G2 stand before their readers, with their names; the originals are gone.
// CHECK-LABEL: IR Dump After ApplyRematerializationPass
// CHECK:       func.func @main
// CHECK-NEXT:    %[[D0:.*]] = braid.sub %a, %b {braid.name = "difference", braid.recomputed = 0 : i64, braid.fusion_group = 0 : i64}
// CHECK-NEXT:    %[[S0:.*]] = braid.mul %[[D0]], %[[D0]] {braid.name = "square", braid.recomputed = 0 : i64, braid.fusion_group = 0 : i64}
// CHECK-NEXT:    %[[R0:.*]] = braid.reduce %[[S0]] {braid.name = "rows", {{.*}}braid.fusion_group = 0 : i64}
// CHECK-NEXT:    %[[D1:.*]] = braid.sub %a, %b {braid.name = "difference", braid.recomputed = 1 : i64, braid.fusion_group = 1 : i64}
// CHECK-NEXT:    %[[S1:.*]] = braid.mul %[[D1]], %[[D1]] {braid.name = "square", braid.recomputed = 1 : i64, braid.fusion_group = 1 : i64}
// CHECK-NEXT:    %[[R1:.*]] = braid.reduce %[[S1]] {braid.name = "columns", {{.*}}braid.fusion_group = 1 : i64}
// CHECK-NEXT:    func.return %[[R0]], %[[R1]]

// G4: between the kernels there is nothing large.
// CHECK-LABEL: IR Dump After ApplyFusionPass
// CHECK:       func.func @main
// CHECK-NEXT:    %[[F0:.*]] = braid.fused(%a, %b) {braid.name = ["difference", "square", "rows"]}
// CHECK:         %[[F1:.*]] = braid.fused(%a, %b) {braid.name = ["difference", "square", "columns"]}
// CHECK:         func.return %[[F0]], %[[F1]]
