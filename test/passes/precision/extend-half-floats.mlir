// RUN: %braid-opt %s -p extend-half-floats | filecheck %s

// What is computed and read in between is not rounded.
// CHECK-LABEL: @chain
// CHECK-SAME:    (%x: tensor<4xf16>)
// CHECK-NEXT:    %[[X:.*]] = braid.cast %x : (tensor<4xf16>) -> tensor<4xf32>
// CHECK-NEXT:    %[[S:.*]] = braid.mul %[[X]], %[[X]] {braid.name = "square"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %[[E:.*]] = braid.exp %[[S]] : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %[[R:.*]] = braid.cast %[[E]] : (tensor<4xf32>) -> tensor<4xf16>
// CHECK-NEXT:    func.return %[[R]] : tensor<4xf16>
func.func @chain(%x: tensor<4xf16>) -> tensor<4xf16> {
  %0 = braid.mul %x, %x {braid.name = "square"} : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  %1 = braid.exp %0 : (tensor<4xf16>) -> tensor<4xf16>
  func.return %1 : tensor<4xf16>
}

// What is only moved stays as it is; what is moved after it was computed does not go back.
// CHECK-LABEL: @moved
// CHECK-NEXT:    %[[T:.*]] = braid.transpose %x {{.*}} -> tensor<3x2xbf16>
// CHECK-NEXT:    %[[W:.*]] = braid.cast %[[T]] : (tensor<3x2xbf16>) -> tensor<3x2xf32>
// CHECK-NEXT:    %[[N:.*]] = braid.neg %[[W]]
// CHECK-NEXT:    %[[P:.*]] = braid.pad %[[N]] {low = array<i64: 0, 1>, high = array<i64: 0, 0>, value = 1.500000e+00 : f32} : (tensor<3x2xf32>) -> tensor<3x3xf32>
// CHECK-NEXT:    %[[R:.*]] = braid.cast %[[P]] : (tensor<3x3xf32>) -> tensor<3x3xbf16>
// CHECK-NEXT:    func.return %[[R]], %[[T]]
func.func @moved(%x: tensor<2x3xbf16>) -> (tensor<3x3xbf16>, tensor<3x2xbf16>) {
  %0 = braid.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x3xbf16>) -> tensor<3x2xbf16>
  %1 = braid.neg %0 : (tensor<3x2xbf16>) -> tensor<3x2xbf16>
  %2 = braid.pad %1 {low = array<i64: 0, 1>, high = array<i64: 0, 0>, value = 1.5 : bf16} : (tensor<3x2xbf16>) -> tensor<3x3xbf16>
  func.return %2, %0 : tensor<3x3xbf16>, tensor<3x2xbf16>
}

// Explicit casts round, and bits are those of the type.
// CHECK-LABEL: @explicit
// CHECK-NEXT:    %[[H:.*]] = braid.cast %x : (tensor<4xf32>) -> tensor<4xf16>
// CHECK-NEXT:    %[[W:.*]] = braid.cast %[[H]] : (tensor<4xf16>) -> tensor<4xf32>
// CHECK-NEXT:    %[[N:.*]] = braid.neg %[[W]] : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %[[R:.*]] = braid.cast %[[N]] : (tensor<4xf32>) -> tensor<4xf16>
// CHECK-NEXT:    %[[I:.*]] = braid.cast %[[N]] : (tensor<4xf32>) -> tensor<4xi32>
// CHECK-NEXT:    %[[B:.*]] = braid.bitcast %[[R]] : (tensor<4xf16>) -> tensor<4xi16>
// CHECK-NEXT:    func.return %[[I]], %[[B]]
func.func @explicit(%x: tensor<4xf32>) -> (tensor<4xi32>, tensor<4xi16>) {
  %0 = braid.cast %x : (tensor<4xf32>) -> tensor<4xf16>
  %1 = braid.neg %0 : (tensor<4xf16>) -> tensor<4xf16>
  %2 = braid.cast %1 : (tensor<4xf16>) -> tensor<4xi32>
  %3 = braid.bitcast %1 : (tensor<4xf16>) -> tensor<4xi16>
  func.return %2, %3 : tensor<4xi32>, tensor<4xi16>
}

// Control flow carries the types that it did; what opaque ops read and make is theirs.
// CHECK-LABEL: @control_flow
// CHECK:         scf.if %c -> (tensor<4xf16>) {
// CHECK-NEXT:      %[[N:.*]] = braid.neg %{{.*}} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:      %[[R:.*]] = braid.cast %[[N]] : (tensor<4xf32>) -> tensor<4xf16>
// CHECK-NEXT:      scf.yield %[[R]] : tensor<4xf16>
// CHECK:         braid.opaque "norm"(%{{.*}}) : (tensor<4xf16>) -> tensor<4xf16>
func.func @control_flow(%c: i1, %x: tensor<4xf16>) -> tensor<4xf16> {
  %0 = scf.if %c -> (tensor<4xf16>) {
    %1 = braid.neg %x : (tensor<4xf16>) -> tensor<4xf16>
    scf.yield %1 : tensor<4xf16>
  } else {
    scf.yield %x : tensor<4xf16>
  }
  %2 = braid.opaque "norm"(%0) : (tensor<4xf16>) -> tensor<4xf16>
  func.return %2 : tensor<4xf16>
}

// f32 is left alone.
// CHECK-LABEL: @single
// CHECK-NEXT:    %0 = braid.neg %x : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    func.return %0
func.func @single(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = braid.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// Sums in f32 are those of f32.
// CHECK-LABEL: @accumulated
// CHECK:         %[[Y:.*]] = braid.matmul %{{.*}}, %{{.*}} {braid.model_type = bf16} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
// CHECK:         %[[Z:.*]] = braid.conv
// CHECK-SAME:      {strides = array<i64: 1>, dilations = array<i64: 1>, pad_low = array<i64: 0>, pad_high = array<i64: 0>, groups = 2 : i64, braid.model_type = f16}
// CHECK-SAME:      (tensor<1x4x8xf32>, tensor<6x2x3xf32>) -> tensor<1x6x6xf32>
// CHECK:         func.return %[[Y]], %[[Z]]
func.func @accumulated(%x: tensor<2x3xbf16>, %w: tensor<3x4xbf16>, %a: tensor<1x4x8xf16>, %b: tensor<6x2x3xf16>) -> (tensor<2x4xf32>, tensor<1x6x6xf32>) {
  %0 = braid.matmul %x, %w {accumulator = f32} : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xf32>
  %1 = braid.conv %a, %b {strides = array<i64: 1>, dilations = array<i64: 1>, pad_low = array<i64: 0>, pad_high = array<i64: 0>, groups = 2 : i64, accumulator = f32} : (tensor<1x4x8xf16>, tensor<6x2x3xf16>) -> tensor<1x6x6xf32>
  func.return %0, %1 : tensor<2x4xf32>, tensor<1x6x6xf32>
}
