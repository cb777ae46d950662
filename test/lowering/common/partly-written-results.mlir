// RUN: %braid compile %s --emit linalg | FileCheck %s

// A nest that does not write some elements of its destination begins from a copy of it, even if
// only dead ops read that.
// CHECK:      #[[ALL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK:      #[[COLUMN:.*]] = affine_map<(d0) -> (d0, 1)>
// CHECK:      func.func @kernel_0(%[[X:.*]]: memref<4xf32> {llvm.noalias}, %[[D:.*]]: memref<4x3xf32> {llvm.noalias}, %{{.*}}: memref<4x3xf32> {llvm.noalias},
// CHECK:        %[[COPY:.*]] = memref.view
// CHECK-NEXT:   linalg.generic {indexing_maps = [#[[ALL]], #[[ALL]]], {{.*}}} ins(%[[D]] : memref<4x3xf32>) outs(%[[COPY]] : memref<4x3xf32>)
// CHECK:        linalg.generic {indexing_maps = [#{{.*}}, #[[COLUMN]]], {{.*}}} ins(%[[X]] : memref<4xf32>) outs(%[[COPY]] : memref<4x3xf32>)
// CHECK-NEXT:   ^bb0(%[[A:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:     linalg.yield %[[A]] : f32
func.func @main(%x: tensor<4xf32>, %d: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i, 1)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%d : tensor<4x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %unused = arith.addf %a, %o : f32
    linalg.yield %a : f32
  } -> tensor<4x3xf32>
  func.return %y : tensor<4x3xf32>
}
