// Every cluster becomes a function of its device, launched where its ops stood.

// RUN: %braid-opt %s -p apply-clusters --split-input-file | FileCheck %s
// RUN: %braid-opt %s -p apply-clusters --split-input-file --remarks -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: %braid-opt %s -p apply-clusters --split-input-file | %braid-opt --split-input-file | FileCheck %s
// RUN: %braid-opt %s -p 'cse,canonicalize,select-fusion,apply-fusion,apply-clusters' --split-input-file | FileCheck %s --check-prefix=FUSED

// A launch depends on those whose results it reads; everything else reads what was awaited. Weights
// are copied into the functions that read them. REMARK: 3 launches: 1 on cpu:0, 2 on npu:0

// CHECK-LABEL: func.func @main
// CHECK-NOT:     braid.cluster
// CHECK-NOT:     braid.parameter
// CHECK:         %a, %c, %[[T0:.*]] = braid.launch async [] @cluster_0(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK:         %b, %[[T1:.*]] = braid.launch async [%[[T0]]] @cluster_1(%a) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK:         %[[G:.*]], %[[T2:.*]] = braid.launch async [%[[T1]], %[[T0]]] @cluster_2(%b, %c)
// CHECK-DAG:     %[[C:.*]] = braid.await [%[[T0]]] %c : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-DAG:     %[[R:.*]] = braid.await [%[[T2]]] %[[G]] : (tensor<2x2xf32>) -> tensor<2x2xf32>
// CHECK:         func.return %[[R]], %[[C]]
// CHECK-LABEL: func.func private @cluster_0
// CHECK-SAME:    attributes {braid.device = "cpu:0"}
// CHECK:         braid.parameter {key = "w"}
// CHECK:         braid.exp
// CHECK:         braid.add
// CHECK-LABEL: func.func private @cluster_1
// CHECK-SAME:    attributes {braid.device = "npu:0"}
// CHECK-LABEL: func.func private @cluster_2
// CHECK:         braid.mul
// CHECK:         braid.reshape

// Fusion keeps to clusters: nothing of npu:0 is computed on cpu:0.
// FUSED-LABEL: func.func private @cluster_0
// FUSED:         braid.exp
// FUSED:         braid.add
// FUSED-LABEL: func.func private @cluster_1
// FUSED:         braid.fused
// FUSED-NEXT:    ^
// FUSED-NEXT:      braid.neg
// FUSED-NEXT:      braid.yield
func.func @main(%x: tensor<4xf32>) -> (tensor<2x2xf32>, tensor<4xf32>) {
  %w = braid.parameter {key = "w"} : tensor<4xf32>
  %a = braid.exp %x {braid.cluster = 0 : i64, braid.device = "cpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %b = braid.neg %a {braid.cluster = 1 : i64, braid.device = "npu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %c = braid.add %a, %w {braid.cluster = 0 : i64, braid.device = "cpu:0"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %f = braid.mul %b, %c {braid.cluster = 2 : i64, braid.device = "npu:0"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %g = braid.reshape %f : (tensor<4xf32>) -> tensor<2x2xf32>
  func.return %g, %c : tensor<2x2xf32>, tensor<4xf32>
}

// -----

// A region of control flow is one stage of the host: launches inside are awaited there. What both
// branches read is awaited before.

// CHECK-LABEL: func.func @branches
// CHECK:         %[[B:.*]], %[[T:.*]] = braid.launch async [] @cluster_0(%x)
// CHECK:         %[[A:.*]] = braid.await [%[[T]]] %[[B]]
// CHECK:         scf.if %p
// CHECK:           %[[E:.*]], %[[U:.*]] = braid.launch async [] @cluster_1(%[[A]])
// CHECK:           %[[V:.*]] = braid.await [%[[U]]] %[[E]]
// CHECK:           scf.yield %[[V]]
// CHECK:         } else {
// CHECK:           scf.yield %[[A]]
func.func @branches(%x: tensor<4xf32>, %p: i1) -> tensor<4xf32> {
  %b = braid.neg %x {braid.cluster = 1 : i64, braid.device = "npu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %d = scf.if %p -> (tensor<4xf32>) {
    %e = braid.exp %b {braid.cluster = 2 : i64, braid.device = "npu:0"} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  } else {
    scf.yield %b : tensor<4xf32>
  }
  func.return %d : tensor<4xf32>
}

// -----

// Without ids there is nothing to do.

// CHECK-LABEL: func.func @alone
// CHECK-NEXT:    braid.neg
// CHECK-NEXT:    func.return
func.func @alone(%x: tensor<4xf32>) -> tensor<4xf32> {
  %b = braid.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}
