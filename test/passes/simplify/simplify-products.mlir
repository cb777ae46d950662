// RUN: %braid-opt %s -p simplify-products,simplify | filecheck %s

// Keys are not scaled, transposed as they are: scores are fewer.
// CHECK-LABEL: @scaled
// CHECK-NEXT:    %[[T:.*]] = braid.transpose %k
// CHECK-NEXT:    %[[P:.*]] = braid.matmul %q, %[[T]]
// CHECK-NEXT:    %[[C:.*]] = braid.constant {{.*}}1.250000e-01{{.*}} : tensor<1x1x1xf32>
// CHECK-NEXT:    %[[Y:.*]] = braid.mul %[[P]], %[[C]] {braid.name = "scores"}
// CHECK-NEXT:    return %[[Y]]
func.func @scaled(%q: tensor<8x1x64xf32>, %k: tensor<8x2048x64xf32>) -> tensor<8x1x2048xf32> {
  %c = braid.constant {value = dense<0.125> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %0 = braid.mul %k, %c {braid.name = "scale"} : (tensor<8x2048x64xf32>, tensor<1x1x1xf32>) -> tensor<8x2048x64xf32>
  %1 = braid.transpose %0 {permutation = array<i64: 0, 2, 1>} : (tensor<8x2048x64xf32>) -> tensor<8x64x2048xf32>
  %2 = braid.matmul %q, %1 {braid.name = "scores"} : (tensor<8x1x64xf32>, tensor<8x64x2048xf32>) -> tensor<8x1x2048xf32>
  func.return %2 : tensor<8x1x2048xf32>
}

// A larger result; scales that another op reads, that are not single numbers, or not finite.
// CHECK-LABEL: @not_scaled
// CHECK-COUNT-4: braid.matmul
// CHECK-NEXT:    return
func.func @not_scaled(%q: tensor<1x256x64xf32>, %k: tensor<1x64x2048xf32>, %r: tensor<1x1x64xf32>, %v: tensor<1x64x1xf32>) -> (tensor<1x256x2048xf32>, tensor<1x1x2048xf32>, tensor<1x64x2048xf32>, tensor<1x1x2048xf32>, tensor<1x1x2048xf32>) {
  %c = braid.constant {value = dense<0.125> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %i = braid.constant {value = dense<0x7F800000> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %0 = braid.mul %k, %c : (tensor<1x64x2048xf32>, tensor<1x1x1xf32>) -> tensor<1x64x2048xf32>
  %1 = braid.matmul %q, %0 : (tensor<1x256x64xf32>, tensor<1x64x2048xf32>) -> tensor<1x256x2048xf32>
  %2 = braid.div %k, %c : (tensor<1x64x2048xf32>, tensor<1x1x1xf32>) -> tensor<1x64x2048xf32>
  %3 = braid.matmul %r, %2 : (tensor<1x1x64xf32>, tensor<1x64x2048xf32>) -> tensor<1x1x2048xf32>
  %4 = braid.mul %k, %v : (tensor<1x64x2048xf32>, tensor<1x64x1xf32>) -> tensor<1x64x2048xf32>
  %5 = braid.matmul %r, %4 : (tensor<1x1x64xf32>, tensor<1x64x2048xf32>) -> tensor<1x1x2048xf32>
  %6 = braid.mul %k, %i : (tensor<1x64x2048xf32>, tensor<1x1x1xf32>) -> tensor<1x64x2048xf32>
  %7 = braid.matmul %r, %6 : (tensor<1x1x64xf32>, tensor<1x64x2048xf32>) -> tensor<1x1x2048xf32>
  func.return %1, %3, %2, %5, %7 : tensor<1x256x2048xf32>, tensor<1x1x2048xf32>, tensor<1x64x2048xf32>, tensor<1x1x2048xf32>, tensor<1x1x2048xf32>
}

// Numbers that keep operands within the limits of their type stay where they are, as their product.
// CHECK-LABEL: @far_scales
// CHECK:         braid.mul %k
// CHECK-NEXT:    braid.matmul %q
// CHECK:         braid.mul %q
// CHECK:         braid.mul %k
// CHECK-NEXT:    braid.matmul
// CHECK-NEXT:    return
func.func @far_scales(%q: tensor<8x1x64xf32>, %k: tensor<8x64x2048xf32>) -> (tensor<8x1x2048xf32>, tensor<8x1x2048xf32>) {
  %c = braid.constant {value = dense<1.0e-30> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %d = braid.constant {value = dense<1000.0> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %0 = braid.mul %k, %c : (tensor<8x64x2048xf32>, tensor<1x1x1xf32>) -> tensor<8x64x2048xf32>
  %1 = braid.matmul %q, %0 : (tensor<8x1x64xf32>, tensor<8x64x2048xf32>) -> tensor<8x1x2048xf32>
  %2 = braid.mul %q, %d : (tensor<8x1x64xf32>, tensor<1x1x1xf32>) -> tensor<8x1x64xf32>
  %3 = braid.mul %k, %d : (tensor<8x64x2048xf32>, tensor<1x1x1xf32>) -> tensor<8x64x2048xf32>
  %4 = braid.matmul %2, %3 : (tensor<8x1x64xf32>, tensor<8x64x2048xf32>) -> tensor<8x1x2048xf32>
  func.return %1, %4 : tensor<8x1x2048xf32>, tensor<8x1x2048xf32>
}

// Four heads of queries read the same keys: they are four rows, times five of their own.
// CHECK-LABEL: @grouped
// CHECK-NEXT:    %[[Q:.*]] = braid.reshape %q : (tensor<2x32x5x64xf32>) -> tensor<2x8x20x64xf32>
// CHECK-NEXT:    %[[T:.*]] = braid.transpose %k
// CHECK-NEXT:    %[[P:.*]] = braid.matmul %[[Q]], %[[T]] : (tensor<2x8x20x64xf32>, tensor<2x8x64x128xf32>) -> tensor<2x8x20x128xf32>
// CHECK-NEXT:    %[[Y:.*]] = braid.reshape %[[P]] {braid.name = "scores"} {{.*}} -> tensor<2x32x5x128xf32>
// CHECK-NEXT:    return %[[Y]]
func.func @grouped(%q: tensor<2x32x5x64xf32>, %k: tensor<2x8x128x64xf32>) -> tensor<2x32x5x128xf32> {
  %0 = braid.reshape %k : (tensor<2x8x128x64xf32>) -> tensor<2x8x1x128x64xf32>
  %1 = braid.broadcast %0 : (tensor<2x8x1x128x64xf32>) -> tensor<2x8x4x128x64xf32>
  %2 = braid.reshape %1 : (tensor<2x8x4x128x64xf32>) -> tensor<2x32x128x64xf32>
  %3 = braid.transpose %2 {permutation = array<i64: 0, 1, 3, 2>} : (tensor<2x32x128x64xf32>) -> tensor<2x32x64x128xf32>
  %4 = braid.matmul %q, %3 {braid.name = "scores"} : (tensor<2x32x5x64xf32>, tensor<2x32x64x128xf32>) -> tensor<2x32x5x128xf32>
  func.return %4 : tensor<2x32x5x128xf32>
}

// Heads that follow each other read different keys (tiles instead of groups); too many rows.
// CHECK-LABEL: @not_grouped
// CHECK:         braid.matmul {{.*}} -> tensor<32x5x128xf32>
// CHECK:         braid.matmul {{.*}} -> tensor<32x17x128xf32>
func.func @not_grouped(%q: tensor<32x5x64xf32>, %m: tensor<32x17x64xf32>, %v: tensor<8x64x128xf32>) -> (tensor<32x5x128xf32>, tensor<32x17x128xf32>) {
  %0 = braid.reshape %v : (tensor<8x64x128xf32>) -> tensor<1x8x64x128xf32>
  %1 = braid.broadcast %0 : (tensor<1x8x64x128xf32>) -> tensor<4x8x64x128xf32>
  %2 = braid.reshape %1 : (tensor<4x8x64x128xf32>) -> tensor<32x64x128xf32>
  %3 = braid.matmul %q, %2 : (tensor<32x5x64xf32>, tensor<32x64x128xf32>) -> tensor<32x5x128xf32>
  %4 = braid.reshape %v : (tensor<8x64x128xf32>) -> tensor<8x1x64x128xf32>
  %5 = braid.broadcast %4 : (tensor<8x1x64x128xf32>) -> tensor<8x4x64x128xf32>
  %6 = braid.reshape %5 : (tensor<8x4x64x128xf32>) -> tensor<32x64x128xf32>
  %7 = braid.matmul %m, %6 : (tensor<32x17x64xf32>, tensor<32x64x128xf32>) -> tensor<32x17x128xf32>
  func.return %3, %7 : tensor<32x5x128xf32>, tensor<32x17x128xf32>
}

// Behind a scale, keys were transposed in 16 bits.
// CHECK-LABEL: @converted
// CHECK-NEXT:    %[[W:.*]] = braid.cast %k {braid.name = "wide"} : (tensor<8x2048x64xf16>) -> tensor<8x2048x64xf32>
// CHECK-NEXT:    %[[T:.*]] = braid.transpose %[[W]] {{.*}} -> tensor<8x64x2048xf32>
// CHECK-NEXT:    %[[P:.*]] = braid.matmul %q, %[[T]]
func.func @converted(%q: tensor<8x1x64xf32>, %k: tensor<8x2048x64xf16>) -> tensor<8x1x2048xf32> {
  %c = braid.constant {value = dense<0.125> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %0 = braid.transpose %k {permutation = array<i64: 0, 2, 1>} : (tensor<8x2048x64xf16>) -> tensor<8x64x2048xf16>
  %1 = braid.cast %0 {braid.name = "wide"} : (tensor<8x64x2048xf16>) -> tensor<8x64x2048xf32>
  %2 = braid.mul %1, %c : (tensor<8x64x2048xf32>, tensor<1x1x1xf32>) -> tensor<8x64x2048xf32>
  %3 = braid.matmul %q, %2 {braid.name = "scores"} : (tensor<8x1x64xf32>, tensor<8x64x2048xf32>) -> tensor<8x1x2048xf32>
  func.return %3 : tensor<8x1x2048xf32>
}

// A product by a column reads the matrix where it lies, by a transpose that is a layout; of as many
// columns as there are batches it becomes one of so many rows.
// CHECK-LABEL: @column
// CHECK-NEXT:    %[[R:.*]] = braid.reshape %v : (tensor<4x64x1xf32>) -> tensor<4x1x64xf32>
// CHECK-NEXT:    %[[T:.*]] = braid.transpose %a {permutation = array<i64: 0, 2, 1>} : (tensor<1x128x64xf32>) -> tensor<1x64x128xf32>
// CHECK-NEXT:    %[[P:.*]] = braid.matmul %[[R]], %[[T]] : (tensor<4x1x64xf32>, tensor<1x64x128xf32>) -> tensor<4x1x128xf32>
// CHECK-NEXT:    %[[Y:.*]] = braid.reshape %[[P]] {braid.name = "y"} : (tensor<4x1x128xf32>) -> tensor<4x128x1xf32>
// CHECK-NEXT:    return %[[Y]]
func.func @column(%a: tensor<1x128x64xf32>, %v: tensor<4x64x1xf32>) -> tensor<4x128x1xf32> {
  %0 = braid.matmul %a, %v {braid.name = "y"} : (tensor<1x128x64xf32>, tensor<4x64x1xf32>) -> tensor<4x128x1xf32>
  func.return %0 : tensor<4x128x1xf32>
}

// Two columns, a row, integers.
// CHECK-LABEL: @no_column
// CHECK-NEXT:    braid.matmul %a, %b
// CHECK-NEXT:    braid.matmul %r, %v
// CHECK-NEXT:    braid.matmul %i, %j
// CHECK-NEXT:    return
func.func @no_column(%a: tensor<128x64xf32>, %b: tensor<64x2xf32>, %r: tensor<1x64xf32>, %v: tensor<64x1xf32>, %i: tensor<8x4xi32>, %j: tensor<4x1xi32>) -> (tensor<128x2xf32>, tensor<1x1xf32>, tensor<8x1xi32>) {
  %0 = braid.matmul %a, %b : (tensor<128x64xf32>, tensor<64x2xf32>) -> tensor<128x2xf32>
  %1 = braid.matmul %r, %v : (tensor<1x64xf32>, tensor<64x1xf32>) -> tensor<1x1xf32>
  %2 = braid.matmul %i, %j : (tensor<8x4xi32>, tensor<4x1xi32>) -> tensor<8x1xi32>
  func.return %0, %1, %2 : tensor<128x2xf32>, tensor<1x1xf32>, tensor<8x1xi32>
}

// Queries and keys that are both scaled, as ONNX's attention does: one number behind the product.
// CHECK-LABEL: @both_scaled
// CHECK-NEXT:    %[[P:.*]] = braid.matmul %q, %k
// CHECK-NEXT:    %[[C:.*]] = braid.constant {{.*}}1.250000e-01{{.*}} : tensor<1x1x1xf32>
// CHECK-NEXT:    %[[Y:.*]] = braid.mul %[[P]], %[[C]]
// CHECK-NEXT:    return %[[Y]]
func.func @both_scaled(%q: tensor<8x128x64xf32>, %k: tensor<8x64x512xf32>) -> tensor<8x128x512xf32> {
  %c = braid.constant {value = dense<0.5> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %d = braid.constant {value = dense<4.0> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %0 = braid.mul %q, %c : (tensor<8x128x64xf32>, tensor<1x1x1xf32>) -> tensor<8x128x64xf32>
  %1 = braid.div %k, %d : (tensor<8x64x512xf32>, tensor<1x1x1xf32>) -> tensor<8x64x512xf32>
  %2 = braid.matmul %0, %1 : (tensor<8x128x64xf32>, tensor<8x64x512xf32>) -> tensor<8x128x512xf32>
  func.return %2 : tensor<8x128x512xf32>
}

// Of f64 as of f32: a scale goes behind a product, and one by a column is one of a row.
// CHECK-LABEL: @doubles
// CHECK:         %[[P:.*]] = braid.matmul {{.*}} -> tensor<8x1x2048xf64>
// CHECK-NEXT:    %[[C:.*]] = braid.constant {{.*}}1.250000e-01{{.*}} : tensor<1x1x1xf64>
// CHECK-NEXT:    %[[Y:.*]] = braid.mul %[[P]], %[[C]]
// CHECK:         braid.matmul {{.*}} -> tensor<1x64xf64>
func.func @doubles(%q: tensor<8x1x64xf64>, %k: tensor<8x64x2048xf64>, %m: tensor<64x32xf64>, %x: tensor<32x1xf64>) -> (tensor<8x1x2048xf64>, tensor<64x1xf64>) {
  %c = braid.constant {value = dense<0.125> : tensor<1x1x1xf64>} : tensor<1x1x1xf64>
  %0 = braid.mul %k, %c : (tensor<8x64x2048xf64>, tensor<1x1x1xf64>) -> tensor<8x64x2048xf64>
  %1 = braid.matmul %q, %0 : (tensor<8x1x64xf64>, tensor<8x64x2048xf64>) -> tensor<8x1x2048xf64>
  %2 = braid.matmul %m, %x : (tensor<64x32xf64>, tensor<32x1xf64>) -> tensor<64x1xf64>
  func.return %1, %2 : tensor<8x1x2048xf64>, tensor<64x1xf64>
}
