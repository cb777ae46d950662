// Ops in the types that their devices compute in. What goes between clusters goes in the narrower
// type, and the function of a cluster tells the tolerance.
// RUN: %braid-opt %s -p 'apply-types{target=%S/Inputs/half.toml},apply-clusters{target=%S/Inputs/half.toml}' --remarks 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file %t

// REMARK: [apply-types] 2 ops in f16 on gpu:0; 4 conversions, results may differ by 0.01
// CHECK: @cluster_0(%x) : (tensor<4x4xf32>) -> tensor<4x4xf16>
// CHECK: @cluster_1({{.*}}) : (tensor<4x4xf16>) -> (tensor<4x4xf16>, tensor<4x4xf32>)
// CHECK: @cluster_2({{.*}}) : (tensor<4x4xf16>) -> tensor<4x4xf32>
func.func @main(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %w = braid.constant {value = dense<0.05> : tensor<4x4xf32>} : tensor<4x4xf32>
  // CHECK: func private @cluster_0
  // CHECK-SAME: attributes {braid.device = "cpu:0"}
  // CHECK-NEXT: braid.tanh
  // CHECK-NEXT: braid.cast {{.*}} -> tensor<4x4xf16>
  // CHECK-NEXT: return
  %a = braid.tanh %x {braid.cluster = 0 : i64, braid.device = "cpu:0"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // Both ops of the cluster hand on f16; the result of the model has its own type.
  // CHECK: func private @cluster_1
  // CHECK-SAME: attributes {braid.device = "gpu:0", braid.tolerance = 1.000000e-02 : f64}
  // CHECK: %[[W:.*]] = braid.cast %{{.*}} : (tensor<4x4xf32>) -> tensor<4x4xf16>
  // CHECK-NEXT: %[[B:.*]] = braid.matmul %{{.*}}, %[[W]] : {{.*}} -> tensor<4x4xf16>
  // CHECK-NEXT: %[[C:.*]] = braid.abs %[[B]] : {{.*}} -> tensor<4x4xf16>
  // CHECK-NEXT: %[[R:.*]] = braid.cast %[[C]] : (tensor<4x4xf16>) -> tensor<4x4xf32>
  // CHECK-NEXT: return %[[C]], %[[R]]
  %b = braid.matmul %a, %w {braid.cluster = 1 : i64, braid.device = "gpu:0", braid.compute_type = f16, braid.tolerance = 1.0e-2 : f64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = braid.abs %b {braid.cluster = 1 : i64, braid.device = "gpu:0", braid.compute_type = f16, braid.tolerance = 2.0e-3 : f64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: func private @cluster_2
  // CHECK-NEXT: braid.cast {{.*}} : (tensor<4x4xf16>) -> tensor<4x4xf32>
  // CHECK-NEXT: braid.exp
  %d = braid.exp %c {braid.cluster = 2 : i64, braid.device = "cpu:0"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %c, %d : tensor<4x4xf32>, tensor<4x4xf32>
}
