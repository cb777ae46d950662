"""Small models in StableHLO, in the form in which exporters write them."""

CONVOLUTIONS = """
module @classifier {
  func.func public @main(%x: tensor<2x12x12x3xf32>, %w0: tensor<3x3x3x8xf32>, %b0: tensor<8xf32>,
      %w1: tensor<3x3x1x8xf32>, %w2: tensor<8x5xf32>) -> tensor<2x5xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.convolution(%x, %w0) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {stride = [1, 1], pad = [[1, 1], [1, 1]]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64,
       precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}
      : (tensor<2x12x12x3xf32>, tensor<3x3x3x8xf32>) -> tensor<2x12x12x8xf32>
    %bias = stablehlo.broadcast_in_dim %b0, dims = [3]
      : (tensor<8xf32>) -> tensor<2x12x12x8xf32>
    %biased = stablehlo.add %c, %bias : tensor<2x12x12x8xf32>
    %r = call @relu(%biased) : (tensor<2x12x12x8xf32>) -> tensor<2x12x12x8xf32>
    %p = "stablehlo.reduce_window"(%r, %low) <{padding = dense<[[0, 0], [0, 1], [0, 1], [0, 0]]>
      : tensor<4x2xi64>, window_dimensions = array<i64: 1, 3, 3, 1>,
      window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
    }) : (tensor<2x12x12x8xf32>, tensor<f32>) -> tensor<2x6x6x8xf32>
    %d = stablehlo.convolution(%p, %w1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {stride = [2, 2], pad = [[0, 1], [0, 1]]}
      {batch_group_count = 1 : i64, feature_group_count = 8 : i64}
      : (tensor<2x6x6x8xf32>, tensor<3x3x1x8xf32>) -> tensor<2x3x3x8xf32>
    %sum = stablehlo.reduce(%d init: %zero) applies stablehlo.add across dimensions = [1, 2]
      : (tensor<2x3x3x8xf32>, tensor<f32>) -> tensor<2x8xf32>
    %count = stablehlo.constant dense<9.0> : tensor<2x8xf32>
    %mean = stablehlo.divide %sum, %count : tensor<2x8xf32>
    %logits = stablehlo.dot_general %mean, %w2, contracting_dims = [1] x [0]
      : (tensor<2x8xf32>, tensor<8x5xf32>) -> tensor<2x5xf32>
    return %logits : tensor<2x5xf32>
  }
  func.func private @relu(%x: tensor<2x12x12x8xf32>) -> tensor<2x12x12x8xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<2x12x12x8xf32>
    %y = stablehlo.maximum %x, %zeros : tensor<2x12x12x8xf32>
    return %y : tensor<2x12x12x8xf32>
  }
}
"""

ATTENTION = """
func.func @main(%tokens: tensor<6xi32>, %table: tensor<11x8xf32>, %wq: tensor<8x2x4xf32>,
    %wo: tensor<2x4x8xf32>) -> tensor<6x8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %column = stablehlo.reshape %tokens : (tensor<6xi32>) -> tensor<6x1xi32>
  %x = "stablehlo.gather"(%table, %column) <{dimension_numbers = #stablehlo.gather<
    offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 8>}> : (tensor<11x8xf32>, tensor<6x1xi32>) -> tensor<6x8xf32>
  %q = stablehlo.dot_general %x, %wq, contracting_dims = [1] x [0]
    : (tensor<6x8xf32>, tensor<8x2x4xf32>) -> tensor<6x2x4xf32>
  %scores = stablehlo.dot_general %q, %q, batching_dims = [1] x [1], contracting_dims = [2] x [2]
    : (tensor<6x2x4xf32>, tensor<6x2x4xf32>) -> tensor<2x6x6xf32>
  %rows = stablehlo.iota dim = 1 : tensor<2x6x6xi32>
  %columns = stablehlo.iota dim = 2 : tensor<2x6x6xi32>
  %seen = stablehlo.compare GE, %rows, %columns, SIGNED
    : (tensor<2x6x6xi32>, tensor<2x6x6xi32>) -> tensor<2x6x6xi1>
  %never = stablehlo.constant dense<-1.0e+30> : tensor<2x6x6xf32>
  %masked = stablehlo.select %seen, %scores, %never : tensor<2x6x6xi1>, tensor<2x6x6xf32>
  %most = stablehlo.reduce(%masked init: %low) applies stablehlo.maximum across dimensions = [2]
    : (tensor<2x6x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  %mosts = stablehlo.broadcast_in_dim %most, dims = [0, 1] : (tensor<2x6xf32>) -> tensor<2x6x6xf32>
  %shifted = stablehlo.subtract %masked, %mosts : tensor<2x6x6xf32>
  %powers = stablehlo.exponential %shifted : tensor<2x6x6xf32>
  %sum = stablehlo.reduce(%powers init: %zero) applies stablehlo.add across dimensions = [2]
    : (tensor<2x6x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<2x6xf32>) -> tensor<2x6x6xf32>
  %weights = stablehlo.divide %powers, %sums : tensor<2x6x6xf32>
  %mixed = stablehlo.dot_general %weights, %q, batching_dims = [0] x [1],
    contracting_dims = [2] x [0] : (tensor<2x6x6xf32>, tensor<6x2x4xf32>) -> tensor<2x6x4xf32>
  %y = stablehlo.dot_general %mixed, %wo, contracting_dims = [0, 2] x [0, 1]
    : (tensor<2x6x4xf32>, tensor<2x4x8xf32>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}
"""
