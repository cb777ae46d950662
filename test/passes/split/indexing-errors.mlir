// RUN: %braid-opt %s -p 'select-splits{memory=1000}' --split-input-file --verify-diagnostics

// Any tuple may address any element.
func.func @gather_nd(%x: tensor<16x16xf32>, %i: tensor<3x2xi64>) -> tensor<3xf32> {
  // expected-error@+1 {{'braid.gather_nd' uses 1.06 KiB (1084 bytes) and cannot be split to fit 1000 B (1000 bytes)}}
  %0 = braid.gather_nd %x, %i {batch_dims = 0 : i64} : (tensor<16x16xf32>, tensor<3x2xi64>) -> tensor<3xf32>
  func.return %0 : tensor<3xf32>
}

// -----

// Only some rows are written, so parts of the rows would be other ops than parts of the rest.
func.func @scatter_elements(%x: tensor<64x8xf32>, %i: tensor<2x4xi64>, %u: tensor<2x4xf32>) -> tensor<64x8xf32> {
  // expected-error@+1 {{'braid.scatter_elements' uses}}
  %0 = braid.scatter_elements %x, %i, %u {dim = 1 : i64, reduction = "add"} : (tensor<64x8xf32>, tensor<2x4xi64>, tensor<2x4xf32>) -> tensor<64x8xf32>
  func.return %0 : tensor<64x8xf32>
}

// -----

func.func @scatter_nd(%x: tensor<256xf32>, %i: tensor<3x1xi64>, %u: tensor<3xf32>) -> tensor<256xf32> {
  // expected-error@+1 {{'braid.scatter_nd' uses}}
  %0 = braid.scatter_nd %x, %i, %u {reduction = "none"} : (tensor<256xf32>, tensor<3x1xi64>, tensor<3xf32>) -> tensor<256xf32>
  func.return %0 : tensor<256xf32>
}

// -----

func.func @top_k(%x: tensor<1x256xf32>) -> (tensor<1x4xf32>, tensor<1x4xi64>) {
  // expected-error@+1 {{'braid.top_k' uses}}
  %0, %1 = braid.top_k %x {k = 4 : i64, dim = 1 : i64, largest = true} : (tensor<1x256xf32>) -> (tensor<1x4xf32>, tensor<1x4xi64>)
  func.return %0, %1 : tensor<1x4xf32>, tensor<1x4xi64>
}
