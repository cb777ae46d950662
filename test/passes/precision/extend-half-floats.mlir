// RUN: %braid-opt %s -p extend-half-floats | filecheck %s

// Values that are computed and read in between are not rounded.
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

// Values that are only moved do not change; moved results are not converted back.
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

// Branches hand on the types that they did; what opaque ops read and make is theirs.
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

// A value that an iteration computes for the next one is not rounded in between; collected values
// stay in 16 bits.
// CHECK-LABEL: @recurrence
// CHECK:         %[[W:.*]] = braid.cast %w : (tensor<4xf16>) -> tensor<4xf32>
// CHECK:         %[[H:.*]], %[[ALL:.*]] = scf.for {{.*}} iter_args(%[[S:.*]] = %[[W]], %[[E:.*]] = %c) -> (tensor<4xf32>, tensor<8x4xf16>) {
// CHECK:           %[[P:.*]] = braid.mul %[[S]], %[[W]] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:      %[[R:.*]] = braid.reshape %[[P]] : (tensor<4xf32>) -> tensor<1x4xf32>
// CHECK-NEXT:      %[[U:.*]] = braid.cast %[[R]] : (tensor<1x4xf32>) -> tensor<1x4xf16>
// CHECK-NEXT:      %[[N:.*]] = braid.scatter_nd %[[E]], %{{.*}}, %[[U]] {reduction = "none"} : (tensor<8x4xf16>
// CHECK-NEXT:      scf.yield %[[P]], %[[N]] : tensor<4xf32>, tensor<8x4xf16>
// CHECK:         %[[Y:.*]] = braid.cast %[[H]] : (tensor<4xf32>) -> tensor<4xf16>
// CHECK-NEXT:    func.return %[[Y]], %[[ALL]] : tensor<4xf16>, tensor<8x4xf16>
func.func @recurrence(%w: tensor<4xf16>, %n: index, %c: tensor<8x4xf16>) -> (tensor<4xf16>, tensor<8x4xf16>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %h, %all = scf.for %i = %zero to %n step %one iter_args(%s = %w, %every = %c) -> (tensor<4xf16>, tensor<8x4xf16>) {
    %0 = arith.index_cast %i : index to i64
    %1 = tensor.from_elements %0 : tensor<1x1xi64>
    %2 = braid.mul %s, %w : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
    %3 = braid.reshape %2 : (tensor<4xf16>) -> tensor<1x4xf16>
    %4 = braid.scatter_nd %every, %1, %3 {reduction = "none"} : (tensor<8x4xf16>, tensor<1x1xi64>, tensor<1x4xf16>) -> tensor<8x4xf16>
    scf.yield %2, %4 : tensor<4xf16>, tensor<8x4xf16>
  }
  func.return %h, %all : tensor<4xf16>, tensor<8x4xf16>
}

// CHECK-LABEL: @while
// CHECK:         scf.while (%{{.*}} = %go, %[[S:.*]] = %{{.*}}) : (tensor<i1>, tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>) {
// CHECK:           scf.condition(%{{.*}}) %{{.*}}, %[[S]] : tensor<i1>, tensor<4xf32>
// CHECK:         ^bb0(%{{.*}}: tensor<i1>, %[[T:.*]]: tensor<4xf32>):
// CHECK-NEXT:      %[[E:.*]] = braid.exp %[[T]] : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:      scf.yield %{{.*}}, %[[E]] : tensor<i1>, tensor<4xf32>
func.func @while(%go: tensor<i1>, %x: tensor<4xf16>) -> tensor<4xf16> {
  %0:2 = scf.while (%g = %go, %s = %x) : (tensor<i1>, tensor<4xf16>) -> (tensor<i1>, tensor<4xf16>) {
    %1 = tensor.extract %g[] : tensor<i1>
    scf.condition(%1) %g, %s : tensor<i1>, tensor<4xf16>
  } do {
  ^bb0(%h: tensor<i1>, %t: tensor<4xf16>):
    %2 = braid.exp %t : (tensor<4xf16>) -> tensor<4xf16>
    scf.yield %h, %2 : tensor<i1>, tensor<4xf16>
  }
  func.return %0#1 : tensor<4xf16>
}

// States that are only exchanged do not change; a state that gets another one's value has its type.
// CHECK-LABEL: @exchanged
// CHECK:         iter_args(%{{.*}} = %x, %{{.*}} = %y) -> (tensor<4xf16>, tensor<4xf16>)
// CHECK:         iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (tensor<4xf32>, tensor<4xf32>)
func.func @exchanged(%x: tensor<4xf16>, %y: tensor<4xf16>, %n: index) -> (tensor<4xf16>, tensor<4xf16>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a, %b = scf.for %i = %zero to %n step %one iter_args(%p = %x, %q = %y) -> (tensor<4xf16>, tensor<4xf16>) {
    scf.yield %q, %p : tensor<4xf16>, tensor<4xf16>
  }
  %c, %d = scf.for %i = %zero to %n step %one iter_args(%p = %a, %q = %b) -> (tensor<4xf16>, tensor<4xf16>) {
    %r = braid.tanh %p : (tensor<4xf16>) -> tensor<4xf16>
    scf.yield %r, %p : tensor<4xf16>, tensor<4xf16>
  }
  func.return %c, %d : tensor<4xf16>, tensor<4xf16>
}

// Values that only products read are moved in f32, so that they read them in place.
// CHECK-LABEL: @addressed
// CHECK:         %[[K:.*]] = braid.cast %k : (tensor<2x8x4xf16>) -> tensor<2x8x4xf32>
// CHECK:         %[[T:.*]] = braid.transpose %[[K]] {{.*}} -> tensor<2x4x8xf32>
// CHECK:         braid.matmul %{{.*}}, %[[T]] {braid.model_type = f16}
// CHECK:         %[[W:.*]] = braid.parameter {{.*}} : tensor<1x8x4xf16>
// CHECK-NEXT:    braid.transpose %[[W]] {{.*}} -> tensor<1x4x8xf16>
func.func @addressed(%q: tensor<2x1x4xf16>, %k: tensor<2x8x4xf16>) -> (tensor<2x1x8xf16>, tensor<2x1x8xf16>) {
  %0 = braid.transpose %k {permutation = array<i64: 0, 2, 1>} : (tensor<2x8x4xf16>) -> tensor<2x4x8xf16>
  %1 = braid.matmul %q, %0 : (tensor<2x1x4xf16>, tensor<2x4x8xf16>) -> tensor<2x1x8xf16>
  %2 = braid.parameter {key = "w"} : tensor<1x8x4xf16>
  %3 = braid.transpose %2 {permutation = array<i64: 0, 2, 1>} : (tensor<1x8x4xf16>) -> tensor<1x4x8xf16>
  %4 = braid.matmul %q, %3 : (tensor<2x1x4xf16>, tensor<1x4x8xf16>) -> tensor<2x1x8xf16>
  func.return %1, %4 : tensor<2x1x8xf16>, tensor<2x1x8xf16>
}

// A key that was computed is rounded for the cache that it is added to; the other way around most
// of what is joined is computed.
// CHECK-LABEL: @cache
// CHECK:         %[[N:.*]] = braid.cast %{{.*}} : (tensor<2x1x4xf32>) -> tensor<2x1x4xf16>
// CHECK:         %[[K:.*]] = braid.concat %past, %[[N]] {{.*}} -> tensor<2x8x4xf16>
// CHECK:         braid.concat {{.*}} -> tensor<2x2x4xf32>
func.func @cache(%x: tensor<2x1x4xf16>, %past: tensor<2x7x4xf16>) -> (tensor<2x8x4xf16>, tensor<2x2x4xf16>) {
  %0 = braid.tanh %x : (tensor<2x1x4xf16>) -> tensor<2x1x4xf16>
  %1 = braid.concat %past, %0 {dim = 1 : i64} : (tensor<2x7x4xf16>, tensor<2x1x4xf16>) -> tensor<2x8x4xf16>
  %2 = braid.concat %x, %0 {dim = 1 : i64} : (tensor<2x1x4xf16>, tensor<2x1x4xf16>) -> tensor<2x2x4xf16>
  func.return %1, %2 : tensor<2x8x4xf16>, tensor<2x2x4xf16>
}
