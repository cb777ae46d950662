// RUN: %braid-opt %s -p convert-qdq-to-integers | FileCheck %s

// The zero point of the input and the bias are one term; rows are scaled in fixed point.
// CHECK-LABEL: @dense
// CHECK-NOT:     braid.quantize
// CHECK:         %[[P:.*]] = braid.matmul %x, %w {accumulator = i32, braid.name = "fc"} : (tensor<2x8xui8>, tensor<8x4xi8>) -> tensor<2x4xi32>
// CHECK:         %[[S:.*]] = braid.reduce %w {kind = "add", dims = array<i64: 0>, accumulator = i32}
// CHECK:         %[[C:.*]] = braid.mul %[[S]]
// CHECK:         %[[B:.*]] = braid.sub %{{.*}}, %[[C]]
// CHECK:         %[[T:.*]] = braid.add %[[P]], %[[B]] : (tensor<2x4xi32>, tensor<1x4xi32>)
// CHECK:         %[[R:.*]] = braid.requantize %[[T]], {{.*}} {rounding = "half_even", braid.name = "q"}
// CHECK:         func.return %[[R]]
func.func @dense(%x: tensor<2x8xui8>) -> tensor<2x4xui8> {
  %w = braid.parameter {key = "w"} : tensor<8x4xi8>
  %b = braid.constant {value = dense<0.3> : tensor<1x4xf32>} : tensor<1x4xf32>
  %ws = braid.constant {value = dense<0.02> : tensor<1x4xf32>} : tensor<1x4xf32>
  %wz = braid.constant {value = dense<0> : tensor<1x1xi8>} : tensor<1x1xi8>
  %s = braid.constant {value = dense<0.05> : tensor<1x1xf32>} : tensor<1x1xf32>
  %z = braid.constant {value = dense<90> : tensor<1x1xui8>} : tensor<1x1xui8>
  %0 = braid.dequantize %x, %s, %z : (tensor<2x8xui8>, tensor<1x1xf32>, tensor<1x1xui8>) -> tensor<2x8xf32>
  %1 = braid.dequantize %w, %ws, %wz : (tensor<8x4xi8>, tensor<1x4xf32>, tensor<1x1xi8>) -> tensor<8x4xf32>
  %2 = braid.matmul %0, %1 {braid.name = "fc"} : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %3 = braid.add %2, %b {braid.name = "bias"} : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %4 = braid.quantize %3, %s, %z {braid.name = "q"} : (tensor<2x4xf32>, tensor<1x1xf32>, tensor<1x1xui8>) -> tensor<2x4xui8>
  func.return %4 : tensor<2x4xui8>
}

// Where the padding is known to be zero points, they are there; signed numbers become unsigned.
// CHECK-LABEL: @padded
// CHECK:         %[[U:.*]] = braid.xor
// CHECK:         %[[P:.*]] = braid.pad %[[U]] {low = array<i64: 0, 0, 1, 1>, high = array<i64: 0, 0, 1, 1>, value = 131 : ui8}
// CHECK:         braid.conv %[[P]], %{{.*}}pad_low = array<i64: 0, 0>
func.func @padded(%x: tensor<1x4x6x6xi8>) -> tensor<1x8x6x6xf32> {
  %w = braid.parameter {key = "w"} : tensor<8x4x3x3xi8>
  %s = braid.constant {value = dense<0.05> : tensor<1x1x1x1xf32>} : tensor<1x1x1x1xf32>
  %z = braid.constant {value = dense<3> : tensor<1x1x1x1xi8>} : tensor<1x1x1x1xi8>
  %wz = braid.constant {value = dense<0> : tensor<1x1x1x1xi8>} : tensor<1x1x1x1xi8>
  %0 = braid.dequantize %x, %s, %z : (tensor<1x4x6x6xi8>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xi8>) -> tensor<1x4x6x6xf32>
  %1 = braid.dequantize %w, %s, %wz : (tensor<8x4x3x3xi8>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xi8>) -> tensor<8x4x3x3xf32>
  %2 = braid.conv %0, %1 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
  func.return %2 : tensor<1x8x6x6xf32>
}

// Two activations of any integer types are multiplied without conversion.
// CHECK-LABEL: @attention
// CHECK:         braid.matmul %a, %b {accumulator = i32} : (tensor<2x8xui8>, tensor<8x2xui8>) -> tensor<2x2xi32>
// CHECK:         braid.reduce %b {kind = "add", dims = array<i64: 0>, accumulator = i32}
// CHECK:         braid.reduce %a {kind = "add", dims = array<i64: 1>, accumulator = i32}
// CHECK:         braid.dequantize {{.*}} -> tensor<2x2xf32>
func.func @attention(%a: tensor<2x8xui8>, %b: tensor<8x2xui8>) -> tensor<2x2xf32> {
  %s = braid.constant {value = dense<0.05> : tensor<1x1xf32>} : tensor<1x1xf32>
  %z = braid.constant {value = dense<90> : tensor<1x1xui8>} : tensor<1x1xui8>
  %0 = braid.dequantize %a, %s, %z : (tensor<2x8xui8>, tensor<1x1xf32>, tensor<1x1xui8>) -> tensor<2x8xf32>
  %1 = braid.dequantize %b, %s, %z : (tensor<8x2xui8>, tensor<1x1xf32>, tensor<1x1xui8>) -> tensor<8x2xf32>
  %2 = braid.matmul %0, %1 : (tensor<2x8xf32>, tensor<8x2xf32>) -> tensor<2x2xf32>
  func.return %2 : tensor<2x2xf32>
}

// A pair around a reshape that asks for the scale and zero point that are there leaves nothing, in either type.
// CHECK-LABEL: @pair_around_flatten
// CHECK:         %[[P:.*]] = braid.pool %x
// CHECK-NEXT:    %[[F:.*]] = braid.reshape %[[P]]
// CHECK-NOT:     braid.requantize
// CHECK:         braid.matmul %[[F]], %w
func.func @pair_around_flatten(%x: tensor<1x4x4x4xui8>) -> tensor<1x3xf32> {
  %w = braid.parameter {key = "w"} : tensor<16x3xi8>
  %s = braid.constant {value = dense<0.05> : tensor<1x1x1x1xf32>} : tensor<1x1x1x1xf32>
  %u = braid.constant {value = dense<0> : tensor<1x1x1x1xui8>} : tensor<1x1x1x1xui8>
  %z = braid.constant {value = dense<-128> : tensor<1x1x1x1xi8>} : tensor<1x1x1x1xi8>
  %rs = braid.constant {value = dense<0.05> : tensor<1x1xf32>} : tensor<1x1xf32>
  %rz = braid.constant {value = dense<-128> : tensor<1x1xi8>} : tensor<1x1xi8>
  %wz = braid.constant {value = dense<0> : tensor<1x1xi8>} : tensor<1x1xi8>
  %0 = braid.dequantize %x, %s, %u : (tensor<1x4x4x4xui8>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xui8>) -> tensor<1x4x4x4xf32>
  %1 = braid.pool %0 {kind = "max", window = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>} : (tensor<1x4x4x4xf32>) -> tensor<1x4x2x2xf32>
  %2 = braid.quantize %1, %s, %z : (tensor<1x4x2x2xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xi8>) -> tensor<1x4x2x2xi8>
  %3 = braid.dequantize %2, %s, %z : (tensor<1x4x2x2xi8>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xi8>) -> tensor<1x4x2x2xf32>
  %4 = braid.reshape %3 : (tensor<1x4x2x2xf32>) -> tensor<1x16xf32>
  %5 = braid.quantize %4, %rs, %rz : (tensor<1x16xf32>, tensor<1x1xf32>, tensor<1x1xi8>) -> tensor<1x16xi8>
  %6 = braid.dequantize %5, %rs, %rz : (tensor<1x16xi8>, tensor<1x1xf32>, tensor<1x1xi8>) -> tensor<1x16xf32>
  %7 = braid.dequantize %w, %rs, %wz : (tensor<16x3xi8>, tensor<1x1xf32>, tensor<1x1xi8>) -> tensor<16x3xf32>
  %8 = braid.matmul %6, %7 : (tensor<1x16xf32>, tensor<16x3xf32>) -> tensor<1x3xf32>
  func.return %8 : tensor<1x3xf32>
}

// Weights that are reshaped after their zero point is taken off, as numpy's rules of batches ask for.
// CHECK-LABEL: @reshaped_weights
// CHECK:         %[[W:.*]] = braid.reshape %w : (tensor<8x4xi8>) -> tensor<1x8x4xi8>
// CHECK:         braid.matmul %x, %[[W]] {accumulator = i32} : (tensor<3x2x8xui8>, tensor<1x8x4xi8>) -> tensor<3x2x4xi32>
func.func @reshaped_weights(%x: tensor<3x2x8xui8>, %z: tensor<1x1x1xui8>) -> tensor<3x2x4xi32> {
  %w = braid.parameter {key = "w"} : tensor<8x4xi8>
  %zw = braid.constant {value = dense<0> : tensor<1x1xi32>} : tensor<1x1xi32>
  %wide = braid.cast %x : (tensor<3x2x8xui8>) -> tensor<3x2x8xi32>
  %zx = braid.cast %z : (tensor<1x1x1xui8>) -> tensor<1x1x1xi32>
  %centered = braid.sub %wide, %zx : (tensor<3x2x8xi32>, tensor<1x1x1xi32>) -> tensor<3x2x8xi32>
  %weights = braid.cast %w : (tensor<8x4xi8>) -> tensor<8x4xi32>
  %centered_weights = braid.sub %weights, %zw : (tensor<8x4xi32>, tensor<1x1xi32>) -> tensor<8x4xi32>
  %batch = braid.reshape %centered_weights : (tensor<8x4xi32>) -> tensor<1x8x4xi32>
  %y = braid.matmul %centered, %batch : (tensor<3x2x8xi32>, tensor<1x8x4xi32>) -> tensor<3x2x4xi32>
  func.return %y : tensor<3x2x4xi32>
}

// A real bias is added to real numbers where these are what is wanted, since what is left of a step
// shows in them; one of i32 numbers is added to the sums.
// CHECK-LABEL: @real_bias
// CHECK:         %[[P:.*]] = braid.matmul {{.*}} {accumulator = i32}
// CHECK:         %[[D:.*]] = braid.dequantize {{.*}} -> tensor<2x4xf32>
// CHECK-NEXT:    %[[Y:.*]] = braid.add %[[D]], %b {braid.name = "y"}
// CHECK-NEXT:    return %[[Y]]
func.func @real_bias(%q: tensor<2x4xi8>) -> tensor<2x4xf32> {
  %b = braid.constant {value = dense<0.333> : tensor<1x4xf32>} : tensor<1x4xf32>
  %p = braid.parameter {key = "p"} : tensor<4x4xi8>
  %s = braid.constant {value = dense<0.1> : tensor<1x1xf32>} : tensor<1x1xf32>
  %z = braid.constant {value = dense<0> : tensor<1x1xi8>} : tensor<1x1xi8>
  %0 = braid.dequantize %q, %s, %z : (tensor<2x4xi8>, tensor<1x1xf32>, tensor<1x1xi8>) -> tensor<2x4xf32>
  %1 = braid.dequantize %p, %s, %z : (tensor<4x4xi8>, tensor<1x1xf32>, tensor<1x1xi8>) -> tensor<4x4xf32>
  %2 = braid.matmul %0, %1 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %3 = braid.add %2, %b {braid.name = "y"} : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  func.return %3 : tensor<2x4xf32>
}

// CHECK-LABEL: @whole_bias
// CHECK:         %[[P:.*]] = braid.matmul {{.*}} {accumulator = i32}
// CHECK:         %[[A:.*]] = braid.add %[[P]], {{.*}} -> tensor<2x4xi32>
// CHECK:         %[[Y:.*]] = braid.dequantize %[[A]]
// CHECK-NEXT:    return %[[Y]]
func.func @whole_bias(%q: tensor<2x4xi8>) -> tensor<2x4xf32> {
  %c = braid.constant {value = dense<77> : tensor<1x4xi32>} : tensor<1x4xi32>
  %p = braid.parameter {key = "p"} : tensor<4x4xi8>
  %s = braid.constant {value = dense<0.1> : tensor<1x1xf32>} : tensor<1x1xf32>
  %t = braid.constant {value = dense<0.01> : tensor<1x1xf32>} : tensor<1x1xf32>
  %z = braid.constant {value = dense<0> : tensor<1x1xi8>} : tensor<1x1xi8>
  %y = braid.constant {value = dense<0> : tensor<1x1xi32>} : tensor<1x1xi32>
  %0 = braid.dequantize %q, %s, %z : (tensor<2x4xi8>, tensor<1x1xf32>, tensor<1x1xi8>) -> tensor<2x4xf32>
  %1 = braid.dequantize %p, %s, %z : (tensor<4x4xi8>, tensor<1x1xf32>, tensor<1x1xi8>) -> tensor<4x4xf32>
  %b = braid.dequantize %c, %t, %y : (tensor<1x4xi32>, tensor<1x1xf32>, tensor<1x1xi32>) -> tensor<1x4xf32>
  %2 = braid.matmul %0, %1 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %3 = braid.add %2, %b {braid.name = "y"} : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  func.return %3 : tensor<2x4xf32>
}

// Numbers of another scale are no multiples of the sums' step, unless the remainder is never seen.
// CHECK-LABEL: @other_bias
// CHECK:         braid.matmul {{.*}} {accumulator = i32}
// CHECK:         %[[D:.*]] = braid.dequantize {{.*}}(tensor<2x4xi32>
// CHECK-NEXT:    braid.add %[[D]], %b
// CHECK:         %[[Q:.*]] = braid.matmul {{.*}} {accumulator = i32}
// CHECK:         %[[A:.*]] = braid.add %[[Q]], {{.*}} -> tensor<2x4xi32>
// CHECK:         braid.requantize %[[A]]
func.func @other_bias(%q: tensor<2x4xi8>) -> (tensor<2x4xf32>, tensor<2x4xi8>) {
  %c = braid.constant {value = dense<77> : tensor<1x4xi32>} : tensor<1x4xi32>
  %p = braid.parameter {key = "p"} : tensor<4x4xi8>
  %s = braid.constant {value = dense<0.1> : tensor<1x1xf32>} : tensor<1x1xf32>
  %t = braid.constant {value = dense<0.013> : tensor<1x1xf32>} : tensor<1x1xf32>
  %z = braid.constant {value = dense<0> : tensor<1x1xi8>} : tensor<1x1xi8>
  %y = braid.constant {value = dense<0> : tensor<1x1xi32>} : tensor<1x1xi32>
  %0 = braid.dequantize %q, %s, %z : (tensor<2x4xi8>, tensor<1x1xf32>, tensor<1x1xi8>) -> tensor<2x4xf32>
  %1 = braid.dequantize %p, %s, %z : (tensor<4x4xi8>, tensor<1x1xf32>, tensor<1x1xi8>) -> tensor<4x4xf32>
  %b = braid.dequantize %c, %t, %y : (tensor<1x4xi32>, tensor<1x1xf32>, tensor<1x1xi32>) -> tensor<1x4xf32>
  %2 = braid.matmul %0, %1 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %3 = braid.add %2, %b : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %4 = braid.matmul %0, %1 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %5 = braid.add %4, %b : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %6 = braid.quantize %5, %s, %z : (tensor<2x4xf32>, tensor<1x1xf32>, tensor<1x1xi8>) -> tensor<2x4xi8>
  func.return %3, %6 : tensor<2x4xf32>, tensor<2x4xi8>
}
