func.func @main(%x: tensor<1024x1xf32> {braid.name = "x"}, %y: tensor<1x1024xf32> {braid.name = "y"}) -> (tensor<1024x1xf32>{braid.name = "o"}) {
  %p = braid.add %x, %y {braid.name = "p"} : (tensor<1024x1xf32>, tensor<1x1024xf32>) -> tensor<1024x1024xf32>
  %s = braid.reduce %p {kind = "maximum", dims = array<i64: 1>, braid.name = "s"} : (tensor<1024x1024xf32>) -> tensor<1024x1xf32>
  %t = braid.sub %p, %s {braid.name = "t"} : (tensor<1024x1024xf32>, tensor<1024x1xf32>) -> tensor<1024x1024xf32>
  %u = braid.reduce %t {kind = "maximum", dims = array<i64: 1>, braid.name = "u"} : (tensor<1024x1024xf32>) -> tensor<1024x1xf32>
  func.return %u : tensor<1024x1xf32>
}
