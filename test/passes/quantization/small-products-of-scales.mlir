// The product of these scales has 15 bits, below the normal numbers: sums stay in f32.
// RUN: %braid-opt %s -p convert-qdq-to-integers | filecheck %s

// CHECK-LABEL: @denormal
// CHECK: braid.matmul {{.*}} -> tensor<2x4xf32>
func.func @denormal(%x: tensor<2x3xui8>) -> tensor<2x4xf32> {
  %sx = braid.constant {value = dense<2.0e-27> : tensor<1x1xf32>} : tensor<1x1xf32>
  %sw = braid.constant {value = dense<1.0e-14> : tensor<1x1xf32>} : tensor<1x1xf32>
  %zx = braid.constant {value = dense<3> : tensor<1x1xui8>} : tensor<1x1xui8>
  %zw = braid.constant {value = dense<0> : tensor<1x1xi8>} : tensor<1x1xi8>
  %w = braid.constant {value = dense<7> : tensor<3x4xi8>} : tensor<3x4xi8>
  %0 = braid.dequantize %x, %sx, %zx : (tensor<2x3xui8>, tensor<1x1xf32>, tensor<1x1xui8>) -> tensor<2x3xf32>
  %1 = braid.dequantize %w, %sw, %zw : (tensor<3x4xi8>, tensor<1x1xf32>, tensor<1x1xi8>) -> tensor<3x4xf32>
  %2 = braid.matmul %0, %1 : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  func.return %2 : tensor<2x4xf32>
}

// CHECK-LABEL: @normal
// CHECK: braid.matmul {{.*}}accumulator = i32
func.func @normal(%x: tensor<2x3xui8>) -> tensor<2x4xf32> {
  %sx = braid.constant {value = dense<2.0e-20> : tensor<1x1xf32>} : tensor<1x1xf32>
  %sw = braid.constant {value = dense<1.0e-14> : tensor<1x1xf32>} : tensor<1x1xf32>
  %zx = braid.constant {value = dense<3> : tensor<1x1xui8>} : tensor<1x1xui8>
  %zw = braid.constant {value = dense<0> : tensor<1x1xi8>} : tensor<1x1xi8>
  %w = braid.constant {value = dense<7> : tensor<3x4xi8>} : tensor<3x4xi8>
  %0 = braid.dequantize %x, %sx, %zx : (tensor<2x3xui8>, tensor<1x1xf32>, tensor<1x1xui8>) -> tensor<2x3xf32>
  %1 = braid.dequantize %w, %sw, %zw : (tensor<3x4xi8>, tensor<1x1xf32>, tensor<1x1xi8>) -> tensor<3x4xf32>
  %2 = braid.matmul %0, %1 : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  func.return %2 : tensor<2x4xf32>
}
