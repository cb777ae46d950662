func.func public @main(%x: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %none = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %starts = stablehlo.constant dense<[0, 1]> : tensor<2xi32>
  %ones = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %zeros = stablehlo.constant dense<0> : tensor<2xi32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
  %m = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
  %quotient = stablehlo.divide %n, %two : tensor<i32>
  %rest = stablehlo.remainder %n, %two : tensor<i32>
  %signs = stablehlo.sign %rest : tensor<i32>
  %sign = stablehlo.sign %two : tensor<i32>
  %others = stablehlo.compare NE, %signs, %sign, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %some = stablehlo.compare NE, %rest, %none, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %below = stablehlo.and %others, %some : tensor<i1>
  %less = stablehlo.subtract %quotient, %one : tensor<i32>
  %half = stablehlo.select %below, %less, %quotient : tensor<i1>, tensor<i32>
  %half1 = stablehlo.reshape %half : (tensor<i32>) -> tensor<1xi32>
  %m1 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %limits = stablehlo.concatenate %half1, %m1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %a = stablehlo.real_dynamic_slice %x, %starts, %limits, %ones : (tensor<?x?xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  %some1 = stablehlo.reshape %one : (tensor<i32>) -> tensor<1xi32>
  %low = stablehlo.concatenate %half1, %some1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %b = stablehlo.dynamic_pad %x, %zero, %low, %starts, %zeros : (tensor<?x?xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  return %a, %b : tensor<?x?xf32>, tensor<?x?xf32>
}
