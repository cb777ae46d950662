// Two products between a fork and a join, which may run in either order.
func.func @main(%x: tensor<32x32xf32> {braid.name = "x"}) -> (tensor<32x32xf32> {braid.name = "y"}) {
  %a = braid.matmul %x, %x : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %b = braid.matmul %a, %x : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %c = braid.matmul %a, %a : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %d = braid.matmul %b, %c : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  func.return %d : tensor<32x32xf32>
}
