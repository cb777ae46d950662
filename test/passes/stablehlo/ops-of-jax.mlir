// RUN: %braid-opt %s -p convert-stablehlo-to-braid | FileCheck %s

// The largest of all windows is found element by element, then its place gets the source.
// CHECK-LABEL: func.func @select_and_scatter
// CHECK:         [[FIRST:%.*]] = braid.slice %x {offsets = array<i64: 0>, sizes = array<i64: 2>, strides = array<i64: 2>}
// CHECK:         [[SECOND:%.*]] = braid.slice %x {offsets = array<i64: 1>, sizes = array<i64: 2>, strides = array<i64: 2>}
// CHECK:         [[STAYS:%.*]] = braid.ge [[FIRST]], [[SECOND]]
// CHECK:         [[NEXT:%.*]] = braid.not [[STAYS]]
// CHECK:         braid.select [[NEXT]], [[SECOND]], [[FIRST]]
// CHECK:         braid.scatter_nd {{%.*}}, {{%.*}}, %s {reduction = "add"}
func.func @select_and_scatter(%x: tensor<4xf32>, %s: tensor<2xf32>, %i: tensor<f32>) -> tensor<4xf32> {
  %y = "stablehlo.select_and_scatter"(%x, %s, %i) <{window_dimensions = array<i64: 2>,
    window_strides = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction GE>}>
      : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%c) : (tensor<i1>) -> ()
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%c) : (tensor<f32>) -> ()
  }) : (tensor<4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// Windows of three are windows of two and one element more.
// CHECK-LABEL: func.func @windows
// CHECK:         [[A:%.*]] = braid.slice %x {offsets = array<i64: 0>, sizes = array<i64: 7>
// CHECK:         [[B:%.*]] = braid.slice %x {offsets = array<i64: 1>, sizes = array<i64: 7>
// CHECK:         [[TWO:%.*]] = braid.mul [[A]], [[B]]
// CHECK:         [[C:%.*]] = braid.slice [[TWO]] {offsets = array<i64: 0>, sizes = array<i64: 6>
// CHECK:         [[D:%.*]] = braid.slice %x {offsets = array<i64: 2>, sizes = array<i64: 6>
// CHECK:         braid.mul [[C]], [[D]]
func.func @windows(%x: tensor<8xf32>, %i: tensor<f32>) -> tensor<6xf32> {
  %y = "stablehlo.reduce_window"(%x, %i) <{window_dimensions = array<i64: 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.multiply"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%c) : (tensor<f32>) -> ()
  }) : (tensor<8xf32>, tensor<f32>) -> tensor<6xf32>
  func.return %y : tensor<6xf32>
}

// CHECK-LABEL: func.func @top_k
// CHECK:         [[WORD:%.*]] = braid.bitcast %x : (tensor<2x8xf32>) -> tensor<2x8xi32>
// CHECK:         [[KEY:%.*]] = braid.xor [[WORD]]
// CHECK:         %{{.*}}, [[PLACES:%.*]] = braid.top_k [[KEY]] {k = 3 : i64, dim = 1 : i64, largest = true}
// CHECK:         braid.gather_elements %x, [[PLACES]]
func.func @top_k(%x: tensor<2x8xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>) {
  %v, %i = "chlo.top_k"(%x) <{k = 3 : i64}> : (tensor<2x8xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>)
  func.return %v, %i : tensor<2x3xf32>, tensor<2x3xi32>
}

// CHECK-LABEL: func.func @padding
// CHECK:         [[PADDED:%.*]] = braid.pad %x
// CHECK:         [[THERE:%.*]] = braid.pad {{%.*}} {{.*}} : (tensor<4xi1>) -> tensor<6xi1>
// CHECK:         braid.select [[THERE]], [[PADDED]]
func.func @padding(%x: tensor<4xf32>, %v: tensor<f32>) -> tensor<6xf32> {
  %y = "stablehlo.pad"(%x, %v) <{edge_padding_low = array<i64: 1>, edge_padding_high = array<i64: 1>,
    interior_padding = array<i64: 0>}> : (tensor<4xf32>, tensor<f32>) -> tensor<6xf32>
  func.return %y : tensor<6xf32>
}

// Groups of the batch are groups of features.
// CHECK-LABEL: func.func @batch_groups
// CHECK:         braid.conv {{.*}}groups = 2 : i64
func.func @batch_groups(%x: tensor<2x4x3xf32>, %w: tensor<3x3x4xf32>) -> tensor<1x2x4xf32> {
  %y = "stablehlo.convolution"(%x, %w) <{batch_group_count = 2 : i64, feature_group_count = 1 : i64,
    dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>}>
    : (tensor<2x4x3xf32>, tensor<3x3x4xf32>) -> tensor<1x2x4xf32>
  func.return %y : tensor<1x2x4xf32>
}

// CHECK-LABEL: func.func @einsum
// CHECK:         [[SUM:%.*]] = braid.reduce %a {kind = "add", dims = array<i64: 2>}
// CHECK:         [[A:%.*]] = braid.reshape [[SUM]] : (tensor<2x3x1xf32>) -> tensor<2x3xf32>
// CHECK:         [[Y:%.*]] = braid.matmul
// CHECK:         braid.transpose
func.func @einsum(%a: tensor<2x3x4xf32>, %b: tensor<3x5xf32>) -> tensor<5x2xf32> {
  %y = "stablehlo.einsum"(%a, %b) <{einsum_config = "ijk,jl->li"}>
    : (tensor<2x3x4xf32>, tensor<3x5xf32>) -> tensor<5x2xf32>
  func.return %y : tensor<5x2xf32>
}

// CHECK-LABEL: func.func @map
// CHECK:         [[S:%.*]] = braid.sub %a, %b
// CHECK-NEXT:    [[Y:%.*]] = braid.abs [[S]]
// CHECK-NEXT:    func.return [[Y]]
func.func @map(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %y = "stablehlo.map"(%a, %b) <{dimensions = array<i64: 0>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = "stablehlo.subtract"(%p, %q) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %t = "stablehlo.abs"(%s) : (tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%t) : (tensor<f32>) -> ()
  }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @tuple
// CHECK-NEXT:    func.return %b
func.func @tuple(%a: tensor<4xf32>, %b: tensor<2xi32>) -> tensor<2xi32> {
  %t = "stablehlo.tuple"(%a, %b)
    : (tensor<4xf32>, tensor<2xi32>) -> tuple<tensor<4xf32>, tensor<2xi32>>
  %y = "stablehlo.get_tuple_element"(%t) <{index = 1 : i32}>
    : (tuple<tensor<4xf32>, tensor<2xi32>>) -> tensor<2xi32>
  func.return %y : tensor<2xi32>
}

// CHECK-LABEL: func.func @ones
// CHECK:         [[X:%.*]] = braid.bitcast %x : (tensor<4xi8>) -> tensor<4xui8>
// CHECK:         braid.constant {value = dense<85>
// CHECK:         braid.constant {value = dense<51>
// CHECK:         braid.constant {value = dense<15>
// CHECK:         braid.bitcast {{%.*}} : (tensor<4xui8>) -> tensor<4xi8>
func.func @ones(%x: tensor<4xi8>) -> tensor<4xi8> {
  %y = "stablehlo.popcnt"(%x) : (tensor<4xi8>) -> tensor<4xi8>
  func.return %y : tensor<4xi8>
}

// CHECK-LABEL: func.func @zeros
// CHECK:         braid.or
// CHECK:         braid.or
// CHECK:         [[FILLED:%.*]] = braid.or
// CHECK:         braid.not [[FILLED]]
func.func @zeros(%x: tensor<4xui8>) -> tensor<4xui8> {
  %y = "stablehlo.count_leading_zeros"(%x) : (tensor<4xui8>) -> tensor<4xui8>
  func.return %y : tensor<4xui8>
}

// CHECK-LABEL: func.func @precision
// CHECK:         [[WORD:%.*]] = braid.bitcast %x : (tensor<4xf32>) -> tensor<4xui32>
// CHECK:         braid.shift_right
// CHECK:         braid.shift_left
// CHECK:         braid.bitcast {{%.*}} : (tensor<4xui32>) -> tensor<4xf32>
func.func @precision(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = "stablehlo.reduce_precision"(%x) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}>
    : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @angle
// CHECK:         braid.atan
func.func @angle(%y: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %a = "stablehlo.atan2"(%y, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// The lower half of each number is the first of two.
// CHECK-LABEL: func.func @halves
// CHECK:         [[LOW:%.*]] = braid.and
// CHECK:         [[UPPER:%.*]] = braid.shift_right
// CHECK:         braid.concat {{%.*}}, {{%.*}} {dim = 1 : i64}
func.func @halves(%x: tensor<3xi32>) -> tensor<3x2xi16> {
  %y = "stablehlo.bitcast_convert"(%x) : (tensor<3xi32>) -> tensor<3x2xi16>
  func.return %y : tensor<3x2xi16>
}

// CHECK-LABEL: func.func @bits
// CHECK:         braid.iota {dim = 0 : i64} : tensor<3xui64>
// CHECK:         braid.constant {value = dense<466688986>
// CHECK:         braid.concat
func.func @bits(%s: tensor<2xui64>) -> (tensor<2xui64>, tensor<6xui32>) {
  %n, %y = "stablehlo.rng_bit_generator"(%s) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}>
    : (tensor<2xui64>) -> (tensor<2xui64>, tensor<6xui32>)
  func.return %n, %y : tensor<2xui64>, tensor<6xui32>
}

// `cumsum`, from the last element on.
// CHECK-LABEL: func.func @cumulative
// CHECK:         [[Y:%.*]] = braid.scan %x {kind = "add", dim = 1 : i64, exclusive = false, reverse = true}
// CHECK-NEXT:    func.return [[Y]]
func.func @cumulative(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %zero = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
  %y = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 1, 8>,
    padding = dense<[[0, 0], [0, 7]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%c) : (tensor<f32>) -> ()
  }) : (tensor<3x8xf32>, tensor<f32>) -> tensor<3x8xf32>
  func.return %y : tensor<3x8xf32>
}

// The first elements of a sorted dim are selected, as `lax.top_k` is written.
// CHECK-LABEL: func.func @first_sorted
// CHECK:         braid.top_k %x {k = 8 : i64
// CHECK:         %{{.*}}, [[PLACES:%.*]] = braid.top_k %x {k = 3 : i64, dim = 1 : i64, largest = true}
// CHECK:         [[Y:%.*]] = braid.gather_elements %x, [[PLACES]]
// CHECK:         func.return [[Y]]
func.func @first_sorted(%x: tensor<2x8xi32>) -> tensor<2x3xi32> {
  %s = "stablehlo.sort"(%x) <{dimension = 1 : i64}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %c = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction GT>}>
      : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.return"(%c) : (tensor<i1>) -> ()
  }) : (tensor<2x8xi32>) -> tensor<2x8xi32>
  %y = "stablehlo.slice"(%s) <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 2, 3>,
    strides = array<i64: 1, 1>}> : (tensor<2x8xi32>) -> tensor<2x3xi32>
  func.return %y : tensor<2x3xi32>
}
