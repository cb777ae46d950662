// Ids that do not make sense are an error wherever a pass is run on them.

// RUN: not %braid-opt %s -p apply-clusters --split-input-file 2>&1 | FileCheck %s
// RUN: not %braid-opt %s -p cse --split-input-file 2>&1 | FileCheck %s

// CHECK: error: {{.*}}'braid.exp' op is on npu:0, in cluster 0
// CHECK: note: the cluster begins here
func.func @two_devices(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = braid.neg %x {braid.cluster = 0 : i64, braid.device = "cpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %b = braid.exp %a {braid.cluster = 0 : i64, braid.device = "npu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}

// -----

// CHECK: error: {{.*}}clusters of this block depend on each other: 0, 1
// CHECK: note: cluster 0 begins here
// CHECK: note: cluster 1 begins here
func.func @circle(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = braid.neg %x {braid.cluster = 0 : i64, braid.device = "cpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %b = braid.exp %a {braid.cluster = 1 : i64, braid.device = "npu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %c = braid.neg %b {braid.cluster = 0 : i64, braid.device = "cpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %c : tensor<4xf32>
}

// -----

// CHECK: error: {{.*}}'braid.exp' op is in another block, in cluster 0
func.func @two_blocks(%x: tensor<4xf32>, %p: i1) -> tensor<4xf32> {
  %a = braid.neg %x {braid.cluster = 0 : i64, braid.device = "cpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %d = scf.if %p -> (tensor<4xf32>) {
    %b = braid.exp %a {braid.cluster = 0 : i64, braid.device = "cpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  } else {
    scf.yield %a : tensor<4xf32>
  }
  func.return %d : tensor<4xf32>
}

// -----

// CHECK: error: {{.*}}'braid.exp' op has no braid.cluster with a braid.device, as others have
// CHECK: hint: {{.*}}also has 'braid.device = "cpu:0"'
func.func @no_device(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = braid.exp %x {braid.cluster = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %a : tensor<4xf32>
}
