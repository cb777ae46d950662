// RUN: %braid-opt %s --split-input-file --verify-diagnostics

func.func @rank(%x: tensor<1x64x8xf32>) {
  // expected-error @+1 {{layout 'acdb' is for rank 4, the tensor has rank 3}}
  %0 = braid.reorder %x : (tensor<1x64x8xf32>) -> tensor<1x64x8xf32, #braid.layout<"acdb">>
  func.return
}

// -----

func.func @no_tag(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'NCWH' does not name each of its 4 dims exactly once}}
  %0 = braid.reorder %x : (tensor<2x3xf32>) -> tensor<2x3xf32, #braid.layout<"NCWH">>
  func.return
}

// -----

func.func @no_block(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'aB' must have an inner block for each capital and no other}}
  %0 = braid.reorder %x : (tensor<2x3xf32>) -> tensor<2x3xf32, #braid.layout<"aB">>
  func.return
}

// -----

func.func @no_layout(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'row-major' is neither a layout tag nor one of}}
  %0 = braid.reorder %x : (tensor<2x3xf32>) -> tensor<2x3xf32, #braid.layout<"row-major">>
  func.return
}

// -----

func.func @value(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{result 0 has type tensor<3x2xf32>, expected tensor<2x3xf32>}}
  %0 = braid.reorder %x : (tensor<2x3xf32>) -> tensor<3x2xf32>
  func.return
}
