// RUN: %braid-opt %s -p convert-tosa-to-braid,cse | FileCheck %s

// Channels come last in TOSA: transposes go around the convolution. The bias is an add.
// CHECK-LABEL: func.func @convolution
// CHECK:       %[[W:.*]] = braid.transpose %w {permutation = array<i64: 0, 3, 1, 2>}
// CHECK:       %[[X:.*]] = braid.transpose %x {permutation = array<i64: 0, 3, 1, 2>}
// CHECK:       %[[C:.*]] = braid.conv %[[X]], %[[W]] {strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 1, 3>, pad_high = array<i64: 2, 4>, groups = 1 : i64}
// CHECK:       %[[B:.*]] = braid.reshape %b : (tensor<4xf32>) -> tensor<1x4x1x1xf32>
// CHECK:       %[[S:.*]] = braid.add %[[C]], %[[B]]
// CHECK:       braid.transpose %[[S]] {permutation = array<i64: 0, 2, 3, 1>, braid.name = "conv1"}
func.func @convolution(%x: tensor<1x8x8x3xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<4xf32>) -> tensor<1x5x13x4xf32> {
  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %y = tosa.conv2d %x, %w, %b, %z, %z {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 2, 3, 4>, stride = array<i64: 2, 1>, braid.name = "conv1"} : (tensor<1x8x8x3xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x5x13x4xf32>
  func.return %y : tensor<1x5x13x4xf32>
}

// Zero points are taken from the integers once these are as wide as the result.
// CHECK-LABEL: func.func @zero_points
// CHECK:       %[[A:.*]] = braid.cast %a : (tensor<1x2x3xi8>) -> tensor<1x2x3xi32>
// CHECK:       %[[P:.*]] = braid.constant {value = dense<-7> : tensor<1x1x1xi32>}
// CHECK:       %[[L:.*]] = braid.sub %[[A]], %[[P]]
// CHECK:       %[[R:.*]] = braid.cast %b
// CHECK:       braid.matmul %[[L]], %[[R]]
func.func @zero_points(%a: tensor<1x2x3xi8>, %b: tensor<1x3x4xi8>) -> tensor<1x2x4xi32> {
  %p = "tosa.const"() <{values = dense<-7> : tensor<1xi8>}> : () -> tensor<1xi8>
  %z = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %y = tosa.matmul %a, %b, %p, %z : (tensor<1x2x3xi8>, tensor<1x3x4xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x2x4xi32>
  func.return %y : tensor<1x2x4xi32>
}

// A mean counts the elements that are not padding.
// CHECK-LABEL: func.func @average_pool
// CHECK:       %[[T:.*]] = braid.pool %{{.*}} {kind = "add", window = array<i64: 2, 2>
// CHECK:       %[[N:.*]] = braid.constant {value = dense<{{\[\[\[\[}}1.000000e+00, 2.000000e+00], [2.000000e+00, 4.000000e+00]]]]>
// CHECK:       braid.div %[[T]], %[[N]]
func.func @average_pool(%x: tensor<1x3x3x1xf32>) -> tensor<1x2x2x1xf32> {
  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %y = tosa.avg_pool2d %x, %z, %z {acc_type = f32, kernel = array<i64: 2, 2>, pad = array<i64: 1, 0, 1, 0>, stride = array<i64: 2, 2>} : (tensor<1x3x3x1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x2x2x1xf32>
  func.return %y : tensor<1x2x2x1xf32>
}

// Shapes are operands in TOSA; they are removed.
// CHECK-LABEL: func.func @shapes
// CHECK-NEXT:  %[[R:.*]] = braid.reshape %x : (tensor<2x3xf32>) -> tensor<3x2xf32>
// CHECK-NEXT:  braid.slice %[[R]] {offsets = array<i64: 1, 0>, sizes = array<i64: 2, 1>, strides = array<i64: 1, 1>}
// CHECK-NEXT:  func.return
func.func @shapes(%x: tensor<2x3xf32>) -> tensor<2x1xf32> {
  %s = tosa.const_shape {values = dense<[3, 2]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %r = tosa.reshape %x, %s : (tensor<2x3xf32>, !tosa.shape<2>) -> tensor<3x2xf32>
  %o = tosa.const_shape {values = dense<[1, 0]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %n = tosa.const_shape {values = dense<[2, 1]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %y = tosa.slice %r, %o, %n : (tensor<3x2xf32>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<2x1xf32>
  func.return %y : tensor<2x1xf32>
}

// CHECK-LABEL: func.func @branches
// CHECK:       %[[P:.*]] = tensor.extract %c[] : tensor<i1>
// CHECK:       scf.if %[[P]] -> (tensor<4xf32>) {
// CHECK-NEXT:    braid.exp %x
// CHECK:       } else {
// CHECK-NEXT:    scf.yield %x
func.func @branches(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  %y = tosa.cond_if %c (%a = %x) : tensor<i1> (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %e = tosa.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    tosa.yield %e : tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xf32>):
    tosa.yield %a : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @loop
// CHECK:       scf.while (%[[V:.*]] = %x) : (tensor<i32>) -> tensor<i32> {
// CHECK:         %[[G:.*]] = braid.gt
// CHECK:         %[[E:.*]] = tensor.extract %[[G]][] : tensor<i1>
// CHECK:         scf.condition(%[[E]]) %[[V]]
// CHECK:       } do {
// CHECK:         braid.add
// CHECK:         scf.yield
func.func @loop(%x: tensor<i32>, %n: tensor<i32>) -> tensor<i32> {
  %y = tosa.while_loop (%v = %x) : (tensor<i32>) -> tensor<i32> {
    %g = tosa.greater %n, %v : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tosa.yield %g : tensor<i1>
  } do {
  ^bb0(%v: tensor<i32>):
    %w = tosa.add %v, %v : (tensor<i32>, tensor<i32>) -> tensor<i32>
    tosa.yield %w : tensor<i32>
  }
  func.return %y : tensor<i32>
}
