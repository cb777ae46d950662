// Products of computed bytes, whose right operand is packed in scratch memory.
func.func @main(%x: tensor<64x64xi8> {braid.name = "x"}, %w: tensor<64x64xi8> {braid.name = "w"})
    -> (tensor<64x64xi8> {braid.name = "y"}) {
  %a = braid.matmul %x, %w {accumulator = i32} : (tensor<64x64xi8>, tensor<64x64xi8>) -> tensor<64x64xi32>
  %b = braid.cast %a : (tensor<64x64xi32>) -> tensor<64x64xi8>
  %c = braid.matmul %b, %w {accumulator = i32} : (tensor<64x64xi8>, tensor<64x64xi8>) -> tensor<64x64xi32>
  %y = braid.cast %c : (tensor<64x64xi32>) -> tensor<64x64xi8>
  func.return %y : tensor<64x64xi8>
}
