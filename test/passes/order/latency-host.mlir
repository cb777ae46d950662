// RUN: %braid-opt %s -p 'search-order{objective=latency target=host},apply-order' --remarks 2>%t.remarks | filecheck %s
// RUN: filecheck %s --input-file %t.remarks --check-prefix=REMARK
// REMARK: 5 ops, before 2.{{.*}}e-05, cost 2.{{.*}}e-05 s

// One matmul computes while the operand of the other one is moved.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: braid.matmul
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = braid.exp %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = braid.matmul %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = braid.matmul %1, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = braid.neg %0 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = braid.add %2, %3 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %4 : tensor<64x64xf32>
}
