func.func @main(%x: tensor<64x64xf32> {braid.name = "x"}) -> (tensor<64x64xf32> {braid.name = "y"}) {
  %a = braid.matmul %x, %x {braid.device = "cpu:0"} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = braid.matmul %a, %a {braid.device = "cpu:1"} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %y : tensor<64x64xf32>
}
