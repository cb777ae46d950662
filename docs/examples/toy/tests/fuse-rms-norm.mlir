// RUN: braid-opt %s -p canonicalize,cse,fuse-rms-norm | filecheck %s

// The mean of squares along the last dim, and all names of what is replaced.

// CHECK-LABEL: func.func @chain(
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32>
// CHECK-NOT:   braid.reduce
// CHECK:       %[[Y:.*]] = toy.rms_norm %[[X]] {
// CHECK-SAME:    epsilon = 5.000000e-01
// CHECK-SAME:    braid.name = ["quotient", "sum", "square"]
// CHECK:       func.return %[[Y]]
func.func @chain(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %eighth = braid.constant {value = dense<0.125> : tensor<1x1xf32>} : tensor<1x1xf32>
  %epsilon = braid.constant {value = dense<0.5> : tensor<1x1xf32>} : tensor<1x1xf32>
  %q = braid.mul %x, %x {braid.name = "square"} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = braid.reduce %q {kind = "add", dims = array<i64: 1>, braid.name = "sum"} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %m = braid.mul %s, %eighth : (tensor<4x1xf32>, tensor<1x1xf32>) -> tensor<4x1xf32>
  %e = braid.add %m, %epsilon : (tensor<4x1xf32>, tensor<1x1xf32>) -> tensor<4x1xf32>
  %r = braid.sqrt %e : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %y = braid.div %x, %r {braid.name = "quotient"} : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}

// Somebody else reads the sum: the chain must stay.

// CHECK-LABEL: func.func @sum_is_read(
// CHECK-NOT:   toy.rms_norm
// CHECK:       braid.div
func.func @sum_is_read(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>) {
  %eighth = braid.constant {value = dense<0.125> : tensor<1x1xf32>} : tensor<1x1xf32>
  %epsilon = braid.constant {value = dense<0.5> : tensor<1x1xf32>} : tensor<1x1xf32>
  %q = braid.mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = braid.reduce %q {kind = "add", dims = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %m = braid.mul %s, %eighth : (tensor<4x1xf32>, tensor<1x1xf32>) -> tensor<4x1xf32>
  %e = braid.add %m, %epsilon : (tensor<4x1xf32>, tensor<1x1xf32>) -> tensor<4x1xf32>
  %r = braid.sqrt %e : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %y = braid.div %x, %r : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  func.return %y, %s : tensor<4x8xf32>, tensor<4x1xf32>
}
