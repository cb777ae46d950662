// RUN: %braid-opt %s -p select-fusion,apply-fusion,fuse-gathers --remarks 2>%t | filecheck %s
// RUN: filecheck %s --input-file=%t --check-prefix=REMARK
// RUN: %braid-opt %s -p select-fusion,apply-fusion,fuse-gathers{target=npu-small} | filecheck %s --check-prefix=NPU

// Slabs of the table are read by the product, which has a bias.
// REMARK: 1 of 1 gathers are read by products where they lie
// CHECK-LABEL: @experts
// CHECK-NEXT:    %[[Y:.*]] = braid.fused(%x, %bias, %table, %ids)
// CHECK-NEXT:    ^{{.*}}(%[[X:.*]]: {{.*}}, %[[B:.*]]: {{.*}}, %[[T:.*]]: {{.*}}, %[[I:.*]]: {{.*}}):
// CHECK-NEXT:      %[[G:.*]] = braid.gather_nd %[[T]], %[[I]] {batch_dims = 0 : i64, braid.name = "take"}
// CHECK-NEXT:      %[[P:.*]] = braid.matmul %[[X]], %[[G]]
// CHECK-NEXT:      %[[S:.*]] = braid.add %[[P]], %[[B]]
// CHECK-NEXT:      braid.yield %[[S]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[Y]]
// Families are not asked about groups that run on a chip.
// NPU-LABEL: @experts
// NPU:         braid.gather_nd
// NPU-NEXT:    braid.yield
func.func @experts(%x: tensor<8x1x512xf32>, %table: tensor<32x512x384xf32>, %ids: tensor<8x1xi64>, %bias: tensor<1x1x384xf32>) -> tensor<8x1x384xf32> {
  %0 = braid.gather_nd %table, %ids {batch_dims = 0 : i64, braid.name = "take"} : (tensor<32x512x384xf32>, tensor<8x1xi64>) -> tensor<8x512x384xf32>
  %1 = braid.matmul %x, %0 {braid.name = "product"} : (tensor<8x1x512xf32>, tensor<8x512x384xf32>) -> tensor<8x1x384xf32>
  %2 = braid.add %1, %bias : (tensor<8x1x384xf32>, tensor<1x1x384xf32>) -> tensor<8x1x384xf32>
  func.return %2 : tensor<8x1x384xf32>
}

// The slabs are results as well; columns are gathered.
// CHECK-LABEL: @apart
// CHECK:           braid.gather %
// CHECK-NEXT:      braid.yield
// CHECK:           braid.matmul
// CHECK:           braid.gather %
// CHECK-NEXT:      braid.yield
// CHECK:           braid.matmul
// REMARK: 0 of 1 gathers
func.func @apart(%x: tensor<8x1x512xf32>, %table: tensor<32x512x384xf32>, %ids: tensor<8xi64>, %columns: tensor<16xi64>) -> (tensor<8x1x384xf32>, tensor<8x512x384xf32>, tensor<8x1x16xf32>) {
  %0 = braid.gather %table, %ids {dim = 0 : i64} : (tensor<32x512x384xf32>, tensor<8xi64>) -> tensor<8x512x384xf32>
  %1 = braid.matmul %x, %0 : (tensor<8x1x512xf32>, tensor<8x512x384xf32>) -> tensor<8x1x384xf32>
  %2 = braid.slice %table {offsets = array<i64: 0, 0, 0>, sizes = array<i64: 8, 512, 384>, strides = array<i64: 1, 1, 1>} : (tensor<32x512x384xf32>) -> tensor<8x512x384xf32>
  %3 = braid.gather %2, %columns {dim = 2 : i64} : (tensor<8x512x384xf32>, tensor<16xi64>) -> tensor<8x512x16xf32>
  %4 = braid.matmul %x, %3 : (tensor<8x1x512xf32>, tensor<8x512x16xf32>) -> tensor<8x1x16xf32>
  func.return %1, %0, %4 : tensor<8x1x384xf32>, tensor<8x512x384xf32>, tensor<8x1x16xf32>
}
