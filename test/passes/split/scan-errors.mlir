// RUN: %braid-opt %s -p 'select-splits{memory=1000}' --verify-diagnostics

func.func @scan(%x: tensor<256xf32>) -> tensor<256xf32> {
  // expected-error@+1 {{'braid.scan' uses 2 KiB (2048 bytes) and cannot be split to fit 1000 B (1000 bytes)}}
  %0 = braid.scan %x {kind = "add", dim = 0 : i64, exclusive = false, reverse = false} : (tensor<256xf32>) -> tensor<256xf32>
  func.return %0 : tensor<256xf32>
}
