func.func public @main(%x: tensor<?x?x4xf32>) -> tensor<?x4xf32> {
  %none = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %one1 = stablehlo.constant dense<1> : tensor<1xi32>
  %four1 = stablehlo.constant dense<4> : tensor<1xi32>
  %zeros = stablehlo.constant dense<0> : tensor<3xi32>
  %ones = stablehlo.constant dense<1> : tensor<3xi32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %t = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?x4xf32>) -> tensor<i32>
  %b = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?x4xf32>) -> tensor<i32>
  %t1 = stablehlo.reshape %t : (tensor<i32>) -> tensor<1xi32>
  %b1 = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>
  %shape = stablehlo.concatenate %b1, %four1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %start = stablehlo.dynamic_broadcast_in_dim %zero, %shape, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x4xf32>
  %sizes = stablehlo.concatenate %one1, %b1, %four1, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
  %whole = stablehlo.concatenate %t1, %b1, %four1, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
  %last = stablehlo.subtract %whole, %sizes : tensor<3xi32>
  %r:2 = stablehlo.while(%i = %none, %c = %start) : tensor<i32>, tensor<?x4xf32>
  cond {
    %more = stablehlo.compare LT, %i, %t, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %i1 = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
    %zero1 = stablehlo.reshape %none : (tensor<i32>) -> tensor<1xi32>
    %at = stablehlo.concatenate %i1, %zero1, %zero1, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %inside = stablehlo.clamp %zeros, %at, %last : tensor<3xi32>
    %limit = stablehlo.add %inside, %sizes : tensor<3xi32>
    %part = stablehlo.real_dynamic_slice %x, %inside, %limit, %ones : (tensor<?x?x4xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<1x?x4xf32>
    %row = stablehlo.dynamic_reshape %part, %shape : (tensor<1x?x4xf32>, tensor<2xi32>) -> tensor<?x4xf32>
    %sum = stablehlo.add %c, %row : tensor<?x4xf32>
    %next = stablehlo.tanh %sum : tensor<?x4xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %next : tensor<i32>, tensor<?x4xf32>
  }
  return %r#1 : tensor<?x4xf32>
}
