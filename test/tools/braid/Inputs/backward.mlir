// What a backward pass does to memory: results of the way forward are read in reverse.
func.func @main(%x: tensor<64x64xf32> {braid.name = "x"}) -> (tensor<64x1xf32> {braid.name = "y"}) {
  %a = braid.softmax %x {dim = 0 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = braid.softmax %a {dim = 0 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = braid.softmax %b {dim = 0 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %d = braid.softmax %c {dim = 0 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %e = braid.matmul %d, %d : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %f = braid.matmul %e, %c : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %g = braid.matmul %f, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %h = braid.matmul %g, %a : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = braid.reduce %h {kind = "add", dims = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<64x1xf32>
  func.return %y : tensor<64x1xf32>
}
