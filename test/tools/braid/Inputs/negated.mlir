func.func @main(%x: tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32> {
  %0 = braid.neg %x : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  func.return %0 : tensor<1x4x3x3xf32>
}
