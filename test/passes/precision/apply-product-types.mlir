// RUN: %braid-opt %s -p apply-product-types,simplify | filecheck %s

// The operands of a product are rounded where they are computed, once, also for other readers; sums
// are f32.
// CHECK-LABEL: @shared
// CHECK:         %[[V:.*]] = braid.cast %w : (tensor<8x8xf32>) -> tensor<8x8xbf16>
// CHECK:         %[[E:.*]] = braid.exp %x
// CHECK-NEXT:    %[[N:.*]] = braid.cast %[[E]] : (tensor<4x8xf32>) -> tensor<4x8xbf16>
// CHECK-NEXT:    %[[W:.*]] = braid.cast %[[N]] : (tensor<4x8xbf16>) -> tensor<4x8xf32>
// CHECK:         %[[P:.*]] = braid.matmul %[[N]], %[[V]] {braid.name = "fc", accumulator = f32} : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xf32>
// CHECK:         braid.matmul %[[N]], %{{.*}} {braid.name = "other", accumulator = f32}
// CHECK:         braid.add %[[P]], %[[W]]
func.func @shared(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %w = braid.parameter {key = "w"} : tensor<8x8xf32>
  %0 = braid.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = braid.matmul %0, %w {braid.product_type = bf16, braid.name = "fc"} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %v = braid.parameter {key = "v"} : tensor<8x8xf32>
  %2 = braid.matmul %0, %v {braid.product_type = bf16, braid.name = "other"} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %3 = braid.add %1, %0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %3, %2 : tensor<4x8xf32>, tensor<4x8xf32>
}

// Ops that move numbers to the product move rounded ones, with a rounded padding value.
// CHECK-LABEL: @moved
// CHECK:         %[[E:.*]] = braid.exp %x
// CHECK-NEXT:    %[[N:.*]] = braid.cast %[[E]]
// CHECK-NEXT:    %[[P:.*]] = braid.pad %[[N]] {{.*}} value = 0.000000e+00 : bf16
// CHECK:         braid.conv %[[P]], %{{.*}} {{.*}}accumulator = f32
func.func @moved(%x: tensor<1x4x5x5xf32>) -> tensor<1x8x5x5xf32> {
  %w = braid.parameter {key = "k"} : tensor<8x4x3x3xf32>
  %0 = braid.exp %x : (tensor<1x4x5x5xf32>) -> tensor<1x4x5x5xf32>
  %1 = braid.pad %0 {low = array<i64: 0, 0, 1, 1>, high = array<i64: 0, 0, 1, 1>, value = 0.0 : f32} : (tensor<1x4x5x5xf32>) -> tensor<1x4x7x7xf32>
  %2 = braid.conv %1, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64, braid.product_type = bf16} : (tensor<1x4x7x7xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x5x5xf32>
  func.return %2 : tensor<1x8x5x5xf32>
}

// An argument is rounded first; a result of the function is as it was computed.
// CHECK-LABEL: @ends
// CHECK:         %[[N:.*]] = braid.cast %x : (tensor<4x8xf32>) -> tensor<4x8xbf16>
// CHECK:         %[[P:.*]] = braid.matmul %[[N]]
// CHECK:         %[[R:.*]] = braid.cast %[[P]]
// CHECK:         %[[S:.*]] = braid.matmul %[[R]]
// CHECK:         func.return %[[P]], %[[S]]
func.func @ends(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %w = braid.parameter {key = "w"} : tensor<8x8xf32>
  %0 = braid.matmul %x, %w {braid.product_type = bf16} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = braid.matmul %0, %w {braid.product_type = bf16} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  func.return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// Integers and comparisons are of the numbers as they were.
// CHECK-LABEL: @integers
// CHECK-DAG:     braid.cast %x : (tensor<4x8xf32>) -> tensor<4x8xi32>
// CHECK-DAG:     braid.gt %x, %x
func.func @integers(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xi32>, tensor<4x8xi1>) {
  %w = braid.parameter {key = "w"} : tensor<8x8xf32>
  %0 = braid.matmul %x, %w {braid.product_type = bf16} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = braid.cast %x : (tensor<4x8xf32>) -> tensor<4x8xi32>
  %2 = braid.gt %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  func.return %0, %1, %2 : tensor<4x8xf32>, tensor<4x8xi32>, tensor<4x8xi1>
}
