// RUN: %braid-opt %s -p fold-scale-into-weights | filecheck %s
// RUN: env BRAID_NUMERICS=strict %braid-opt %s -p fold-scale-into-weights | filecheck %s --check-prefix=STRICT

// With strict numerics nothing changes.
// STRICT-NOT:    tensor<4x1x1x1xf32>
// STRICT:        @matmul
// STRICT:        braid.mul %0, %s
// STRICT-NEXT:   func.return

// A batch normalization: the scale goes into the weights, what is left is a bias.
// CHECK-LABEL: @batch_norm
// CHECK:         %[[S:.*]] = braid.reshape %scale {{.*}} -> tensor<4x1x1x1xf32>
// CHECK-NEXT:    %[[W:.*]] = braid.mul %w, %[[S]]
// CHECK-NEXT:    %[[Y:.*]] = braid.conv %x, %[[W]]
// CHECK-NEXT:    %[[N:.*]] = braid.neg %mean
// CHECK-NEXT:    %[[T0:.*]] = braid.mul %[[N]], %scale
// CHECK-NEXT:    %[[T:.*]] = braid.add %[[T0]], %shift
// CHECK-NEXT:    %[[Z:.*]] = braid.add %[[Y]], %[[T]]
// CHECK-SAME:      braid.name = ["sub", "mul", "bn"]
// CHECK-NEXT:    func.return %[[Z]]
func.func @batch_norm(%x: tensor<1x3x8x8xf32>) -> tensor<1x4x6x6xf32> {
  %w = braid.constant {value = dense<0.125> : tensor<4x3x3x3xf32>} : tensor<4x3x3x3xf32>
  %mean = braid.constant {value = dense<0.5> : tensor<1x4x1x1xf32>} : tensor<1x4x1x1xf32>
  %scale = braid.constant {value = dense<1.5> : tensor<1x4x1x1xf32>} : tensor<1x4x1x1xf32>
  %shift = braid.constant {value = dense<0.25> : tensor<1x4x1x1xf32>} : tensor<1x4x1x1xf32>
  %0 = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %1 = braid.sub %0, %mean {braid.name = "sub"} : (tensor<1x4x6x6xf32>, tensor<1x4x1x1xf32>) -> tensor<1x4x6x6xf32>
  %2 = braid.mul %scale, %1 {braid.name = "mul"} : (tensor<1x4x1x1xf32>, tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  %3 = braid.add %2, %shift {braid.name = "bn"} : (tensor<1x4x6x6xf32>, tensor<1x4x1x1xf32>) -> tensor<1x4x6x6xf32>
  func.return %3 : tensor<1x4x6x6xf32>
}

// CHECK-LABEL: @matmul
// CHECK:         %[[W:.*]] = braid.mul %w, %s
// CHECK-NEXT:    %[[Y:.*]] = braid.matmul %x, %[[W]]
// CHECK-NEXT:    func.return %[[Y]]
func.func @matmul(%x: tensor<2x3xf32>) -> tensor<2x4xf32> {
  %w = braid.constant {value = dense<0.125> : tensor<3x4xf32>} : tensor<3x4xf32>
  %s = braid.constant {value = dense<1.5> : tensor<1x4xf32>} : tensor<1x4xf32>
  %0 = braid.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = braid.mul %0, %s : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  func.return %1 : tensor<2x4xf32>
}

// Without a product before it, nothing is merged.
// CHECK-LABEL: @no_product
// CHECK:         %[[Y:.*]] = braid.sub %x, %b
// CHECK-NEXT:    %[[Z:.*]] = braid.div %[[Y]], %a
// CHECK-NEXT:    func.return %[[Z]]
func.func @no_product(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = braid.constant {value = dense<1.5> : tensor<1x3xf32>} : tensor<1x3xf32>
  %b = braid.constant {value = dense<0.5> : tensor<1x3xf32>} : tensor<1x3xf32>
  %0 = braid.sub %x, %b : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
  %1 = braid.div %0, %a : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}

// A scale along rows is not a scale of output channels; a product with other uses keeps its
// weights; a scale that is not known stays; so does one of integers.
// CHECK-LABEL: @not_foldable
// CHECK:         %[[A:.*]] = braid.matmul %x, %w
// CHECK-NEXT:    %[[B:.*]] = braid.mul %[[A]], %rows
// CHECK-NEXT:    %[[C:.*]] = braid.matmul %x, %w
// CHECK-NEXT:    %[[D:.*]] = braid.mul %[[C]], %columns
// CHECK-NEXT:    %[[E:.*]] = braid.matmul %x, %w
// CHECK-NEXT:    %[[F:.*]] = braid.mul %[[E]], %y
// CHECK-NEXT:    func.return %[[B]], %[[C]], %[[D]], %[[F]]
func.func @not_foldable(%x: tensor<2x3xf32>, %y: tensor<1x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %w = braid.constant {value = dense<0.125> : tensor<3x4xf32>} : tensor<3x4xf32>
  %rows = braid.constant {value = dense<1.5> : tensor<2x1xf32>} : tensor<2x1xf32>
  %columns = braid.constant {value = dense<1.5> : tensor<1x4xf32>} : tensor<1x4xf32>
  %a = braid.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %b = braid.mul %a, %rows : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  %c = braid.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %d = braid.mul %c, %columns : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %e = braid.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %f = braid.mul %e, %y : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  func.return %b, %c, %d, %f : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// A quotient divides the weights; the second of two scales stays, so that what the first one makes
// infinite is.
// CHECK-LABEL: @quotient
// CHECK:         %[[W:.*]] = braid.div %w, %s
// CHECK-NEXT:    %[[Y:.*]] = braid.matmul %x, %[[W]]
// CHECK-NEXT:    %[[Z:.*]] = braid.mul %[[Y]], %t
// CHECK-NEXT:    func.return %[[Z]]
func.func @quotient(%x: tensor<2x3xf32>) -> tensor<2x4xf32> {
  %w = braid.constant {value = dense<0.125> : tensor<3x4xf32>} : tensor<3x4xf32>
  %s = braid.constant {value = dense<3.0> : tensor<1x4xf32>} : tensor<1x4xf32>
  %t = braid.constant {value = dense<5.0> : tensor<1x4xf32>} : tensor<1x4xf32>
  %0 = braid.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = braid.div %0, %s : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %2 = braid.mul %1, %t : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  func.return %2 : tensor<2x4xf32>
}

// Shifts that cancel round the value to which they are added; a scale before them is folded, one
// after them is not.
// CHECK-LABEL: @rounding
// CHECK:         %[[W:.*]] = braid.mul %w, %s
// CHECK-NEXT:    %[[Y:.*]] = braid.matmul %x, %[[W]]
// CHECK-NEXT:    %[[U:.*]] = braid.add %[[Y]], %k
// CHECK-NEXT:    %[[V:.*]] = braid.sub %[[U]], %k
// CHECK-NEXT:    %[[Z:.*]] = braid.div %[[V]], %s
// CHECK-NEXT:    func.return %[[Z]]
func.func @rounding(%x: tensor<2x3xf32>) -> tensor<2x4xf32> {
  %w = braid.constant {value = dense<0.125> : tensor<3x4xf32>} : tensor<3x4xf32>
  %s = braid.constant {value = dense<10.0> : tensor<1x4xf32>} : tensor<1x4xf32>
  %k = braid.constant {value = dense<12582912.0> : tensor<1x4xf32>} : tensor<1x4xf32>
  %0 = braid.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = braid.mul %0, %s : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %2 = braid.add %1, %k : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %3 = braid.sub %2, %k : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %4 = braid.div %3, %s : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  func.return %4 : tensor<2x4xf32>
}

// A scale that weights lose digits by, one that is too large, and one of unknown weights stay.
// CHECK-LABEL: @not_right
// CHECK:         %[[A:.*]] = braid.matmul %x, %w
// CHECK-NEXT:    braid.mul %[[A]], %tiny
// CHECK-NEXT:    %[[B:.*]] = braid.matmul %x, %w
// CHECK-NEXT:    braid.mul %[[B]], %huge
// CHECK-NEXT:    %[[C:.*]] = braid.matmul %x, %p
// CHECK-NEXT:    braid.mul %[[C]], %s
func.func @not_right(%x: tensor<2x3xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %w = braid.constant {value = dense<0.125> : tensor<3x4xf32>} : tensor<3x4xf32>
  %p = braid.parameter {key = "p"} : tensor<3x4xf32>
  %tiny = braid.constant {value = dense<2.0e-38> : tensor<1x4xf32>} : tensor<1x4xf32>
  %huge = braid.constant {value = dense<1.0e+06> : tensor<1x4xf32>} : tensor<1x4xf32>
  %s = braid.constant {value = dense<1.5> : tensor<1x4xf32>} : tensor<1x4xf32>
  %0 = braid.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = braid.mul %0, %tiny : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %2 = braid.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %3 = braid.mul %2, %huge : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %4 = braid.matmul %x, %p : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %5 = braid.mul %4, %s : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  func.return %1, %3, %5 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// What scales may be computed behind what shifts: all of it is used behind both.
// CHECK-LABEL: @scale_behind_shift
// CHECK:         %s = braid.constant
// CHECK-NEXT:    %[[W:.*]] = braid.mul %w, %s
// CHECK-NEXT:    %[[Y:.*]] = braid.matmul %x, %[[W]]
// CHECK-NEXT:    %[[B:.*]] = braid.mul %b, %s
// CHECK-NEXT:    %[[Z:.*]] = braid.add %[[Y]], %[[B]]
// CHECK-NEXT:    func.return %[[Z]]
func.func @scale_behind_shift(%x: tensor<2x3xf32>) -> tensor<2x4xf32> {
  %w = braid.constant {value = dense<0.125> : tensor<3x4xf32>} : tensor<3x4xf32>
  %b = braid.constant {value = dense<0.5> : tensor<1x4xf32>} : tensor<1x4xf32>
  %0 = braid.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = braid.add %0, %b : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %s = braid.constant {value = dense<1.5> : tensor<1x4xf32>} : tensor<1x4xf32>
  %2 = braid.mul %1, %s : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  func.return %2 : tensor<2x4xf32>
}
