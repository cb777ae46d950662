// RUN: not %braid-opt %s -p apply-splits 2>&1 | filecheck %s

// Where the tensors of an op lie was decided for it as a whole: parts of this view would all begin at its 96th byte.
// CHECK:      error: {{.*}}split
// CHECK:      hint: run select-splits, or remove the attribute
func.func @view(%x: tensor<8x8xf32>) -> tensor<3x8xf32> {
  %y = braid.fused(%x) {braid.view_offset = 96 : i64, braid.split = array<i64: 3, 1>} : (tensor<8x8xf32>) -> tensor<3x8xf32> {
  ^bb0(%p: tensor<8x8xf32>):
    %s = braid.slice %p {offsets = array<i64: 3, 0>, sizes = array<i64: 3, 8>, strides = array<i64: 1, 1>} : (tensor<8x8xf32>) -> tensor<3x8xf32>
    braid.yield %s : tensor<3x8xf32>
  }
  func.return %y : tensor<3x8xf32>
}
