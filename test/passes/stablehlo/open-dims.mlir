// RUN: %braid-opt %s -p 'name-open-dims,convert-stablehlo-to-braid' --split-input-file | filecheck %s

// A size that is data, and one from which a shape is computed.
// CHECK-LABEL: @sizes
// CHECK: braid.size_values {values = #braid.sizes<["\22input0[0]\22"]>} : tensor<i64>
// CHECK: braid.reshape %x {{.*}} -> tensor<?x2x4xf32, #braid.sizes<["\22input0[0]\22"]>>
func.func @sizes(%x: tensor<?x8xf32>) -> (tensor<i32>, tensor<?x2x4xf32>) {
  %n = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?x8xf32>) -> tensor<i32>
  %n1 = "stablehlo.reshape"(%n) : (tensor<i32>) -> tensor<1xi32>
  %c = "stablehlo.constant"() <{value = dense<[2, 4]> : tensor<2xi32>}> : () -> tensor<2xi32>
  %s = "stablehlo.concatenate"(%n1, %c) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
  %y = "stablehlo.dynamic_reshape"(%x, %s) : (tensor<?x8xf32>, tensor<3xi32>) -> tensor<?x2x4xf32>
  func.return %n, %y : tensor<i32>, tensor<?x2x4xf32>
}

// -----

// Operands of an elementwise op have one size: the second is brought to that of the first.
// CHECK-LABEL: @one_size
// CHECK: %[[B:.*]] = braid.reshape %b : {{.*}} -> tensor<?xf32, #braid.sizes<["\22input0[0]\22"]>>
// CHECK: braid.add %a, %[[B]] :
func.func @one_size(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %y = "stablehlo.add"(%a, %b) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// -----

// JAX's assertions bound a symbol, and make two symbols equal.
// CHECK-LABEL: @assertions
// CHECK-SAME: %a: tensor<?xf32, #braid.sizes<["\22input0[0]\22"]>>
// CHECK-SAME: %b: tensor<?xf32, #braid.sizes<["\22input0[0]\22"]>>
// CHECK-SAME: braid.symbols = {"input0[0]" = #braid.symbol<{min = 2 : i64}>}
// CHECK-NOT: custom_call
func.func @assertions(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %n = "stablehlo.get_dimension_size"(%a) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
  %m = "stablehlo.get_dimension_size"(%b) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
  %none = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
  %two = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
  %less = "stablehlo.subtract"(%n, %two) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %some = "stablehlo.compare"(%less, %none) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
  "stablehlo.custom_call"(%some, %n) <{call_target_name = "shape_assertion", has_side_effect = true}> : (tensor<i1>, tensor<i32>) -> ()
  %same = "stablehlo.compare"(%m, %n) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
  "stablehlo.custom_call"(%same, %n) <{call_target_name = "shape_assertion", has_side_effect = true}> : (tensor<i1>, tensor<i32>) -> ()
  %y = "stablehlo.multiply"(%a, %b) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// -----

// Slices and paddings by sizes, and a slice of a known size at a start that is data.
// CHECK-LABEL: @slices
// CHECK: braid.sized_slice %x {offsets = #braid.sizes<["0"]>, sizes = #braid.sizes<["\22input0[0]\22 - 1"]>
// CHECK: braid.sized_pad %x {{.*}} high = #braid.sizes<["\22input0[0]\22 - 1"]>
// CHECK: braid.gather %x, %{{.*}} -> tensor<3xf32>
func.func @slices(%x: tensor<?xf32>, %i: tensor<1xi32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<3xf32>) {
  %n = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
  %n1 = "stablehlo.reshape"(%n) : (tensor<i32>) -> tensor<1xi32>
  %none = "stablehlo.constant"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
  %one = "stablehlo.constant"() <{value = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>
  %three = "stablehlo.constant"() <{value = dense<3> : tensor<1xi32>}> : () -> tensor<1xi32>
  %zero = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
  %less = "stablehlo.subtract"(%n1, %one) : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
  %a = "stablehlo.real_dynamic_slice"(%x, %none, %less, %one) : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  %b = "stablehlo.dynamic_pad"(%x, %zero, %none, %less, %none) : (tensor<?xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  %end = "stablehlo.add"(%i, %three) : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
  %c = "stablehlo.real_dynamic_slice"(%x, %i, %end, %one) : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xf32>
  func.return %a, %b, %c : tensor<?xf32>, tensor<?xf32>, tensor<3xf32>
}

// -----

// A convolution and windows whose padding is an operand: numbers are the op's, sizes a pad before.
// CHECK-LABEL: @windows
// CHECK: braid.conv {{.*}} pad_low = array<i64: 1>
// CHECK: braid.sized_pad {{.*}} -> tensor<1x1x?xf32, #braid.sizes<["2 * \22input0[2]\22"]>>
// CHECK: braid.pool {{.*}}{kind = "max"
func.func @windows(%x: tensor<1x1x?xf32>, %w: tensor<1x1x3xf32>) -> (tensor<1x1x?xf32>, tensor<1x1x?xf32>) {
  %p = "stablehlo.constant"() <{value = dense<1> : tensor<1x2xi32>}> : () -> tensor<1x2xi32>
  %c = "stablehlo.dynamic_conv"(%x, %w, %p) <{batch_group_count = 1 : i64, feature_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 1, input_spatial_dimensions = [2], kernel_output_feature_dimension = 0, kernel_input_feature_dimension = 1, kernel_spatial_dimensions = [2], output_batch_dimension = 0, output_feature_dimension = 1, output_spatial_dimensions = [2]>}> : (tensor<1x1x?xf32>, tensor<1x1x3xf32>, tensor<1x2xi32>) -> tensor<1x1x?xf32>
  %n = "stablehlo.get_dimension_size"(%x) <{dimension = 2 : i64}> : (tensor<1x1x?xf32>) -> tensor<i32>
  %n11 = "stablehlo.reshape"(%n) : (tensor<i32>) -> tensor<1x1xi32>
  %none = "stablehlo.constant"() <{value = dense<0> : tensor<2x2xi32>}> : () -> tensor<2x2xi32>
  %zero = "stablehlo.constant"() <{value = dense<0> : tensor<1x1xi32>}> : () -> tensor<1x1xi32>
  %last = "stablehlo.concatenate"(%zero, %n11) <{dimension = 1 : i64}> : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
  %pads = "stablehlo.concatenate"(%none, %last) <{dimension = 0 : i64}> : (tensor<2x2xi32>, tensor<1x2xi32>) -> tensor<3x2xi32>
  %least = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
  %ones = "stablehlo.constant"() <{value = dense<1> : tensor<3xi32>}> : () -> tensor<3xi32>
  %window = "stablehlo.constant"() <{value = dense<[1, 1, 2]> : tensor<3xi32>}> : () -> tensor<3xi32>
  %m = "stablehlo.custom_call"(%c, %least, %window, %ones, %ones, %ones, %pads) <{call_target_name = "stablehlo.dynamic_reduce_window", called_computations = [@largest]}> : (tensor<1x1x?xf32>, tensor<f32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3x2xi32>) -> tensor<1x1x?xf32>
  func.return %c, %m : tensor<1x1x?xf32>, tensor<1x1x?xf32>
}
func.func @largest(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %y = "stablehlo.maximum"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  func.return %y : tensor<f32>
}

// -----

// Names of the model, and bounds of StableHLO.
// CHECK-LABEL: @bounded
// CHECK-SAME: tensor<?x?xf32, #braid.sizes<["\22tokens[0]\22", "\22tokens[1]\22"]>> {braid.name = "tokens"}
// CHECK-SAME: braid.symbols = {"tokens[0]" = #braid.symbol<{max = 16 : i64}>}
func.func @bounded(%a: tensor<?x?xf32, #stablehlo.bounds<16, ?>> {braid.name = "tokens"}) -> tensor<?x?xf32, #stablehlo.bounds<16, ?>> {
  %y = "stablehlo.abs"(%a) : (tensor<?x?xf32, #stablehlo.bounds<16, ?>>) -> tensor<?x?xf32, #stablehlo.bounds<16, ?>>
  func.return %y : tensor<?x?xf32, #stablehlo.bounds<16, ?>>
}

// -----

// Two symbols that become one keep the ranges of both.
// CHECK-LABEL: @ranges
// CHECK-SAME: braid.symbols = {"input1[0]" = #braid.symbol<{max = 8 : i64}>}
func.func @ranges(%a: tensor<?xf32, #stablehlo.bounds<8>>, %b: tensor<?xf32, #stablehlo.bounds<16>>) -> tensor<?xf32> {
  %n = "stablehlo.get_dimension_size"(%a) <{dimension = 0 : i64}> : (tensor<?xf32, #stablehlo.bounds<8>>) -> tensor<i32>
  %m = "stablehlo.get_dimension_size"(%b) <{dimension = 0 : i64}> : (tensor<?xf32, #stablehlo.bounds<16>>) -> tensor<i32>
  %same = "stablehlo.compare"(%n, %m) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
  "stablehlo.custom_call"(%same, %n) <{call_target_name = "shape_assertion"}> : (tensor<i1>, tensor<i32>) -> ()
  %y = "stablehlo.add"(%a, %b) : (tensor<?xf32, #stablehlo.bounds<8>>, tensor<?xf32, #stablehlo.bounds<16>>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// -----

// Assertions of a branch are not assumed where it is not taken.
// CHECK-LABEL: @in_a_branch
// CHECK-NOT: braid.symbols
// CHECK: scf.if
func.func @in_a_branch(%x: tensor<?xf32>, %c: tensor<i1>) -> tensor<?xf32> {
  %n = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
  %four = "stablehlo.constant"() <{value = dense<4> : tensor<i32>}> : () -> tensor<i32>
  %y = "stablehlo.if"(%c) ({
    %large = "stablehlo.compare"(%n, %four) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.custom_call"(%large, %n) <{call_target_name = "shape_assertion"}> : (tensor<i1>, tensor<i32>) -> ()
    %a = "stablehlo.abs"(%x) : (tensor<?xf32>) -> tensor<?xf32>
    "stablehlo.return"(%a) : (tensor<?xf32>) -> ()
  }, {
    "stablehlo.return"(%x) : (tensor<?xf32>) -> ()
  }) : (tensor<i1>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}
