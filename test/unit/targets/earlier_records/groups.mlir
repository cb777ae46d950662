// pad, family 'border'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<1x16x9x11xf32, #braid.layout<"acdb">>) -> tensor<1x16x13x14xf32, #braid.layout<"acdb">> {
    %1 = braid.fused(%0) {braid.boxes = [array<i64: 0, 0>], test.expected = {family = "border", schedule = {}}} : (tensor<1x16x9x11xf32, #braid.layout<"acdb">>) -> tensor<1x16x13x14xf32, #braid.layout<"acdb">> {
    ^bb0(%2: tensor<1x16x9x11xf32, #braid.layout<"acdb">>):
      %3 = braid.pad %2 {low = array<i64: 0, 0, 1, 2>, high = array<i64: 0, 0, 3, 1>, value = -2.500000e+00 : f32} : (tensor<1x16x9x11xf32, #braid.layout<"acdb">>) -> tensor<1x16x13x14xf32, #braid.layout<"acdb">>
      braid.yield %3 : tensor<1x16x13x14xf32, #braid.layout<"acdb">>
    }
    func.return %1 : tensor<1x16x13x14xf32, #braid.layout<"acdb">>
  }
}
// -----
// pad, family 'pad'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<1x16x9x11xf32>) -> tensor<1x16x13x14xf32> {
    %1 = braid.fused(%0) {test.expected = {family = "pad", schedule = {}}} : (tensor<1x16x9x11xf32>) -> tensor<1x16x13x14xf32> {
    ^bb0(%2: tensor<1x16x9x11xf32>):
      %3 = braid.pad %2 {low = array<i64: 0, 0, 1, 2>, high = array<i64: 0, 0, 3, 1>, value = -2.500000e+00 : f32} : (tensor<1x16x9x11xf32>) -> tensor<1x16x13x14xf32>
      braid.yield %3 : tensor<1x16x13x14xf32>
    }
    func.return %1 : tensor<1x16x13x14xf32>
  }
}
// -----
// plain, family 'gemm'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<9x20xf32>, %1: tensor<20x37xf32>, %2: tensor<1x37xf32>) -> tensor<9x37xf32> {
    %3 = braid.fused(%0, %1, %2) {test.expected = {family = "gemm", schedule = {columns_outside = 0 : i64, rows = 12 : i64, unroll = 2 : i64, vectors = 2 : i64}}} : (tensor<9x20xf32>, tensor<20x37xf32>, tensor<1x37xf32>) -> tensor<9x37xf32> {
    ^bb0(%4: tensor<9x20xf32>, %5: tensor<20x37xf32>, %6: tensor<1x37xf32>):
      %7 = braid.matmul %4, %5 : (tensor<9x20xf32>, tensor<20x37xf32>) -> tensor<9x37xf32>
      %8 = braid.add %7, %6 : (tensor<9x37xf32>, tensor<1x37xf32>) -> tensor<9x37xf32>
      %9 = braid.tanh %8 : (tensor<9x37xf32>) -> tensor<9x37xf32>
      braid.yield %9 : tensor<9x37xf32>
    }
    func.return %3 : tensor<9x37xf32>
  }
}
// -----
// pieces, family 'concat'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<2x9x8192xf32>, %1: tensor<2x1x8192xf32>) -> tensor<2x10x8192xf32> {
    %2 = braid.fused(%0, %1) {test.expected = {family = "concat", schedule = {}}} : (tensor<2x9x8192xf32>, tensor<2x1x8192xf32>) -> tensor<2x10x8192xf32> {
    ^bb0(%3: tensor<2x9x8192xf32>, %4: tensor<2x1x8192xf32>):
      %5 = braid.concat %3, %4 {dim = 1 : i64} : (tensor<2x9x8192xf32>, tensor<2x1x8192xf32>) -> tensor<2x10x8192xf32>
      braid.yield %5 : tensor<2x10x8192xf32>
    }
    func.return %2 : tensor<2x10x8192xf32>
  }
}
// -----
// plain, family 'gemm-dots'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<3x20xf32>, %1: tensor<20x37xf32, #braid.layout<"ba">>, %2: tensor<1x37xf32>) -> tensor<3x37xf32> {
    %3 = braid.fused(%0, %1, %2) {test.expected = {family = "gemm-dots", schedule = {}}} : (tensor<3x20xf32>, tensor<20x37xf32, #braid.layout<"ba">>, tensor<1x37xf32>) -> tensor<3x37xf32> {
    ^bb0(%4: tensor<3x20xf32>, %5: tensor<20x37xf32, #braid.layout<"ba">>, %6: tensor<1x37xf32>):
      %7 = braid.matmul %4, %5 : (tensor<3x20xf32>, tensor<20x37xf32, #braid.layout<"ba">>) -> tensor<3x37xf32>
      %8 = braid.add %7, %6 : (tensor<3x37xf32>, tensor<1x37xf32>) -> tensor<3x37xf32>
      %9 = braid.tanh %8 : (tensor<3x37xf32>) -> tensor<3x37xf32>
      braid.yield %9 : tensor<3x37xf32>
    }
    func.return %3 : tensor<3x37xf32>
  }
}
// -----
// packed, family 'gemm-narrow'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<9x20xui8>, %1: tensor<20x37xi8, #braid.layout<"BA32b2a">>) -> tensor<9x37xi32> {
    %2 = braid.fused(%0, %1) {test.expected = {family = "gemm-narrow", schedule = {columns_outside = 0 : i64, rows = 12 : i64, unroll = 2 : i64, vectors = 2 : i64}}} : (tensor<9x20xui8>, tensor<20x37xi8, #braid.layout<"BA32b2a">>) -> tensor<9x37xi32> {
    ^bb0(%3: tensor<9x20xui8>, %4: tensor<20x37xi8, #braid.layout<"BA32b2a">>):
      %5 = braid.matmul %3, %4 {accumulator = i32} : (tensor<9x20xui8>, tensor<20x37xi8, #braid.layout<"BA32b2a">>) -> tensor<9x37xi32>
      braid.yield %5 : tensor<9x37xi32>
    }
    func.return %2 : tensor<9x37xi32>
  }
}
// -----
// packed, family 'conv-narrow'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<1x16x9x11xui8, #braid.layout<"acdb">>, %1: tensor<20x16x3x3xi8, #braid.layout<"AcdB32a2b">>) -> tensor<1x20x7x9xi32, #braid.layout<"acdb">> {
    %2 = braid.fused(%0, %1) {test.expected = {family = "conv-narrow", schedule = {columns_outside = 0 : i64, rows = 12 : i64, unroll = 2 : i64, vectors = 2 : i64}}} : (tensor<1x16x9x11xui8, #braid.layout<"acdb">>, tensor<20x16x3x3xi8, #braid.layout<"AcdB32a2b">>) -> tensor<1x20x7x9xi32, #braid.layout<"acdb">> {
    ^bb0(%3: tensor<1x16x9x11xui8, #braid.layout<"acdb">>, %4: tensor<20x16x3x3xi8, #braid.layout<"AcdB32a2b">>):
      %5 = braid.conv %3, %4 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64, accumulator = i32} : (tensor<1x16x9x11xui8, #braid.layout<"acdb">>, tensor<20x16x3x3xi8, #braid.layout<"AcdB32a2b">>) -> tensor<1x20x7x9xi32, #braid.layout<"acdb">>
      braid.yield %5 : tensor<1x20x7x9xi32, #braid.layout<"acdb">>
    }
    func.return %2 : tensor<1x20x7x9xi32, #braid.layout<"acdb">>
  }
}
// -----
// by rows, family 'gemm-packing'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<9x20xui8>, %1: tensor<20x37xi8>) -> tensor<9x37xi32> {
    %2 = braid.fused(%0, %1) {test.expected = {family = "gemm-packing", schedule = {columns_outside = 1 : i64, rows = 12 : i64, unroll = 2 : i64, vectors = 2 : i64}}} : (tensor<9x20xui8>, tensor<20x37xi8>) -> tensor<9x37xi32> {
    ^bb0(%3: tensor<9x20xui8>, %4: tensor<20x37xi8>):
      %5 = braid.matmul %3, %4 {accumulator = i32} : (tensor<9x20xui8>, tensor<20x37xi8>) -> tensor<9x37xi32>
      braid.yield %5 : tensor<9x37xi32>
    }
    func.return %2 : tensor<9x37xi32>
  }
}
// -----
// packed, family 'gemm-amx'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4,+amx-tile,+amx-int8,+amx-bf16"}>} {
  func.func @main(%0: tensor<40x100xui8>, %1: tensor<100x37xi8, #braid.layout<"BA32b4a">>) -> tensor<40x37xi32> {
    %2 = braid.fused(%0, %1) {test.expected = {family = "gemm-amx", schedule = {column_tiles = 2 : i64, columns_outside = 0 : i64, row_tiles = 2 : i64, rows = 16 : i64, steps = 5 : i64}}} : (tensor<40x100xui8>, tensor<100x37xi8, #braid.layout<"BA32b4a">>) -> tensor<40x37xi32> {
    ^bb0(%3: tensor<40x100xui8>, %4: tensor<100x37xi8, #braid.layout<"BA32b4a">>):
      %5 = braid.matmul %3, %4 {accumulator = i32} : (tensor<40x100xui8>, tensor<100x37xi8, #braid.layout<"BA32b4a">>) -> tensor<40x37xi32>
      braid.yield %5 : tensor<40x37xi32>
    }
    func.return %2 : tensor<40x37xi32>
  }
}
// -----
// packed, family 'conv-amx'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4,+amx-tile,+amx-int8,+amx-bf16"}>} {
  func.func @main(%0: tensor<1x16x9x11xui8, #braid.layout<"acdb">>, %1: tensor<20x16x3x3xi8, #braid.layout<"AcdB32a4b">>) -> tensor<1x20x7x9xi32, #braid.layout<"acdb">> {
    %2 = braid.fused(%0, %1) {test.expected = {family = "conv-amx", schedule = {column_tiles = 2 : i64, columns_outside = 1 : i64, row_tiles = 1 : i64, rows = 9 : i64, steps = 12 : i64}}} : (tensor<1x16x9x11xui8, #braid.layout<"acdb">>, tensor<20x16x3x3xi8, #braid.layout<"AcdB32a4b">>) -> tensor<1x20x7x9xi32, #braid.layout<"acdb">> {
    ^bb0(%3: tensor<1x16x9x11xui8, #braid.layout<"acdb">>, %4: tensor<20x16x3x3xi8, #braid.layout<"AcdB32a4b">>):
      %5 = braid.conv %3, %4 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64, accumulator = i32} : (tensor<1x16x9x11xui8, #braid.layout<"acdb">>, tensor<20x16x3x3xi8, #braid.layout<"AcdB32a4b">>) -> tensor<1x20x7x9xi32, #braid.layout<"acdb">>
      braid.yield %5 : tensor<1x20x7x9xi32, #braid.layout<"acdb">>
    }
    func.return %2 : tensor<1x20x7x9xi32, #braid.layout<"acdb">>
  }
}
// -----
// channels last, family 'conv-direct'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<1x16x9x11xf32, #braid.layout<"acdb">>, %1: tensor<20x16x3x3xf32, #braid.layout<"Acdb32a">>, %2: tensor<1x20x1x1xf32>) -> tensor<1x20x7x9xf32, #braid.layout<"acdb">> {
    %3 = braid.fused(%0, %1, %2) {test.expected = {family = "conv-direct", schedule = {columns_outside = 0 : i64, rows = 12 : i64, unroll = 2 : i64, vectors = 2 : i64}}} : (tensor<1x16x9x11xf32, #braid.layout<"acdb">>, tensor<20x16x3x3xf32, #braid.layout<"Acdb32a">>, tensor<1x20x1x1xf32>) -> tensor<1x20x7x9xf32, #braid.layout<"acdb">> {
    ^bb0(%4: tensor<1x16x9x11xf32, #braid.layout<"acdb">>, %5: tensor<20x16x3x3xf32, #braid.layout<"Acdb32a">>, %6: tensor<1x20x1x1xf32>):
      %7 = braid.conv %4, %5 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x16x9x11xf32, #braid.layout<"acdb">>, tensor<20x16x3x3xf32, #braid.layout<"Acdb32a">>) -> tensor<1x20x7x9xf32>
      %8 = braid.add %7, %6 : (tensor<1x20x7x9xf32>, tensor<1x20x1x1xf32>) -> tensor<1x20x7x9xf32>
      %9 = braid.exp %8 : (tensor<1x20x7x9xf32>) -> tensor<1x20x7x9xf32, #braid.layout<"acdb">>
      braid.yield %9 : tensor<1x20x7x9xf32, #braid.layout<"acdb">>
    }
    func.return %3 : tensor<1x20x7x9xf32, #braid.layout<"acdb">>
  }
}
// -----
// 4 results, family 'conv-winograd'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<1x16x9x11xf32, #braid.layout<"acdb">>, %1: tensor<20x16x3x3xf32, #braid.layout<"Acdb32a:winograd4">>, %2: tensor<1x20x1x1xf32>) -> tensor<1x20x7x9xf32, #braid.layout<"acdb">> {
    %3 = braid.fused(%0, %1, %2) {test.expected = {family = "conv-winograd", schedule = {parts = 1 : i64, rows = 3 : i64, tiles = 6 : i64, unroll = 2 : i64}}} : (tensor<1x16x9x11xf32, #braid.layout<"acdb">>, tensor<20x16x3x3xf32, #braid.layout<"Acdb32a:winograd4">>, tensor<1x20x1x1xf32>) -> tensor<1x20x7x9xf32, #braid.layout<"acdb">> {
    ^bb0(%4: tensor<1x16x9x11xf32, #braid.layout<"acdb">>, %5: tensor<20x16x3x3xf32, #braid.layout<"Acdb32a:winograd4">>, %6: tensor<1x20x1x1xf32>):
      %7 = braid.conv %4, %5 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x16x9x11xf32, #braid.layout<"acdb">>, tensor<20x16x3x3xf32, #braid.layout<"Acdb32a:winograd4">>) -> tensor<1x20x7x9xf32>
      %8 = braid.add %7, %6 : (tensor<1x20x7x9xf32>, tensor<1x20x1x1xf32>) -> tensor<1x20x7x9xf32>
      %9 = braid.exp %8 : (tensor<1x20x7x9xf32>) -> tensor<1x20x7x9xf32, #braid.layout<"acdb">>
      braid.yield %9 : tensor<1x20x7x9xf32, #braid.layout<"acdb">>
    }
    func.return %3 : tensor<1x20x7x9xf32, #braid.layout<"acdb">>
  }
}
// -----
// last, family 'conv-depthwise'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<1x32x9x11xf32, #braid.layout<"acdb">>, %1: tensor<32x1x3x3xf32, #braid.layout<"bcda">>, %2: tensor<1x32x1x1xf32>) -> tensor<1x32x7x9xf32, #braid.layout<"acdb">> {
    %3 = braid.fused(%0, %1, %2) {test.expected = {family = "conv-depthwise", schedule = {columns = 8 : i64, vectors = 1 : i64}}} : (tensor<1x32x9x11xf32, #braid.layout<"acdb">>, tensor<32x1x3x3xf32, #braid.layout<"bcda">>, tensor<1x32x1x1xf32>) -> tensor<1x32x7x9xf32, #braid.layout<"acdb">> {
    ^bb0(%4: tensor<1x32x9x11xf32, #braid.layout<"acdb">>, %5: tensor<32x1x3x3xf32, #braid.layout<"bcda">>, %6: tensor<1x32x1x1xf32>):
      %7 = braid.conv %4, %5 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 32 : i64} : (tensor<1x32x9x11xf32, #braid.layout<"acdb">>, tensor<32x1x3x3xf32, #braid.layout<"bcda">>) -> tensor<1x32x7x9xf32>
      %8 = braid.add %7, %6 : (tensor<1x32x7x9xf32>, tensor<1x32x1x1xf32>) -> tensor<1x32x7x9xf32>
      %9 = braid.exp %8 : (tensor<1x32x7x9xf32>) -> tensor<1x32x7x9xf32, #braid.layout<"acdb">>
      braid.yield %9 : tensor<1x32x7x9xf32, #braid.layout<"acdb">>
    }
    func.return %3 : tensor<1x32x7x9xf32, #braid.layout<"acdb">>
  }
}
// -----
// pairs, family 'conv-grouped'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<1x32x9x11xf32, #braid.layout<"acdb">>, %1: tensor<32x2x3x3xf32, #braid.layout<"Acdb16a">>, %2: tensor<1x32x1x1xf32>) -> tensor<1x32x7x9xf32, #braid.layout<"acdb">> {
    %3 = braid.fused(%0, %1, %2) {test.expected = {family = "conv-grouped", schedule = {columns = 8 : i64, vectors = 1 : i64}}} : (tensor<1x32x9x11xf32, #braid.layout<"acdb">>, tensor<32x2x3x3xf32, #braid.layout<"Acdb16a">>, tensor<1x32x1x1xf32>) -> tensor<1x32x7x9xf32, #braid.layout<"acdb">> {
    ^bb0(%4: tensor<1x32x9x11xf32, #braid.layout<"acdb">>, %5: tensor<32x2x3x3xf32, #braid.layout<"Acdb16a">>, %6: tensor<1x32x1x1xf32>):
      %7 = braid.conv %4, %5 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 16 : i64} : (tensor<1x32x9x11xf32, #braid.layout<"acdb">>, tensor<32x2x3x3xf32, #braid.layout<"Acdb16a">>) -> tensor<1x32x7x9xf32>
      %8 = braid.add %7, %6 : (tensor<1x32x7x9xf32>, tensor<1x32x1x1xf32>) -> tensor<1x32x7x9xf32>
      %9 = braid.exp %8 : (tensor<1x32x7x9xf32>) -> tensor<1x32x7x9xf32, #braid.layout<"acdb">>
      braid.yield %9 : tensor<1x32x7x9xf32, #braid.layout<"acdb">>
    }
    func.return %3 : tensor<1x32x7x9xf32, #braid.layout<"acdb">>
  }
}
// -----
// max acdb, family 'pool'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<1x32x9x11xf32, #braid.layout<"acdb">>) -> tensor<1x32x4x5xf32, #braid.layout<"acdb">> {
    %1 = braid.fused(%0) {test.expected = {family = "pool", schedule = {columns = 1 : i64, vectors = 1 : i64}}} : (tensor<1x32x9x11xf32, #braid.layout<"acdb">>) -> tensor<1x32x4x5xf32, #braid.layout<"acdb">> {
    ^bb0(%2: tensor<1x32x9x11xf32, #braid.layout<"acdb">>):
      %3 = braid.pool %2 {kind = "max", window = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>} : (tensor<1x32x9x11xf32, #braid.layout<"acdb">>) -> tensor<1x32x4x5xf32, #braid.layout<"acdb">>
      braid.yield %3 : tensor<1x32x4x5xf32, #braid.layout<"acdb">>
    }
    func.return %1 : tensor<1x32x4x5xf32, #braid.layout<"acdb">>
  }
}
// -----
// rows, family 'reduction'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<5x37xf32>) -> tensor<5x1xf32> {
    %1 = braid.fused(%0) {test.expected = {family = "reduction", schedule = {}}} : (tensor<5x37xf32>) -> tensor<5x1xf32> {
    ^bb0(%2: tensor<5x37xf32>):
      %3 = braid.reduce %2 {kind = "add", dims = array<i64: 1>} : (tensor<5x37xf32>) -> tensor<5x1xf32>
      braid.yield %3 : tensor<5x1xf32>
    }
    func.return %1 : tensor<5x1xf32>
  }
}
// -----
// softmax, family 'normalization'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<5x37xf32>) -> tensor<5x37xf32> {
    %1 = braid.fused(%0) {test.expected = {family = "normalization", schedule = {}}} : (tensor<5x37xf32>) -> tensor<5x37xf32> {
    ^bb0(%2: tensor<5x37xf32>):
      %3 = braid.softmax %2 {dim = 1 : i64} : (tensor<5x37xf32>) -> tensor<5x37xf32>
      braid.yield %3 : tensor<5x37xf32>
    }
    func.return %1 : tensor<5x37xf32>
  }
}
// -----
// abcd to acdb, family 'movement'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<1x16x5x7xf32>) -> tensor<1x16x5x7xf32, #braid.layout<"acdb">> {
    %1 = braid.fused(%0) {test.expected = {family = "movement", schedule = {unroll = 2 : i64}}} : (tensor<1x16x5x7xf32>) -> tensor<1x16x5x7xf32, #braid.layout<"acdb">> {
    ^bb0(%2: tensor<1x16x5x7xf32>):
      %3 = braid.reorder %2 : (tensor<1x16x5x7xf32>) -> tensor<1x16x5x7xf32, #braid.layout<"acdb">>
      braid.yield %3 : tensor<1x16x5x7xf32, #braid.layout<"acdb">>
    }
    func.return %1 : tensor<1x16x5x7xf32, #braid.layout<"acdb">>
  }
}
// -----
// slices, family 'scatter'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<5x37xf32>, %1: tensor<2x1xi64>, %2: tensor<2x37xf32>) -> tensor<5x37xf32> {
    %3 = braid.fused(%0, %1, %2) {test.expected = {family = "scatter", schedule = {}}} : (tensor<5x37xf32>, tensor<2x1xi64>, tensor<2x37xf32>) -> tensor<5x37xf32> {
    ^bb0(%4: tensor<5x37xf32>, %5: tensor<2x1xi64>, %6: tensor<2x37xf32>):
      %7 = braid.scatter_nd %4, %5, %6 {reduction = "none"} : (tensor<5x37xf32>, tensor<2x1xi64>, tensor<2x37xf32>) -> tensor<5x37xf32>
      braid.yield %7 : tensor<5x37xf32>
    }
    func.return %3 : tensor<5x37xf32>
  }
}
// -----
// vectors, family 'scan'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<3x5x37xf16>) -> tensor<3x5x37xf16> {
    %1 = braid.fused(%0) {test.expected = {family = "scan", schedule = {}}} : (tensor<3x5x37xf16>) -> tensor<3x5x37xf16> {
    ^bb0(%2: tensor<3x5x37xf16>):
      %3 = braid.scan %2 {kind = "add", dim = 1 : i64, exclusive = true, reverse = true} : (tensor<3x5x37xf16>) -> tensor<3x5x37xf16>
      braid.yield %3 : tensor<3x5x37xf16>
    }
    func.return %1 : tensor<3x5x37xf16>
  }
}
// -----
// mirrored, family 'known-gather'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<5x9xf32>) -> tensor<7x12xf32> {
    %1 = braid.fused(%0) {test.expected = {family = "known-gather", schedule = {}}} : (tensor<5x9xf32>) -> tensor<7x12xf32> {
    ^bb0(%2: tensor<5x9xf32>):
      %3 = braid.constant {value = dense<[1, 0, 1, 2, 3, 4, 3]> : tensor<7xi64>} : tensor<7xi64>
      %4 = braid.gather %2, %3 {dim = 0 : i64} : (tensor<5x9xf32>, tensor<7xi64>) -> tensor<7x9xf32>
      %5 = braid.constant {value = dense<[2, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 7]> : tensor<12xi64>} : tensor<12xi64>
      %6 = braid.gather %4, %5 {dim = 1 : i64} : (tensor<7x9xf32>, tensor<12xi64>) -> tensor<7x12xf32>
      braid.yield %6 : tensor<7x12xf32>
    }
    func.return %1 : tensor<7x12xf32>
  }
}
// -----
// rows, family 'arg-reduce'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<3x300xf32>) -> tensor<3x1xi64> {
    %1 = braid.fused(%0) {test.expected = {family = "arg-reduce", schedule = {}}} : (tensor<3x300xf32>) -> tensor<3x1xi64> {
    ^bb0(%2: tensor<3x300xf32>):
      %3 = braid.arg_reduce %2 {kind = "min", dim = 1 : i64, select_last = false} : (tensor<3x300xf32>) -> tensor<3x1xi64>
      braid.yield %3 : tensor<3x1xi64>
    }
    func.return %1 : tensor<3x1xi64>
  }
}
// -----
// few, family 'top-k'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<3x300xf32>) -> (tensor<3x5xf32>, tensor<3x5xi64>) {
    %1, %2 = braid.fused(%0) {test.expected = {family = "top-k", schedule = {}}} : (tensor<3x300xf32>) -> (tensor<3x5xf32>, tensor<3x5xi64>) {
    ^bb0(%3: tensor<3x300xf32>):
      %4, %5 = braid.top_k %3 {k = 5 : i64, dim = 1 : i64, largest = true} : (tensor<3x300xf32>) -> (tensor<3x5xf32>, tensor<3x5xi64>)
      braid.yield %4, %5 : tensor<3x5xf32>, tensor<3x5xi64>
    }
    func.return %1, %2 : tensor<3x5xf32>, tensor<3x5xi64>
  }
}
// -----
// sliced, family 'elementwise'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<7x64xf32>, %1: tensor<1x37xf32>) -> tensor<7x37xf32> {
    %2 = braid.fused(%0, %1) {test.expected = {family = "elementwise", schedule = {unroll = 1 : i64}}} : (tensor<7x64xf32>, tensor<1x37xf32>) -> tensor<7x37xf32> {
    ^bb0(%3: tensor<7x64xf32>, %4: tensor<1x37xf32>):
      %5 = braid.slice %3 {offsets = array<i64: 0, 3>, sizes = array<i64: 7, 37>, strides = array<i64: 1, 1>} : (tensor<7x64xf32>) -> tensor<7x37xf32>
      %6 = braid.mul %5, %4 : (tensor<7x37xf32>, tensor<1x37xf32>) -> tensor<7x37xf32>
      %7 = braid.exp %6 : (tensor<7x37xf32>) -> tensor<7x37xf32>
      braid.yield %7 : tensor<7x37xf32>
    }
    func.return %2 : tensor<7x37xf32>
  }
}
// -----
// attention, family 'tiled'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<32x16xf32>, %1: tensor<16x32xf32>, %2: tensor<32x16xf32>) -> tensor<32x16xf32> {
    %3 = braid.fused(%0, %1, %2) {test.expected = {family = "tiled", schedule = {tile0 = 16 : i64, tile1 = 16 : i64}}} : (tensor<32x16xf32>, tensor<16x32xf32>, tensor<32x16xf32>) -> tensor<32x16xf32> {
    ^bb0(%4: tensor<32x16xf32>, %5: tensor<16x32xf32>, %6: tensor<32x16xf32>):
      %7 = braid.matmul %4, %5 : (tensor<32x16xf32>, tensor<16x32xf32>) -> tensor<32x32xf32>
      %8 = braid.softmax %7 {dim = 1 : i64} : (tensor<32x32xf32>) -> tensor<32x32xf32>
      %9 = braid.matmul %8, %6 : (tensor<32x32xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
      braid.yield %9 : tensor<32x16xf32>
    }
    func.return %3 : tensor<32x16xf32>
  }
}
// -----
// sum, family 'generic'
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "x86-64-v4"}>} {
  func.func @main(%0: tensor<5x7xf32>) -> tensor<5x1xf32> {
    %1 = braid.fused(%0) {test.expected = {family = "generic", schedule = {}}} : (tensor<5x7xf32>) -> tensor<5x1xf32> {
    ^bb0(%2: tensor<5x7xf32>):
      %3 = braid.reduce %2 {kind = "add", dims = array<i64: 1>} : (tensor<5x7xf32>) -> tensor<5x1xf32>
      braid.yield %3 : tensor<5x1xf32>
    }
    func.return %1 : tensor<5x1xf32>
  }
}
// -----
// attention, family 'gpu-hopper-attention'
builtin.module attributes {braid.target = #braid.target<"gpu-h100", {}>} {
  func.func @main(%0: tensor<64x64xf16>, %1: tensor<64x64xf16>, %2: tensor<64x64xf16>) -> tensor<64x64xf16> {
    %3 = braid.fused(%0, %1, %2) {test.expected = {family = "gpu-hopper-attention", schedule = {groups = 2 : i64, keys = 128 : i64, stages = 4 : i64, turns = 0 : i64}}} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16> {
    ^bb0(%4: tensor<64x64xf16>, %5: tensor<64x64xf16>, %6: tensor<64x64xf16>):
      %7 = braid.matmul %4, %5 : (tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
      %8 = braid.softmax %7 {dim = 1 : i64} : (tensor<64x64xf16>) -> tensor<64x64xf16>
      %9 = braid.matmul %8, %6 : (tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
      braid.yield %9 : tensor<64x64xf16>
    }
    func.return %3 : tensor<64x64xf16>
  }
}
// -----
// attention of 128, family 'gpu-attention'
builtin.module attributes {braid.target = #braid.target<"gpu-h100", {}>} {
  func.func @main(%0: tensor<128x64xf16>, %1: tensor<64x128xf16>, %2: tensor<128x64xf16>) -> tensor<128x64xf16> {
    %3 = braid.fused(%0, %1, %2) {test.expected = {family = "gpu-attention", schedule = {keys = 64 : i64, rows = 64 : i64, stages = 2 : i64}}} : (tensor<128x64xf16>, tensor<64x128xf16>, tensor<128x64xf16>) -> tensor<128x64xf16> {
    ^bb0(%4: tensor<128x64xf16>, %5: tensor<64x128xf16>, %6: tensor<128x64xf16>):
      %7 = braid.matmul %4, %5 : (tensor<128x64xf16>, tensor<64x128xf16>) -> tensor<128x128xf16>
      %8 = braid.softmax %7 {dim = 1 : i64} : (tensor<128x128xf16>) -> tensor<128x128xf16>
      %9 = braid.matmul %8, %6 : (tensor<128x128xf16>, tensor<128x64xf16>) -> tensor<128x64xf16>
      braid.yield %9 : tensor<128x64xf16>
    }
    func.return %3 : tensor<128x64xf16>
  }
}
// -----
// product of halves, family 'gpu-hopper-gemm'
builtin.module attributes {braid.target = #braid.target<"gpu-h100", {}>} {
  func.func @main(%0: tensor<128x128xf16>, %1: tensor<128x128xf16>) -> tensor<128x128xf16> {
    %2 = braid.fused(%0, %1) {test.expected = {family = "gpu-hopper-gemm", schedule = {columns = 16 : i64, filled = 0 : i64, groups = 2 : i64, rows = 128 : i64, splits = 1 : i64, stages = 12 : i64}}} : (tensor<128x128xf16>, tensor<128x128xf16>) -> tensor<128x128xf16> {
    ^bb0(%3: tensor<128x128xf16>, %4: tensor<128x128xf16>):
      %5 = braid.matmul %3, %4 : (tensor<128x128xf16>, tensor<128x128xf16>) -> tensor<128x128xf16>
      braid.yield %5 : tensor<128x128xf16>
    }
    func.return %2 : tensor<128x128xf16>
  }
}
// -----
// product, family 'gpu-gemm'
builtin.module attributes {braid.target = #braid.target<"gpu-h100", {}>} {
  func.func @main(%0: tensor<64x64xf32>, %1: tensor<64x64xf32>) -> tensor<64x64xf32> {
    %2 = braid.fused(%0, %1) {test.expected = {family = "gpu-gemm", schedule = {columns = 64 : i64, depth = 64 : i64, rows = 64 : i64, splits = 1 : i64, stages = 4 : i64, warp_columns = 64 : i64, warp_rows = 32 : i64}}} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%3: tensor<64x64xf32>, %4: tensor<64x64xf32>):
      %5 = braid.matmul %3, %4 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      braid.yield %5 : tensor<64x64xf32>
    }
    func.return %2 : tensor<64x64xf32>
  }
}
// -----
// depthwise, family 'gpu-depthwise'
builtin.module attributes {braid.target = #braid.target<"gpu-h100", {}>} {
  func.func @main(%0: tensor<1x32x9x11xf32, #braid.layout<"acdb">>, %1: tensor<32x1x3x3xf32, #braid.layout<"bcda">>) -> tensor<1x32x7x9xf32, #braid.layout<"acdb">> {
    %2 = braid.fused(%0, %1) {test.expected = {family = "gpu-depthwise", schedule = {}}} : (tensor<1x32x9x11xf32, #braid.layout<"acdb">>, tensor<32x1x3x3xf32, #braid.layout<"bcda">>) -> tensor<1x32x7x9xf32, #braid.layout<"acdb">> {
    ^bb0(%3: tensor<1x32x9x11xf32, #braid.layout<"acdb">>, %4: tensor<32x1x3x3xf32, #braid.layout<"bcda">>):
      %5 = braid.conv %3, %4 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 32 : i64} : (tensor<1x32x9x11xf32, #braid.layout<"acdb">>, tensor<32x1x3x3xf32, #braid.layout<"bcda">>) -> tensor<1x32x7x9xf32, #braid.layout<"acdb">>
      braid.yield %5 : tensor<1x32x7x9xf32, #braid.layout<"acdb">>
    }
    func.return %2 : tensor<1x32x7x9xf32, #braid.layout<"acdb">>
  }
}
// -----
// pointwise convolution of halves, family 'gpu-hopper-conv'
builtin.module attributes {braid.target = #braid.target<"gpu-h100", {}>} {
  func.func @main(%0: tensor<1x128x16x16xf16, #braid.layout<"acdb">>, %1: tensor<128x128x1x1xf16, #braid.layout<"acdb">>) -> tensor<1x128x16x16xf16, #braid.layout<"acdb">> {
    %2 = braid.fused(%0, %1) {test.expected = {family = "gpu-hopper-conv", schedule = {columns = 16 : i64, filled = 0 : i64, groups = 2 : i64, rows = 128 : i64, splits = 1 : i64, stages = 12 : i64}}} : (tensor<1x128x16x16xf16, #braid.layout<"acdb">>, tensor<128x128x1x1xf16, #braid.layout<"acdb">>) -> tensor<1x128x16x16xf16, #braid.layout<"acdb">> {
    ^bb0(%3: tensor<1x128x16x16xf16, #braid.layout<"acdb">>, %4: tensor<128x128x1x1xf16, #braid.layout<"acdb">>):
      %5 = braid.conv %3, %4 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x128x16x16xf16, #braid.layout<"acdb">>, tensor<128x128x1x1xf16, #braid.layout<"acdb">>) -> tensor<1x128x16x16xf16, #braid.layout<"acdb">>
      braid.yield %5 : tensor<1x128x16x16xf16, #braid.layout<"acdb">>
    }
    func.return %2 : tensor<1x128x16x16xf16, #braid.layout<"acdb">>
  }
}
// -----
// convolution, family 'gpu-conv'
builtin.module attributes {braid.target = #braid.target<"gpu-h100", {}>} {
  func.func @main(%0: tensor<1x16x9x11xf32, #braid.layout<"acdb">>, %1: tensor<32x16x3x3xf32, #braid.layout<"cdba">>) -> tensor<1x32x7x9xf32, #braid.layout<"acdb">> {
    %2 = braid.fused(%0, %1) {test.expected = {family = "gpu-conv", schedule = {columns = 64 : i64, depth = 64 : i64, rows = 64 : i64, splits = 2 : i64, stages = 4 : i64, warp_columns = 64 : i64, warp_rows = 32 : i64}}} : (tensor<1x16x9x11xf32, #braid.layout<"acdb">>, tensor<32x16x3x3xf32, #braid.layout<"cdba">>) -> tensor<1x32x7x9xf32, #braid.layout<"acdb">> {
    ^bb0(%3: tensor<1x16x9x11xf32, #braid.layout<"acdb">>, %4: tensor<32x16x3x3xf32, #braid.layout<"cdba">>):
      %5 = braid.conv %3, %4 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x16x9x11xf32, #braid.layout<"acdb">>, tensor<32x16x3x3xf32, #braid.layout<"cdba">>) -> tensor<1x32x7x9xf32, #braid.layout<"acdb">>
      braid.yield %5 : tensor<1x32x7x9xf32, #braid.layout<"acdb">>
    }
    func.return %2 : tensor<1x32x7x9xf32, #braid.layout<"acdb">>
  }
}
// -----
// top k, family 'gpu-top-k'
builtin.module attributes {braid.target = #braid.target<"gpu-h100", {}>} {
  func.func @main(%0: tensor<3x300xf32>) -> (tensor<3x5xf32>, tensor<3x5xi64>) {
    %1, %2 = braid.fused(%0) {test.expected = {family = "gpu-top-k", schedule = {}}} : (tensor<3x300xf32>) -> (tensor<3x5xf32>, tensor<3x5xi64>) {
    ^bb0(%3: tensor<3x300xf32>):
      %4, %5 = braid.top_k %3 {k = 5 : i64, dim = 1 : i64, largest = true} : (tensor<3x300xf32>) -> (tensor<3x5xf32>, tensor<3x5xi64>)
      braid.yield %4, %5 : tensor<3x5xf32>, tensor<3x5xi64>
    }
    func.return %1, %2 : tensor<3x5xf32>, tensor<3x5xi64>
  }
}
// -----
// scan, family 'gpu-scan'
builtin.module attributes {braid.target = #braid.target<"gpu-h100", {}>} {
  func.func @main(%0: tensor<8x300xf32>) -> tensor<8x300xf32> {
    %1 = braid.fused(%0) {test.expected = {family = "gpu-scan", schedule = {}}} : (tensor<8x300xf32>) -> tensor<8x300xf32> {
    ^bb0(%2: tensor<8x300xf32>):
      %3 = braid.scan %2 {kind = "add", dim = 1 : i64, exclusive = false, reverse = false} : (tensor<8x300xf32>) -> tensor<8x300xf32>
      braid.yield %3 : tensor<8x300xf32>
    }
    func.return %1 : tensor<8x300xf32>
  }
}
// -----
// attention, family 'gpu-attention'
builtin.module attributes {braid.target = #braid.target<"gpu-a100", {}>} {
  func.func @main(%0: tensor<64x64xf16>, %1: tensor<64x64xf16>, %2: tensor<64x64xf16>) -> tensor<64x64xf16> {
    %3 = braid.fused(%0, %1, %2) {test.expected = {family = "gpu-attention", schedule = {keys = 64 : i64, rows = 64 : i64, stages = 2 : i64}}} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16> {
    ^bb0(%4: tensor<64x64xf16>, %5: tensor<64x64xf16>, %6: tensor<64x64xf16>):
      %7 = braid.matmul %4, %5 : (tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
      %8 = braid.softmax %7 {dim = 1 : i64} : (tensor<64x64xf16>) -> tensor<64x64xf16>
      %9 = braid.matmul %8, %6 : (tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
      braid.yield %9 : tensor<64x64xf16>
    }
    func.return %3 : tensor<64x64xf16>
  }
}
// -----
// product, family 'gpu-gemm'
builtin.module attributes {braid.target = #braid.target<"gpu-a100", {}>} {
  func.func @main(%0: tensor<64x64xf32>, %1: tensor<64x64xf32>) -> tensor<64x64xf32> {
    %2 = braid.fused(%0, %1) {test.expected = {family = "gpu-gemm", schedule = {columns = 64 : i64, depth = 64 : i64, rows = 64 : i64, splits = 1 : i64, stages = 4 : i64, warp_columns = 64 : i64, warp_rows = 32 : i64}}} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%3: tensor<64x64xf32>, %4: tensor<64x64xf32>):
      %5 = braid.matmul %3, %4 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      braid.yield %5 : tensor<64x64xf32>
    }
    func.return %2 : tensor<64x64xf32>
  }
}
// -----
// depthwise, family 'gpu-depthwise'
builtin.module attributes {braid.target = #braid.target<"gpu-a100", {}>} {
  func.func @main(%0: tensor<1x32x9x11xf32, #braid.layout<"acdb">>, %1: tensor<32x1x3x3xf32, #braid.layout<"bcda">>) -> tensor<1x32x7x9xf32, #braid.layout<"acdb">> {
    %2 = braid.fused(%0, %1) {test.expected = {family = "gpu-depthwise", schedule = {}}} : (tensor<1x32x9x11xf32, #braid.layout<"acdb">>, tensor<32x1x3x3xf32, #braid.layout<"bcda">>) -> tensor<1x32x7x9xf32, #braid.layout<"acdb">> {
    ^bb0(%3: tensor<1x32x9x11xf32, #braid.layout<"acdb">>, %4: tensor<32x1x3x3xf32, #braid.layout<"bcda">>):
      %5 = braid.conv %3, %4 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 32 : i64} : (tensor<1x32x9x11xf32, #braid.layout<"acdb">>, tensor<32x1x3x3xf32, #braid.layout<"bcda">>) -> tensor<1x32x7x9xf32, #braid.layout<"acdb">>
      braid.yield %5 : tensor<1x32x7x9xf32, #braid.layout<"acdb">>
    }
    func.return %2 : tensor<1x32x7x9xf32, #braid.layout<"acdb">>
  }
}
// -----
// convolution, family 'gpu-conv'
builtin.module attributes {braid.target = #braid.target<"gpu-a100", {}>} {
  func.func @main(%0: tensor<1x16x9x11xf32, #braid.layout<"acdb">>, %1: tensor<32x16x3x3xf32, #braid.layout<"cdba">>) -> tensor<1x32x7x9xf32, #braid.layout<"acdb">> {
    %2 = braid.fused(%0, %1) {test.expected = {family = "gpu-conv", schedule = {columns = 64 : i64, depth = 64 : i64, rows = 64 : i64, splits = 2 : i64, stages = 4 : i64, warp_columns = 64 : i64, warp_rows = 32 : i64}}} : (tensor<1x16x9x11xf32, #braid.layout<"acdb">>, tensor<32x16x3x3xf32, #braid.layout<"cdba">>) -> tensor<1x32x7x9xf32, #braid.layout<"acdb">> {
    ^bb0(%3: tensor<1x16x9x11xf32, #braid.layout<"acdb">>, %4: tensor<32x16x3x3xf32, #braid.layout<"cdba">>):
      %5 = braid.conv %3, %4 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x16x9x11xf32, #braid.layout<"acdb">>, tensor<32x16x3x3xf32, #braid.layout<"cdba">>) -> tensor<1x32x7x9xf32, #braid.layout<"acdb">>
      braid.yield %5 : tensor<1x32x7x9xf32, #braid.layout<"acdb">>
    }
    func.return %2 : tensor<1x32x7x9xf32, #braid.layout<"acdb">>
  }
}
// -----
// top k, family 'gpu-top-k'
builtin.module attributes {braid.target = #braid.target<"gpu-a100", {}>} {
  func.func @main(%0: tensor<3x300xf32>) -> (tensor<3x5xf32>, tensor<3x5xi64>) {
    %1, %2 = braid.fused(%0) {test.expected = {family = "gpu-top-k", schedule = {}}} : (tensor<3x300xf32>) -> (tensor<3x5xf32>, tensor<3x5xi64>) {
    ^bb0(%3: tensor<3x300xf32>):
      %4, %5 = braid.top_k %3 {k = 5 : i64, dim = 1 : i64, largest = true} : (tensor<3x300xf32>) -> (tensor<3x5xf32>, tensor<3x5xi64>)
      braid.yield %4, %5 : tensor<3x5xf32>, tensor<3x5xi64>
    }
    func.return %1, %2 : tensor<3x5xf32>, tensor<3x5xi64>
  }
}
// -----
// scan, family 'gpu-scan'
builtin.module attributes {braid.target = #braid.target<"gpu-a100", {}>} {
  func.func @main(%0: tensor<8x300xf32>) -> tensor<8x300xf32> {
    %1 = braid.fused(%0) {test.expected = {family = "gpu-scan", schedule = {}}} : (tensor<8x300xf32>) -> tensor<8x300xf32> {
    ^bb0(%2: tensor<8x300xf32>):
      %3 = braid.scan %2 {kind = "add", dim = 1 : i64, exclusive = false, reverse = false} : (tensor<8x300xf32>) -> tensor<8x300xf32>
      braid.yield %3 : tensor<8x300xf32>
    }
    func.return %1 : tensor<8x300xf32>
  }
}
// -----
// plain, searched
builtin.module attributes {braid.target = #braid.target<"host", {cpu = "znver3"}>} {
  func.func @main(%0: tensor<9x20xf32>, %1: tensor<20x37xf32>, %2: tensor<1x37xf32>) -> tensor<9x37xf32> {
    %3 = braid.fused(%0, %1, %2) {test.expected = {family = "gemm", schedule = {columns_outside = 0 : i64, rows = 3 : i64, unroll = 3 : i64, vectors = 3 : i64}}} : (tensor<9x20xf32>, tensor<20x37xf32>, tensor<1x37xf32>) -> tensor<9x37xf32> {
    ^bb0(%4: tensor<9x20xf32>, %5: tensor<20x37xf32>, %6: tensor<1x37xf32>):
      %7 = braid.matmul %4, %5 : (tensor<9x20xf32>, tensor<20x37xf32>) -> tensor<9x37xf32>
      %8 = braid.add %7, %6 : (tensor<9x37xf32>, tensor<1x37xf32>) -> tensor<9x37xf32>
      %9 = braid.tanh %8 : (tensor<9x37xf32>) -> tensor<9x37xf32>
      braid.yield %9 : tensor<9x37xf32>
    }
    func.return %3 : tensor<9x37xf32>
  }
}
// -----
// a stream, family 'stream'
builtin.module attributes {braid.target = #braid.target<"npu-small", {}>} {
  func.func @main(%a: tensor<64x96xf32>, %b: tensor<96x80xf32>) -> tensor<64x80xf32> {
    %p = braid.matmul %a, %b {test.expected = {family = "stream", schedule = {first = 0 : i64, follow = 1 : i64, parts = 16 : i64, pieces = 1 : i64, reductions = 0 : i64}}} : (tensor<64x96xf32>, tensor<96x80xf32>) -> tensor<64x80xf32>
    %y = braid.exp %p {test.expected = {family = "stream", schedule = {first = 0 : i64, follow = 1 : i64, parts = 16 : i64, pieces = 1 : i64, reductions = 0 : i64}}} : (tensor<64x80xf32>) -> tensor<64x80xf32>
    func.return %y : tensor<64x80xf32>
  }
}
// -----
// a stream, family 'stream'
builtin.module attributes {braid.target = #braid.target<"npu-davinci", {}>} {
  func.func @main(%a: tensor<64x96xf32>, %b: tensor<96x80xf32>) -> tensor<64x80xf32> {
    %p = braid.matmul %a, %b {test.expected = {family = "stream", schedule = {first = 0 : i64, follow = 1 : i64, parts = 16 : i64, pieces = 1 : i64, reductions = 0 : i64}}} : (tensor<64x96xf32>, tensor<96x80xf32>) -> tensor<64x80xf32>
    %y = braid.exp %p {test.expected = {family = "stream", schedule = {first = 0 : i64, follow = 1 : i64, parts = 16 : i64, pieces = 1 : i64, reductions = 0 : i64}}} : (tensor<64x80xf32>) -> tensor<64x80xf32>
    func.return %y : tensor<64x80xf32>
  }
}
