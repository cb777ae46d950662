// RUN: %braid-opt %s | %braid-opt | filecheck %s
// RUN: %braid-opt %s -p 'search-order{objective=latency}' --remarks -o %t.mlir 2>&1 | filecheck %s --check-prefix=CHIP
// RUN: not %braid-opt %s -p 'search-order{objective=latency target=nowhere}' 2>&1 | filecheck %s --check-prefix=OVERRIDE

// CHECK: module attributes {braid.target = #braid.target<"npu-small", {cpu = "haswell"}>}
// CHIP: [search-order]
// OVERRIDE: there is no target 'nowhere'
module attributes {braid.target = #braid.target<"npu-small", {cpu = "haswell"}>} {
  func.func @main(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {
    %0 = braid.neg %x : (tensor<256x256xf32>) -> tensor<256x256xf32>
    %1 = braid.exp %0 : (tensor<256x256xf32>) -> tensor<256x256xf32>
    func.return %1 : tensor<256x256xf32>
  }
}
