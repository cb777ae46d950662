// Designs of a module share the slices by what they need: that with a seventh of the work has one of eight.
// RUN: %braid-opt %s -p 'convert-braid-to-hls{function=large},convert-braid-to-hls{function=small},select-hls-schedule{dsp=8}' --remarks 2>&1 | FileCheck %s
// RUN: not %braid-opt %s -p 'convert-braid-to-hls{function=large},convert-braid-to-hls{function=small},select-hls-schedule{dsp=1}' 2>&1 | FileCheck %s --check-prefix=FEW

// CHECK: [select-hls-schedule] large: 1 stages, the slowest with [[MOST:[0-9]+]] iterations; the slowest of 2 designs that share with [[MOST]], at least [[MOST]] with these resources; 7 DSP slices
// CHECK: [select-hls-schedule] small: 1 stages, the slowest with {{[0-9]+}} iterations; the slowest of 2 designs that share with [[MOST]], at least [[MOST]] with these resources; 1 DSP slices
// FEW: error: the stages need 2 DSP slices at their smallest, expected at most 1
func.func @large(%x: tensor<7x8xi8>) -> tensor<7x7xi32> {
  %w = braid.constant {value = dense<[[1, 3, 5, 7, 9, 11, 13], [15, 17, 19, 21, 23, 25, 27], [29, 31, 33, 35, 37, 39, 41], [43, 45, 47, 49, 51, 53, 55], [57, 59, 61, 63, 65, 67, 69], [71, 73, 75, 77, 79, 81, 83], [85, 87, 89, 91, 93, 95, 97], [99, 101, 103, 105, 107, 109, 111]]> : tensor<8x7xi8>} : tensor<8x7xi8>
  %y = braid.matmul %x, %w {accumulator = i32} : (tensor<7x8xi8>, tensor<8x7xi8>) -> tensor<7x7xi32>
  func.return %y : tensor<7x7xi32>
}
func.func @small(%x: tensor<7x8xi8>) -> tensor<7x1xi32> {
  %w = braid.constant {value = dense<[[11], [13], [15], [17], [19], [21], [23], [25]]> : tensor<8x1xi8>} : tensor<8x1xi8>
  %y = braid.matmul %x, %w {accumulator = i32} : (tensor<7x8xi8>, tensor<8x1xi8>) -> tensor<7x1xi32>
  func.return %y : tensor<7x1xi32>
}
