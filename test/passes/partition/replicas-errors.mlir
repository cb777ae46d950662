// RUN: not %braid-opt %s -p select-clusters --split-input-file 2>&1 | FileCheck %s
// RUN: not %braid-opt %s -p "assign-devices{strategy=throughput}" --split-input-file 2>&1 | FileCheck %s

// CHECK: error: 'braid.exp' op runs on 'cpu:0' in turn with 'npu:0', which is not like it
// CHECK: hint: their backend, machine, plugin, memories and starts are the same
module attributes {braid.target = #braid.target<"npu-small">} {
  func.func @unlike(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = braid.exp %x {braid.device = "cpu:0", braid.replicas = ["npu:0"]} : (tensor<4xf32>) -> tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }
}

// -----

// CHECK: error: 'braid.exp' op has braid.replicas of no device
// CHECK: hint: braid.replicas = ["cpu:1"] stands beside braid.device = "cpu:0", a device like that one
module attributes {braid.target = #braid.target<"host-2">} {
  func.func @nowhere(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = braid.exp %x {braid.replicas = ["cpu:1"]} : (tensor<4xf32>) -> tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }
}

// -----

// CHECK: error: 'braid.exp' op runs on 'cpu:1' twice in turn
module attributes {braid.target = #braid.target<"host-2">} {
  func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = braid.exp %x {braid.device = "cpu:1", braid.replicas = ["cpu:1"]} : (tensor<4xf32>) -> tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }
}

// -----

// CHECK: error: target 'host-2' has no device 'cpu:7'
module attributes {braid.target = #braid.target<"host-2">} {
  func.func @missing(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = braid.exp %x {braid.device = "cpu:1", braid.replicas = ["cpu:7"]} : (tensor<4xf32>) -> tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }
}

// -----

// CHECK: error: 'braid.exp' op runs on several devices in turn, in a branch or loop
// CHECK: hint: the host launches what is in there one by one
module attributes {braid.target = #braid.target<"host-2">} {
  func.func @branch(%x: tensor<4xf32>, %p: i1) -> tensor<4xf32> {
    %c = scf.if %p -> (tensor<4xf32>) {
      %0 = braid.exp %x {braid.device = "cpu:0", braid.replicas = ["cpu:1"]} : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %0 : tensor<4xf32>
    } else {
      scf.yield %x : tensor<4xf32>
    }
    func.return %c : tensor<4xf32>
  }
}

// -----

// CHECK: error: 'braid.replicas' of 'braid.exp' op is "cpu:1", expected an array of devices
module attributes {braid.target = #braid.target<"host-2">} {
  func.func @kind(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = braid.exp %x {braid.device = "cpu:0", braid.replicas = "cpu:1"} : (tensor<4xf32>) -> tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }
}
