// RUN: %braid-opt %s -p fold-scale-into-weights,canonicalize | filecheck %s

// A batch normalization: the scale goes into the weights, what is left is a bias.
// CHECK-LABEL: @batch_norm
// CHECK-DAG:     %[[N:.*]] = braid.neg %mean
// CHECK-DAG:     %[[T0:.*]] = braid.mul %[[N]], %scale
// CHECK-DAG:     %[[T:.*]] = braid.add %[[T0]], %shift
// CHECK-DAG:     %[[S:.*]] = braid.reshape %scale {{.*}} -> tensor<4x1x1x1xf32>
// CHECK-DAG:     %[[W:.*]] = braid.mul %w, %[[S]]
// CHECK:         %[[Y:.*]] = braid.conv %x, %[[W]]
// CHECK-NEXT:    %[[Z:.*]] = braid.add %[[Y]], %[[T]]
// CHECK-SAME:      braid.name = ["sub", "mul", "bn"]
// CHECK-NEXT:    func.return %[[Z]]
func.func @batch_norm(%x: tensor<1x3x8x8xf32>) -> tensor<1x4x6x6xf32> {
  %w = braid.parameter {key = "w"} : tensor<4x3x3x3xf32>
  %mean = braid.parameter {key = "mean"} : tensor<1x4x1x1xf32>
  %scale = braid.parameter {key = "scale"} : tensor<1x4x1x1xf32>
  %shift = braid.parameter {key = "shift"} : tensor<1x4x1x1xf32>
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
  %w = braid.parameter {key = "w"} : tensor<3x4xf32>
  %s = braid.parameter {key = "s"} : tensor<1x4xf32>
  %0 = braid.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = braid.mul %0, %s : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  func.return %1 : tensor<2x4xf32>
}

// Without a product before it, a chain is one scale and one shift.
// CHECK-LABEL: @no_product
// CHECK:         %[[S:.*]] = braid.reciprocal %a
// CHECK:         %[[T:.*]] = braid.mul %{{.*}}, %[[S]]
// CHECK:         %[[Y:.*]] = braid.mul %x, %[[S]]
// CHECK-NEXT:    %[[Z:.*]] = braid.add %[[Y]], %[[T]]
// CHECK-NEXT:    func.return %[[Z]]
func.func @no_product(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = braid.parameter {key = "a"} : tensor<1x3xf32>
  %b = braid.parameter {key = "b"} : tensor<1x3xf32>
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
  %w = braid.parameter {key = "w"} : tensor<3x4xf32>
  %rows = braid.parameter {key = "rows"} : tensor<2x1xf32>
  %columns = braid.parameter {key = "columns"} : tensor<1x4xf32>
  %a = braid.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %b = braid.mul %a, %rows : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  %c = braid.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %d = braid.mul %c, %columns : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %e = braid.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %f = braid.mul %e, %y : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  func.return %b, %c, %d, %f : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}
