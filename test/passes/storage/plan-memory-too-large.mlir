// RUN: %braid-opt %s -p 'plan-memory{target=npu-davinci}' --verify-diagnostics

// expected-error@+1 {{the tensors in memory 'npu.L0C' take 262148 bytes at once, it has 262144}}
func.func @large(%x: tensor<65537xf32>) -> tensor<65537xf32> {
  %a = func.call @k(%x) {braid.memory = "L0C"} : (tensor<65537xf32>) -> tensor<65537xf32>
  %b = func.call @k(%a) : (tensor<65537xf32>) -> tensor<65537xf32>
  func.return %b : tensor<65537xf32>
}
func.func private @k(tensor<65537xf32>) -> tensor<65537xf32>
