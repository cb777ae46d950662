// RUN: %braid-opt %s -p convert-stablehlo-to-braid --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @sums
// CHECK:         [[R:%.*]] = braid.reduce %x {kind = "add", dims = array<i64: 1>} : (tensor<4x8xf32>)
// CHECK-NEXT:    braid.reshape [[R]] : (tensor<4x1xf32>) -> tensor<4xf32>
func.func @sums(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %zero = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
  %y = "stablehlo.reduce"(%x, %zero) <{dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%c) : (tensor<f32>) -> ()
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @no_counterpart(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{'stablehlo.cholesky': there is nothing in braid to convert it to}}
  %y = "stablehlo.cholesky"(%x) <{lower = true}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %y : tensor<4x4xf32>
}

// -----

func.func @region(%x: tensor<4x8xf32>, %i: tensor<f32>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.reduce': its region is not one of add, and, maximum, minimum, multiply, or}}
  %y = "stablehlo.reduce"(%x, %i) <{dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.add"(%a, %a) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%c) : (tensor<f32>) -> ()
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @total_order(%x: tensor<4xf32>) -> tensor<4xi1> {
  // expected-error @+1 {{'stablehlo.compare': floats are compared by their total order}}
  %y = "stablehlo.compare"(%x, %x) <{compare_type = #stablehlo<comparison_type TOTALORDER>,
    comparison_direction = #stablehlo<comparison_direction GT>}>
    : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  func.return %y : tensor<4xi1>
}

// -----

func.func @call(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.custom_call': calls 'mine', of which braid knows nothing}}
  %y = "stablehlo.custom_call"(%x) <{call_target_name = "mine"}> : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @pad(%x: tensor<4xf32>, %v: tensor<f32>) -> tensor<6xf32> {
  // expected-error @+1 {{'stablehlo.pad': operand 1 is not a constant number}}
  %y = "stablehlo.pad"(%x, %v) <{edge_padding_low = array<i64: 1>, edge_padding_high = array<i64: 1>,
    interior_padding = array<i64: 0>}> : (tensor<4xf32>, tensor<f32>) -> tensor<6xf32>
  func.return %y : tensor<6xf32>
}

// -----

func.func @wrong_result(%x: tensor<4xf32>) -> tensor<5xf32> {
  // expected-error @+1 {{'stablehlo.abs': a result has type tensor<5xf32>, expected tensor<4xf32>}}
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
  // expected-error @+1 {{'stablehlo.while': its regions and types do not fit together}}
  %y = "stablehlo.while"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    "stablehlo.return"() : () -> ()
  }, {
  ^bb0(%a: tensor<4xf32>):
    "stablehlo.return"(%a) : (tensor<4xf32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
