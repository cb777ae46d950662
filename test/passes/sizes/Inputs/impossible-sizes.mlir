func.func @impossible(%a: tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<4xf32> attributes {braid.symbols = {n = #braid.symbol<{max = 3 : i64}>}} {
  %part = braid.sized_slice %a {offsets = #braid.sizes<["n - 4"]>, sizes = #braid.sizes<["4"]>, strides = array<i64: 1>} : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<4xf32>
  func.return %part : tensor<4xf32>
}
