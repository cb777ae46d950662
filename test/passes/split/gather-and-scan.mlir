// RUN: %braid-opt %s -p 'select-splits{memory=1000}' | filecheck %s
// RUN: %braid-opt %s -p 'select-splits{memory=1000},apply-splits' | filecheck %s --check-prefix=APPLY

// A table is split along what its rows consist of; every part reads the same indices.
// CHECK-LABEL: func.func @embedding
// CHECK:         braid.gather {{.*}}braid.split = array<i64: 1, {{[2-9]}}>
// APPLY-LABEL: func.func @embedding
// APPLY:         braid.slice %table {offsets = array<i64: 0, 0>
// APPLY-NEXT:    braid.gather {{.*}}, %ids
// APPLY:         braid.gather {{.*}}, %ids
// APPLY:         braid.concat {{.*}}dim = 1 : i64
func.func @embedding(%table: tensor<30x16xf32>, %ids: tensor<4xi64>) -> tensor<4x16xf32> {
  %0 = braid.gather %table, %ids {dim = 0 : i64} : (tensor<30x16xf32>, tensor<4xi64>) -> tensor<4x16xf32>
  func.return %0 : tensor<4x16xf32>
}

// A small table that is read often: the indices are split.
// CHECK-LABEL: func.func @many
// CHECK:         braid.gather {{.*}}braid.split = array<i64: {{[2-9]}}, 1>
func.func @many(%table: tensor<4x4xf32>, %ids: tensor<60xi64>) -> tensor<60x4xf32> {
  %0 = braid.gather %table, %ids {dim = 0 : i64} : (tensor<4x4xf32>, tensor<60xi64>) -> tensor<60x4xf32>
  func.return %0 : tensor<60x4xf32>
}

// Elements are taken along the last dim: only the first is split, of both operands.
// APPLY-LABEL: func.func @elements
// APPLY:         braid.slice %x {offsets = array<i64: 0, 0>
// APPLY-NEXT:    braid.slice %i {offsets = array<i64: 0, 0>
// APPLY-NEXT:    braid.gather_elements
func.func @elements(%x: tensor<16x8xf32>, %i: tensor<16x4xi64>) -> tensor<16x4xf32> {
  %0 = braid.gather_elements %x, %i {dim = 1 : i64} : (tensor<16x8xf32>, tensor<16x4xi64>) -> tensor<16x4xf32>
  func.return %0 : tensor<16x4xf32>
}

// A scan runs along its dim: only the other one is split.
// CHECK-LABEL: func.func @scan
// CHECK:         braid.scan {{.*}}braid.split = array<i64: 1, {{[2-9]}}>
func.func @scan(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = braid.scan %x {kind = "add", dim = 0 : i64, exclusive = false, reverse = false} : (tensor<16x16xf32>) -> tensor<16x16xf32>
  func.return %0 : tensor<16x16xf32>
}
