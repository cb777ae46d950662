func.func @main(%x: tensor<?x6xf32>) -> tensor<?x3x2xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x6xf32>
  %half = arith.ceildivui %n, %c2 : index
  %part = tensor.extract_slice %x[0, 0] [%half, 6] [1, 1] : tensor<?x6xf32> to tensor<?x6xf32>
  %p = tensor.pad %part low[0, 0] high[%half, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<?x6xf32> to tensor<?x6xf32>
  %m = arith.addi %half, %half : index
  %y = tensor.expand_shape %p [[0], [1, 2]] output_shape [%m, 3, 2] : tensor<?x6xf32> into tensor<?x3x2xf32>
  return %y : tensor<?x3x2xf32>
}
