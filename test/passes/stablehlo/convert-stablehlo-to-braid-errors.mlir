// RUN: %braid-opt %s -p convert-stablehlo-to-braid --split-input-file --verify-diagnostics

func.func @no_counterpart(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{'%y': the op stablehlo.all_reduce is not supported (dialect 'stablehlo')}}
  %y = "stablehlo.all_reduce"(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %y : tensor<4x4xf32>
}

// -----

func.func @region(%x: tensor<4x8xf32>, %i: tensor<f32>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.reduce': its region has 'stablehlo.while', expected elementwise ops}}
  %y = "stablehlo.reduce"(%x, %i) <{dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.while"(%a) ({
    ^bb0(%d: tensor<f32>):
      %e = "stablehlo.is_finite"(%d) : (tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%e) : (tensor<i1>) -> ()
    }, {
    ^bb0(%d: tensor<f32>):
      %f = "stablehlo.multiply"(%d, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%f) : (tensor<f32>) -> ()
    }) : (tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%c) : (tensor<f32>) -> ()
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @arguments(%x: tensor<4x8xf32>, %i: tensor<f32>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.reduce': its region takes 1 values, expected 2}}
  %y = "stablehlo.reduce"(%x, %i) <{dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>):
    "stablehlo.return"(%a) : (tensor<f32>) -> ()
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @update(%x: tensor<4xf32>, %i: tensor<2x1xi32>, %u: tensor<2xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.scatter': its region is not one of add, and, maximum, minimum, multiply, or, subtract, nor one of its arguments}}
  %y = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.power"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%c) : (tensor<f32>) -> ()
  }) : (tensor<4xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @order(%x: tensor<8192xf32>) -> tensor<8192xf32> {
  // expected-error @+1 {{'stablehlo.sort': its region compares no keys, for which dim 0 of [8192] is too large}}
  %y = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.is_finite"(%a) : (tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%c) : (tensor<i1>) -> ()
  }) : (tensor<8192xf32>) -> tensor<8192xf32>
  func.return %y : tensor<8192xf32>
}

// -----

func.func @windows(%x: tensor<99x99xf32>, %u: tensor<1x1xf32>, %i: tensor<f32>)
    -> tensor<99x99xf32> {
  // expected-error @+1 {{'stablehlo.select_and_scatter': its windows are [99, 99], expected at most 1024 elements}}
  %y = "stablehlo.select_and_scatter"(%x, %u, %i) <{window_dimensions = array<i64: 99, 99>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.compare"(%a, %b) <{
      comparison_direction = #stablehlo<comparison_direction GE>}>
      : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%c) : (tensor<i1>) -> ()
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%c) : (tensor<f32>) -> ()
  }) : (tensor<99x99xf32>, tensor<1x1xf32>, tensor<f32>) -> tensor<99x99xf32>
  func.return %y : tensor<99x99xf32>
}

// -----

func.func @call(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.custom_call': calls 'mine', of which braid knows nothing}}
  %y = "stablehlo.custom_call"(%x) <{call_target_name = "mine"}> : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @wrong_result(%x: tensor<4xf32>) -> tensor<5xf32> {
  // expected-error @+1 {{'stablehlo.abs': result 0 has type tensor<5xf32>, expected tensor<4xf32>}}
  %y = "stablehlo.abs"(%x) : (tensor<4xf32>) -> tensor<5xf32>
  func.return %y : tensor<5xf32>
}

// -----

func.func @dims(%x: tensor<1x4x4x2xf32>, %w: tensor<3x3x2x2xf32>) -> tensor<1x2x2x2xf32> {
  // expected-error @+1 {{'stablehlo.convolution': its fields, regions and types do not fit together}}
  %y = "stablehlo.convolution"(%x, %w) <{batch_group_count = 1 : i64, feature_group_count = 1 : i64,
    dimension_numbers = #stablehlo.conv<[b, 0, 1]x[0, 1, i, o]->[b, 0, 1, f]>}>
    : (tensor<1x4x4x2xf32>, tensor<3x3x2x2xf32>) -> tensor<1x2x2x2xf32>
  func.return %y : tensor<1x2x2x2xf32>
}

// -----

func.func @condition(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.while': its condition returns 0 values, expected one}}
  %y = "stablehlo.while"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    "stablehlo.return"() : () -> ()
  }, {
  ^bb0(%a: tensor<4xf32>):
    "stablehlo.return"(%a) : (tensor<4xf32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @condition_type(%x: tensor<4xf32>, %c: tensor<2xi1>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.if': its condition has type tensor<2xi1>, expected one bool}}
  %y = "stablehlo.if"(%c) ({
    "stablehlo.return"(%x) : (tensor<4xf32>) -> ()
  }, {
    "stablehlo.return"(%x) : (tensor<4xf32>) -> ()
  }) : (tensor<2xi1>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @branch_values(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.if': a region returns (tensor<4xf32>, tensor<i1>), expected (tensor<4xf32>)}}
  %y = "stablehlo.if"(%c) ({
    "stablehlo.return"(%x, %c) : (tensor<4xf32>, tensor<i1>) -> ()
  }, {
    "stablehlo.return"(%x) : (tensor<4xf32>) -> ()
  }) : (tensor<i1>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @loop_arguments(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.while': a region takes (tensor<4xf32>, tensor<4xf32>), expected (tensor<4xf32>)}}
  %y = "stablehlo.while"(%x) ({
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    "stablehlo.return"(%c) : (tensor<i1>) -> ()
  }, {
  ^bb0(%a: tensor<4xf32>):
    "stablehlo.return"(%a) : (tensor<4xf32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @case_of_nothing(%i: tensor<i32>) {
  // expected-error @+1 {{'stablehlo.case': expected at least one region}}
  "stablehlo.case"(%i) : (tensor<i32>) -> ()
  func.return
}

// -----

func.func @complex(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  // expected-error @+1 {{'stablehlo.add': element type complex<f32> is not supported}}
  %y = "stablehlo.add"(%x, %x) : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  func.return %y : tensor<4xcomplex<f32>>
}

// -----

func.func @unranked(%x: tensor<*xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{'stablehlo.abs': a value has type tensor<*xf32>, expected a tensor of a known rank}}
  %y = "stablehlo.abs"(%x) : (tensor<*xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

func.func @open_dim(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // expected-error @+1 {{'stablehlo.reverse': a value has type tensor<?x4xf32>, and nothing says how large its open dims are}}
  %y = "stablehlo.reverse"(%x) <{dimensions = array<i64: 0>}> : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// -----

func.func @no_such_dim(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{'stablehlo.reverse': dim is -1, expected 0 to 1}}
  %y = "stablehlo.reverse"(%x) <{dimensions = array<i64: -1>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}

// -----

func.func @broadcast_from_the_end(%x: tensor<3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{'stablehlo.broadcast_in_dim': dim is -1, expected 0 to 1}}
  %y = "stablehlo.broadcast_in_dim"(%x) <{broadcast_dimensions = array<i64: -1>}>
    : (tensor<3xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}

// -----

func.func @no_such_iota() -> tensor<4xi32> {
  // expected-error @+1 {{'stablehlo.iota': dim is 3, expected 0 to 0}}
  %y = "stablehlo.iota"() <{iota_dimension = 3 : i64}> : () -> tensor<4xi32>
  func.return %y : tensor<4xi32>
}

// -----

func.func @reshaped_to_more(%x: tensor<4xf32>) -> tensor<5xf32> {
  // expected-error @+1 {{'stablehlo.reshape': 4 elements cannot take shape [5]}}
  %y = "stablehlo.reshape"(%x) : (tensor<4xf32>) -> tensor<5xf32>
  func.return %y : tensor<5xf32>
}

// -----

func.func @limit(%x: tensor<9xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{'stablehlo.slice': result 0 has type tensor<2xf32>, expected tensor<4xf32>}}
  %y = "stablehlo.slice"(%x) <{start_indices = array<i64: 0>, limit_indices = array<i64: 7>,
    strides = array<i64: 2>}> : (tensor<9xf32>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}

// -----

func.func @interior(%x: tensor<4xf32>) -> tensor<1xf32> {
  %v = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
  // expected-error @+1 {{'stablehlo.pad': elements of dim 0 are 0 apart, expected at least 1}}
  %y = "stablehlo.pad"(%x, %v) <{edge_padding_low = array<i64: 0>, edge_padding_high = array<i64: 0>,
    interior_padding = array<i64: -1>}> : (tensor<4xf32>, tensor<f32>) -> tensor<1xf32>
  func.return %y : tensor<1xf32>
}

// -----

// Six elements are contracted on either side, in another order.
func.func @contracted(%a: tensor<2x3xf32>, %b: tensor<3x2xf32>) -> tensor<f32> {
  // expected-error @+1 {{'stablehlo.dot_general': its common dims have extents [2, 3] and [3, 2]}}
  %y = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<
    lhs_contracting_dimensions = [0, 1], rhs_contracting_dimensions = [0, 1]>}>
    : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<f32>
  func.return %y : tensor<f32>
}

// -----

func.func @splat_of_another_type() -> tensor<4xi32> {
  // expected-error @+1 {{'stablehlo.constant': result 0 has type tensor<4xi32>, expected tensor<4xf32>}}
  %y = "stablehlo.constant"() <{value = dense<1.5> : tensor<4xf32>}> : () -> tensor<4xi32>
  func.return %y : tensor<4xi32>
}

// -----

func.func @returned_from_a_function() {
  // expected-error @+1 {{the op stablehlo.return is not supported}}
  "stablehlo.return"() : () -> ()
}

// -----

func.func @bools(%x: tensor<4xi1>) -> tensor<4xi1> {
  // expected-error @+1 {{'stablehlo.subtract': 'sub' of bools, expected numbers}}
  %y = "stablehlo.subtract"(%x, %x) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  func.return %y : tensor<4xi1>
}

// -----

// The result has as many elements, in another order.
func.func @transposed_product(%a: tensor<2x4xf32>, %b: tensor<4x3xf32>) -> tensor<3x2xf32> {
  // expected-error @+1 {{'stablehlo.dot_general': result 0 has type tensor<3x2xf32>, expected tensor<2x3xf32>}}
  %y = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<
    lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}>
    : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<3x2xf32>
  func.return %y : tensor<3x2xf32>
}

// -----

func.func @empty_windows(%x: tensor<4xf32>, %i: tensor<f32>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.reduce_window': its windows are [0], expected positive sizes and distances}}
  %y = "stablehlo.reduce_window"(%x, %i) <{window_dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.multiply"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%c) : (tensor<f32>) -> ()
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @no_choice(%x: tensor<4xf32>, %u: tensor<2xf32>, %i: tensor<f32>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.select_and_scatter': its windows are [0], expected positive sizes and distances}}
  %y = "stablehlo.select_and_scatter"(%x, %u, %i) <{window_dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.is_finite"(%a) : (tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%c) : (tensor<i1>) -> ()
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%c) : (tensor<f32>) -> ()
  }) : (tensor<4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
