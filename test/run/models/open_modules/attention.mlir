func.func public @main(%x: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<1xi32>
  %four = stablehlo.constant dense<4> : tensor<1xi32>
  %eight = stablehlo.constant dense<8> : tensor<1xi32>
  %half = stablehlo.constant dense<0.5> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %b = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?x8xf32>) -> tensor<i32>
  %s = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?x8xf32>) -> tensor<i32>
  %any = stablehlo.compare GE, %b, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%any, %b) {api_version = 2 : i32, error_message = "b", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
  %b1 = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>
  %s1 = stablehlo.reshape %s : (tensor<i32>) -> tensor<1xi32>
  %split = stablehlo.concatenate %b1, %s1, %two, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
  %heads = stablehlo.dynamic_reshape %x, %split : (tensor<?x?x8xf32>, tensor<4xi32>) -> tensor<?x?x2x4xf32>
  %q = stablehlo.transpose %heads, dims = [0, 2, 1, 3] : (tensor<?x?x2x4xf32>) -> tensor<?x2x?x4xf32>
  %qk = stablehlo.dot_general %q, %q, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x?xf32>
  %scores = stablehlo.concatenate %b1, %two, %s1, %s1, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
  %factor = stablehlo.dynamic_broadcast_in_dim %half, %scores, dims = [] : (tensor<f32>, tensor<4xi32>) -> tensor<?x2x?x?xf32>
  %scaled = stablehlo.multiply %qk, %factor : tensor<?x2x?x?xf32>
  %square = stablehlo.concatenate %s1, %s1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %rows = stablehlo.dynamic_iota %square, dim = 0 : (tensor<2xi32>) -> tensor<?x?xi32>
  %columns = stablehlo.dynamic_iota %square, dim = 1 : (tensor<2xi32>) -> tensor<?x?xi32>
  %before = stablehlo.compare GE, %rows, %columns, SIGNED : (tensor<?x?xi32>, tensor<?x?xi32>) -> tensor<?x?xi1>
  %mask = stablehlo.dynamic_broadcast_in_dim %before, %scores, dims = [2, 3] : (tensor<?x?xi1>, tensor<4xi32>) -> tensor<?x2x?x?xi1>
  %hidden = stablehlo.dynamic_broadcast_in_dim %least, %scores, dims = [] : (tensor<f32>, tensor<4xi32>) -> tensor<?x2x?x?xf32>
  %masked = stablehlo.select %mask, %scaled, %hidden : tensor<?x2x?x?xi1>, tensor<?x2x?x?xf32>
  %most = stablehlo.reduce(%masked init: %least) applies stablehlo.maximum across dimensions = [3] : (tensor<?x2x?x?xf32>, tensor<f32>) -> tensor<?x2x?xf32>
  %most4 = stablehlo.dynamic_broadcast_in_dim %most, %scores, dims = [0, 1, 2] : (tensor<?x2x?xf32>, tensor<4xi32>) -> tensor<?x2x?x?xf32>
  %away = stablehlo.subtract %masked, %most4 : tensor<?x2x?x?xf32>
  %powers = stablehlo.exponential %away : tensor<?x2x?x?xf32>
  %sum = stablehlo.reduce(%powers init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<?x2x?x?xf32>, tensor<f32>) -> tensor<?x2x?xf32>
  %sum4 = stablehlo.dynamic_broadcast_in_dim %sum, %scores, dims = [0, 1, 2] : (tensor<?x2x?xf32>, tensor<4xi32>) -> tensor<?x2x?x?xf32>
  %p = stablehlo.divide %powers, %sum4 : tensor<?x2x?x?xf32>
  %o = stablehlo.dot_general %p, %q, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<?x2x?x?xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32>
  %t = stablehlo.transpose %o, dims = [0, 2, 1, 3] : (tensor<?x2x?x4xf32>) -> tensor<?x?x2x4xf32>
  %merged = stablehlo.concatenate %b1, %s1, %eight, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
  %y = stablehlo.dynamic_reshape %t, %merged : (tensor<?x?x2x4xf32>, tensor<3xi32>) -> tensor<?x?x8xf32>
  return %y : tensor<?x?x8xf32>
}
