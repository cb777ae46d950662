// RUN: %braid-opt %s -p 'name-open-dims,convert-stablehlo-to-braid' --split-input-file --verify-diagnostics

func.func @data(%x: tensor<?xf32>, %s: tensor<2xi32>) -> tensor<?x?xf32> {
  // expected-error @+1 {{'stablehlo.dynamic_reshape': operand 1 is computed from data, expected numbers and sizes of inputs}}
  %y = "stablehlo.dynamic_reshape"(%x, %s) : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  func.return %y : tensor<?x?xf32>
}

// -----

func.func @floats(%x: tensor<?xf32>) -> tensor<?x?xf32> {
  %s = "stablehlo.constant"() <{value = dense<1.5> : tensor<2xf32>}> : () -> tensor<2xf32>
  // expected-error @+1 {{'stablehlo.dynamic_reshape': operand 1 has type tensor<2xf32>, expected integers}}
  %y = "stablehlo.dynamic_reshape"(%x, %s) : (tensor<?xf32>, tensor<2xf32>) -> tensor<?x?xf32>
  func.return %y : tensor<?x?xf32>
}

// -----

func.func @repeated(%x: tensor<1xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{'stablehlo.broadcast_in_dim': nothing says how large dim 0 of its result is}}
  %y = "stablehlo.broadcast_in_dim"(%x) <{broadcast_dimensions = array<i64: 0>}> : (tensor<1xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// -----

func.func @never(%x: tensor<?xf32>) -> tensor<?xf32> {
  %n = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
  %none = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
  %below = "stablehlo.compare"(%n, %none) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
  // expected-error @+1 {{'stablehlo.custom_call': it never holds: n < 0}}
  "stablehlo.custom_call"(%below, %n) <{call_target_name = "shape_assertion", error_message = "n < 0"}> : (tensor<i1>, tensor<i32>) -> ()
  func.return %x : tensor<?xf32>
}

// -----

func.func @large(%x: tensor<?xf32>) -> tensor<?xf32> {
  %z = "stablehlo.constant"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
  %e = "stablehlo.constant"() <{value = dense<4> : tensor<1xi32>}> : () -> tensor<1xi32>
  // expected-error @+1 {{'stablehlo.real_dynamic_slice': its strides are [0], expected at least 1}}
  %y = "stablehlo.real_dynamic_slice"(%x, %z, %e, %z) : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}
