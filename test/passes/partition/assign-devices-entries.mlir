// RUN: sed s/fpga/dsp/ %S/Inputs/board.toml > %t.toml
// RUN: %braid-opt %s -p "assign-devices{target=%t.toml}" | FileCheck %s

// An entry holds for the types and sizes that it names: the DSP takes windows of bytes up to 5 × 5,
// and of pools the maximum, or small ones where nobody else would.
// CHECK-LABEL: func.func @predicates
// CHECK:         %small = braid.conv{{.*}}braid.device = "dsp:0"
// CHECK:         %large = braid.conv{{.*}}braid.candidates = {cpu = 3 : i64}, braid.device = "cpu:0"
// CHECK:         %float = braid.conv{{.*}}braid.device = "cpu:0"
// CHECK:         %max = braid.pool{{.*}}braid.device = "dsp:0"
// CHECK:         %sum = braid.pool{{.*}}braid.candidates = {cpu = 3 : i64, dsp = 4 : i64}, braid.device = "cpu:0"
func.func @predicates(%x: tensor<1x4x9x9xi8>, %w: tensor<4x4x5x5xi8>, %v: tensor<4x4x7x7xi8>, %y: tensor<1x4x9x9xf32>, %u: tensor<4x4x3x3xf32>) -> (tensor<1x4x5x5xi8>, tensor<1x4x3x3xi8>, tensor<1x4x7x7xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) {
  %small = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x4x9x9xi8>, tensor<4x4x5x5xi8>) -> tensor<1x4x5x5xi8>
  %large = braid.conv %x, %v {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x4x9x9xi8>, tensor<4x4x7x7xi8>) -> tensor<1x4x3x3xi8>
  %float = braid.conv %y, %u {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x4x9x9xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x7x7xf32>
  %max = braid.pool %y {kind = "max", window = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, count_padding = false} : (tensor<1x4x9x9xf32>) -> tensor<1x4x8x8xf32>
  %sum = braid.pool %y {kind = "add", window = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, count_padding = false} : (tensor<1x4x9x9xf32>) -> tensor<1x4x8x8xf32>
  func.return %small, %large, %float, %max, %sum : tensor<1x4x5x5xi8>, tensor<1x4x3x3xi8>, tensor<1x4x7x7xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>
}
