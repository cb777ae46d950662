// Units that share work, and one that does all transfers.
// RUN: %braid-opt %s -p 'search-order{objective=latency target=%S/Inputs/chip.toml}' --remarks 2>&1 | filecheck %s --check-prefix=ONE
// RUN: %braid-opt %s -p 'search-order{objective=latency target=%S/Inputs/chip_two_mpu.toml}' --remarks 2>&1 | filecheck %s --check-prefix=TWO
// RUN: %braid-opt %s -p 'search-order{objective=latency target=%S/Inputs/chip_one_dau.toml}' --remarks 2>&1 | filecheck %s --check-prefix=DAU
// RUN: %braid-opt %s -p 'lower-to-instructions{target=%S/Inputs/chip_two_mpu.toml output=%t.txt}' -o %t.mlir
// RUN: filecheck %s --input-file %t.txt --check-prefix=STREAM
// RUN: %braid simulate %t.txt --target %S/Inputs/chip_two_mpu.toml | filecheck %s --check-prefix=SIMULATED
// RUN: %braid-opt %s -p 'lower-to-instructions{target=%S/Inputs/chip_one_dau.toml output=%t.txt}' -o %t.mlir
// RUN: %braid simulate %t.txt --target %S/Inputs/chip_one_dau.toml | filecheck %s --check-prefix=SIMULATED-DAU

// Products of 524.288 us, transfers of 16.384 us: a load, both products, a store.
// ONE: 2 ops, before 0.00108134, cost 0.00108134 s, lower bound 0.00108134 s
// DAU: 2 ops, before 0.00108134, cost 0.00108134 s, lower bound 0.00108134 s
// Two loads before the second product, and a store behind it.
// TWO: 2 ops, before 0.00057344, cost 0.00057344 s, lower bound 0.00057344 s

// STREAM: matrix 1 524288
// STREAM: matrix 2 524288
// SIMULATED: total 573.44
// SIMULATED-DAU: total 1081.34
// two independent products of 2*64*64*64 = 524288 flop each: 524 us on one 1 GFLOP/s unit
func.func @main(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = braid.matmul %x, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = braid.matmul %y, %y : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %0, %1 : tensor<64x64xf32>, tensor<64x64xf32>
}
