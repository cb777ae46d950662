// A port through which less passes than its units move: each is as fast as the port, and what
// waiting for each other takes is left out, which the remark says.
// RUN: %braid-opt %s -p 'search-order{objective=latency target=%S/Inputs/chip.toml}' --remarks 2>&1 | filecheck %s --check-prefix=WIDE
// RUN: sed 's/bandwidth = 1e12/bandwidth = 0.5e9/' %S/Inputs/chip.toml > %t.toml
// RUN: %braid-opt %s -p 'search-order{objective=latency target=%t.toml}' --remarks 2>&1 | filecheck %s --check-prefix=NARROW

// WIDE: 2 ops, before 0.00108134, cost 0.00108134 s, lower bound 0.00108134 s, gap 0.0 %; costs: 2 roofline{{$}}
// Transfers take 32.768 us instead of 16.384 us.
// NARROW: 2 ops, before 0.00111411, cost 0.00111411 s, lower bound 0.00111411 s, gap 0.0 %; costs: 2 roofline; as if nothing waited for port 'dram'{{$}}
func.func @main(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = braid.matmul %x, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = braid.matmul %y, %y : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %0, %1 : tensor<64x64xf32>, tensor<64x64xf32>
}
