// The entry of the mapping list that takes an op gives the type in which its device computes it,
// and the tolerance of results; attributes of the op take precedence.
// RUN: %braid-opt %s --split-input-file -p 'select-types{target=%S/Inputs/half.toml}' --verify-diagnostics | FileCheck %s

// CHECK-LABEL: @by_the_list
func.func @by_the_list(%x: tensor<4x4xf32>, %d: tensor<4x4xf64>) -> (tensor<4x4xf32>, tensor<4x4xf64>) {
  // CHECK: matmul {{.*}} {braid.device = "gpu:0", braid.compute_type = f16, braid.tolerance = 1.000000e-02 : f64} {{.*}}f32
  %a = braid.matmul %x, %x {braid.device = "gpu:0"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: exp {{.*}} {braid.device = "gpu:0", braid.tolerance = 1.000000e-03 : f64}
  %b = braid.exp %a {braid.device = "gpu:0"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: abs {{.*}} {braid.device = "gpu:0", braid.compute_type = bf16, braid.tolerance = 5.000000e-02 : f64}
  %c = braid.abs %b {braid.device = "gpu:0", braid.compute_type = bf16, braid.tolerance = 5.0e-2 : f64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: exp {{.*}} {braid.device = "cpu:0"}
  %e = braid.exp %c {braid.device = "cpu:0"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // Only products in f32 are among the entry's.
  // CHECK: matmul {{.*}} {braid.device = "gpu:0"} {{.*}}f64
  %f = braid.matmul %d, %d {braid.device = "gpu:0"} : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
  func.return %e, %f : tensor<4x4xf32>, tensor<4x4xf64>
}

// -----

func.func @without_tolerance(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'braid.exp' op has braid.compute_type, and no braid.tolerance}}
  %0 = braid.exp %x {braid.compute_type = f16} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// -----

func.func @no_type(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected one of f16, bf16, f32}}
  %0 = braid.exp %x {braid.compute_type = i8, braid.tolerance = 1.0e-2 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// -----

func.func @no_tolerance(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected a number above 0}}
  %0 = braid.exp %x {braid.compute_type = f16, braid.tolerance = 0.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
