// An op for a device is in a cluster: without one it would run elsewhere.

// RUN: not %braid-opt %s -p canonicalize,select-fusion,apply-fusion,apply-clusters --split-input-file 2>&1 | FileCheck %s

// CHECK: error: {{.*}}'braid.fused' op is for npu:0, and in no cluster
// CHECK: hint: give ops that run there together one 'braid.cluster = 0 : i64'
func.func @elsewhere(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = braid.exp %x {braid.device = "npu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// -----

// CHECK-NOT: error
func.func @default(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = braid.exp %x {braid.device = "cpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %a : tensor<4xf32>
}
