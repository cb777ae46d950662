// RUN: %braid-opt %s -p hoist-parameter-expressions,select-fusion,apply-fusion,fuse-conversions --remarks 2>%t | filecheck %s
// RUN: filecheck %s --input-file=%t --check-prefix=REMARK
// RUN: %braid-opt %s -p hoist-parameter-expressions,select-fusion,apply-fusion,fuse-conversions{target=npu-small} | filecheck %s --check-prefix=NPU

// Keys are transposed in place, and widened as they are loaded; so are values.
// REMARK: 2 of 2 conversions are part of products
// CHECK-LABEL: @attention
// CHECK-NEXT:    %[[T:.*]] = braid.fused(%k) : (tensor<8x2048x64xf16>) -> tensor<8x64x2048xf16>
// CHECK-NEXT:    ^
// CHECK-NEXT:      braid.transpose
// CHECK-NEXT:      braid.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[S:.*]] = braid.fused(%q, %[[T]])
// CHECK-NEXT:    ^
// CHECK-NEXT:      %[[W:.*]] = braid.cast
// CHECK-NEXT:      braid.matmul %{{.*}}, %[[W]]
// CHECK:         %[[Y:.*]] = braid.fused(%{{.*}}, %v)
// CHECK-NEXT:    ^
// CHECK-NEXT:      braid.cast
// CHECK-NEXT:      braid.matmul
// Families are not asked about groups that run on a chip.
// NPU-LABEL: @attention
// NPU:         braid.cast
// NPU-NEXT:    braid.yield
func.func @attention(%q: tensor<8x1x64xf32>, %k: tensor<8x2048x64xf16>, %v: tensor<8x2048x64xf16>) -> tensor<8x1x64xf32> {
  %0 = braid.cast %k : (tensor<8x2048x64xf16>) -> tensor<8x2048x64xf32>
  %1 = braid.transpose %0 {permutation = array<i64: 0, 2, 1>} : (tensor<8x2048x64xf32>) -> tensor<8x64x2048xf32>
  %2 = braid.matmul %q, %1 : (tensor<8x1x64xf32>, tensor<8x64x2048xf32>) -> tensor<8x1x2048xf32>
  %3 = braid.softmax %2 {dim = 2 : i64} : (tensor<8x1x2048xf32>) -> tensor<8x1x2048xf32>
  %4 = braid.cast %v : (tensor<8x2048x64xf16>) -> tensor<8x2048x64xf32>
  %5 = braid.matmul %3, %4 : (tensor<8x1x2048xf32>, tensor<8x2048x64xf32>) -> tensor<8x1x64xf32>
  func.return %5 : tensor<8x1x64xf32>
}

// A reshape is between; the wide numbers are a result as well.
// REMARK: 1 of 1 conversions
// CHECK-LABEL: @reshaped
// CHECK:           braid.cast
// CHECK-NEXT:      braid.yield
// CHECK:         %[[R:.*]] = braid.reshape %k : (tensor<2048x512xbf16>) -> tensor<1x2048x512xbf16>
// CHECK-NEXT:    braid.fused(%{{.*}}, %[[R]])
// CHECK-NEXT:    ^
// CHECK-NEXT:      braid.cast
// CHECK-NEXT:      braid.matmul
func.func @reshaped(%q: tensor<1x1x2048xf32>, %k: tensor<2048x512xbf16>) -> (tensor<1x1x512xf32>, tensor<2048x512xf32>) {
  %0 = braid.cast %k : (tensor<2048x512xbf16>) -> tensor<2048x512xf32>
  %1 = braid.reshape %0 : (tensor<2048x512xf32>) -> tensor<1x2048x512xf32>
  %2 = braid.matmul %q, %1 : (tensor<1x1x2048xf32>, tensor<1x2048x512xf32>) -> tensor<1x1x512xf32>
  func.return %2, %0 : tensor<1x1x512xf32>, tensor<2048x512xf32>
}

// One row waits for weights, of which there is half as much; many rows take a little longer so.
// REMARK: 2 of 2 conversions
// CHECK-LABEL: @weights
// CHECK-DAG:     %[[W:.*]] = braid.parameter {key = "w"{{.*}}} : tensor<2048x512xf16>
// CHECK-DAG:     %[[V:.*]] = braid.parameter {key = "w"{{.*}}} : tensor<2048x512xf16>
// CHECK:         braid.fused(%x, %[[W]])
// CHECK-NEXT:    ^
// CHECK-NEXT:      braid.cast
// CHECK-NEXT:      braid.matmul
// CHECK:         braid.fused(%xs, %{{.*}}) : (tensor<512x2048xf32>, tensor<2048x512xf16>)
// CHECK-NEXT:    ^
// CHECK-NEXT:      braid.cast
// CHECK-NEXT:      braid.matmul
func.func @weights(%x: tensor<1x2048xf32>, %xs: tensor<512x2048xf32>) -> (tensor<1x512xf32>, tensor<512x512xf32>) {
  %0 = braid.parameter {key = "w"} : tensor<2048x512xf16>
  %1 = braid.cast %0 : (tensor<2048x512xf16>) -> tensor<2048x512xf32>
  %2 = braid.matmul %x, %1 : (tensor<1x2048xf32>, tensor<2048x512xf32>) -> tensor<1x512xf32>
  %3 = braid.matmul %xs, %1 : (tensor<512x2048xf32>, tensor<2048x512xf32>) -> tensor<512x512xf32>
  func.return %2, %3 : tensor<1x512xf32>, tensor<512x512xf32>
}
