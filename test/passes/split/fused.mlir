// RUN: %braid-opt %s -p 'select-splits{memory=1000},apply-splits' | filecheck %s

// A group is split as a whole: each part is a group, with what its members need of the operands.
// CHECK-LABEL: func.func @rows
// CHECK-NEXT:    %[[A:.*]] = braid.slice %x {offsets = array<i64: 0, 0>, sizes = array<i64: 8, 16>
// CHECK-NEXT:    %[[P:.*]] = braid.fused(%[[A]], %b)
// CHECK:           braid.add {{.*}} -> tensor<8x16xf32>
// CHECK-NEXT:      braid.reduce {{.*}} -> tensor<8x1xf32>
// CHECK-NEXT:      braid.yield
// CHECK:         %[[B:.*]] = braid.slice %x {offsets = array<i64: 8, 0>
// CHECK-NEXT:    %[[Q:.*]] = braid.fused(%[[B]], %b)
// CHECK:         braid.concat %[[P]], %[[Q]] {dim = 0 : i64}
func.func @rows(%x: tensor<16x16xf32>, %b: tensor<1x16xf32>) -> tensor<16x1xf32> {
  %0 = braid.fused(%x, %b) : (tensor<16x16xf32>, tensor<1x16xf32>) -> tensor<16x1xf32> {
  ^bb0(%a: tensor<16x16xf32>, %c: tensor<1x16xf32>):
    %1 = braid.add %a, %c : (tensor<16x16xf32>, tensor<1x16xf32>) -> tensor<16x16xf32>
    %2 = braid.reduce %1 {kind = "add", dims = array<i64: 1>} : (tensor<16x16xf32>) -> tensor<16x1xf32>
    braid.yield %2 : tensor<16x1xf32>
  }
  func.return %0 : tensor<16x1xf32>
}
