func.func public @main(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
  %m = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
  %same = stablehlo.compare EQ, %m, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%same, %n) {api_version = 2 : i32, error_message = "n", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
  %z = stablehlo.add %x, %y : tensor<?x4xf32>
  return %z : tensor<?x4xf32>
}
