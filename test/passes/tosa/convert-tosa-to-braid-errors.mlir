// RUN: %braid-opt %s -p convert-tosa-to-braid --split-input-file --verify-diagnostics

func.func @no_counterpart(%x: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error @+1 {{'%y': the op tosa.custom is not supported (dialect 'tosa')}}
  %y = "tosa.custom"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  func.return %y : tensor<4xi32>
}

// -----

func.func @nan_mode(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'tosa.maximum': NaNs are ignored by its 'nan_mode', and braid propagates them}}
  %y = tosa.maximum %x, %x {nan_mode = IGNORE} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @not_a_constant(%x: tensor<4xf32>, %p: tensor<2xi32>, %v: tensor<1xf32>) -> tensor<6xf32> {
  // expected-error @+1 {{'tosa.pad': operand 1 is not a constant}}
  %y = tosa.pad %x, %p, %v : (tensor<4xf32>, tensor<2xi32>, tensor<1xf32>) -> tensor<6xf32>
  func.return %y : tensor<6xf32>
}

// -----

func.func @wrong_result(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{'tosa.transpose': result 0 has type tensor<2x3xf32>, expected tensor<3x2xf32>}}
  %y = tosa.transpose %x {perms = array<i32: 1, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}

// -----

func.func @shapes_that_differ(%x: tensor<2xf32>, %z: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{'tosa.add': dim 0 has extents [2, 3] in different operands}}
  %y = tosa.add %x, %z : (tensor<2xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}

// -----

func.func @missing_field(%x: tensor<2x3xf32>) -> tensor<2x1xf32> {
  // expected-error @+1 {{'tosa.reduce_sum': expected a number 'axis'}}
  %y = tosa.reduce_sum %x : (tensor<2x3xf32>) -> tensor<2x1xf32>
  func.return %y : tensor<2x1xf32>
}

// -----

func.func @missing_operand(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{'tosa.pad': expected an operand 1}}
  %y = tosa.pad %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}

// -----

func.func @unranked(%x: tensor<*xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{'tosa.abs': a value has type tensor<*xf32>, expected a tensor of a known rank}}
  %y = tosa.abs %x : (tensor<*xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

func.func @wide_integers(%x: tensor<4xi48>) -> tensor<4xi48> {
  // expected-error @+1 {{'tosa.abs': element type i48 is not supported}}
  %y = tosa.abs %x : (tensor<4xi48>) -> tensor<4xi48>
  func.return %y : tensor<4xi48>
}

// -----

func.func @narrow_integers(%x: tensor<4xf32>) -> tensor<4xi4> {
  // expected-error @+1 {{'tosa.cast': 'cast' on element type i4, which is stored but not computed with}}
  %y = tosa.cast %x : (tensor<4xf32>) -> tensor<4xi4>
  func.return %y : tensor<4xi4>
}

// -----

func.func @no_such_axis(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{'tosa.reverse': dim is 7, expected 0 to 1}}
  %y = tosa.reverse %x {axis = 7 : i32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}

// -----

func.func @sizes(%x: tensor<4xf32>) -> tensor<2xf32> {
  %o = tosa.const_shape {values = dense<0> : tensor<1xindex>} : () -> !tosa.shape<1>
  %n = tosa.const_shape {values = dense<3> : tensor<1xindex>} : () -> !tosa.shape<1>
  // expected-error @+1 {{'tosa.slice': result 0 has type tensor<2xf32>, expected tensor<3xf32>}}
  %y = tosa.slice %x, %o, %n : (tensor<4xf32>, !tosa.shape<1>, !tosa.shape<1>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}

// -----

func.func @scale(%x: tensor<1x3x3x2xf32>) -> tensor<1x6x6x2xf32> {
  %s = tosa.const_shape {values = dense<[4, 2, 4]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %o = tosa.const_shape {values = dense<-1> : tensor<2xindex>} : () -> !tosa.shape<2>
  // expected-error @+1 {{'tosa.resize': its fields, regions and types do not fit together}}
  %y = tosa.resize %x, %s, %o, %o {mode = BILINEAR} : (tensor<1x3x3x2xf32>, !tosa.shape<3>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<1x6x6x2xf32>
  func.return %y : tensor<1x6x6x2xf32>
}

// -----

func.func @arguments(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  // expected-error @+1 {{'tosa.cond_if': a region takes (), expected (tensor<4xf32>)}}
  %y = "tosa.cond_if"(%c, %x) ({
    tosa.yield %x : tensor<4xf32>
  }, {
    tosa.yield %x : tensor<4xf32>
  }) : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @one_branch(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  // expected-error @+1 {{'tosa.cond_if': expected 2 regions, got 1}}
  %y = "tosa.cond_if"(%c) ({
    tosa.yield %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @no_condition(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'tosa.while_loop': its condition returns 0 values, expected one}}
  %y = "tosa.while_loop"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    tosa.yield
  }, {
  ^bb0(%a: tensor<4xf32>):
    tosa.yield %a : tensor<4xf32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @bools(%x: tensor<4xi1>) -> tensor<4xi1> {
  // expected-error @+1 {{'tosa.sub': 'sub' of bools, expected numbers}}
  %y = tosa.sub %x, %x : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  func.return %y : tensor<4xi1>
}

// -----

func.func @shape(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %s = "tosa.const_shape"() <{values = dense<[2, 3]> : tensor<2xindex>}> : () -> !tosa.shape<2>
  // expected-error @+1 {{'tosa.add': a value has type !tosa.shape<2>, expected a tensor of a known rank}}
  %y = "tosa.add"(%x, %s) : (tensor<2x3xf32>, !tosa.shape<2>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}
