// Conversions in branches, in one cluster, to wider types, and ops that are not ones in a type.
// RUN: %braid-opt %s --split-input-file -p 'apply-types{target=%S/Inputs/half.toml}' --verify-diagnostics | FileCheck %s

// A value that is also read in its computed type is handed over once.
// CHECK-LABEL: @also_as_it_was
// CHECK: tanh {{.*}} {braid.cluster = 0
// CHECK-NEXT: cast {{.*}} {braid.cluster = 1 {{.*}}f16
// CHECK-NEXT: abs
// CHECK-NEXT: cast {{.*}} {braid.cluster = 1 {{.*}}f16>) -> tensor<4xf32>
// CHECK-NEXT: exp
// CHECK-NEXT: add
func.func @also_as_it_was(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = braid.tanh %x {braid.cluster = 0 : i64, braid.device = "cpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %b = braid.abs %a {braid.cluster = 1 : i64, braid.device = "gpu:0", braid.compute_type = f16, braid.tolerance = 1.0e-2 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %c = braid.exp %a {braid.cluster = 1 : i64, braid.device = "gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %d = braid.add %b, %c {braid.cluster = 1 : i64, braid.device = "gpu:0"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %d : tensor<4xf32>
}

// -----

// A branch converts its outside operands; integers stay.
// CHECK-LABEL: @branch
// CHECK: scf.if
// CHECK-NEXT: cast %x
// CHECK-NEXT: matmul {{.*}} -> tensor<4x4xf16>
// CHECK-NEXT: cast
// CHECK-NEXT: yield
func.func @branch(%p: i1, %x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = scf.if %p -> (tensor<4x4xf32>) {
    %1 = braid.matmul %x, %x {braid.cluster = 0 : i64, braid.device = "gpu:0", braid.compute_type = f16, braid.tolerance = 1.0e-2 : f64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    scf.yield %1 : tensor<4x4xf32>
  } else {
    scf.yield %x : tensor<4x4xf32>
  }
  func.return %0 : tensor<4x4xf32>
}

// -----

// CHECK-LABEL: @wider
// CHECK-NEXT: cast {{.*}} : (tensor<4xf16>) -> tensor<4xf32>
// CHECK-NEXT: exp
// CHECK-NEXT: cast {{.*}} : (tensor<4xf32>) -> tensor<4xf16>
// CHECK-NOT: compute_type
// CHECK: abs {{.*}}i32
func.func @wider(%x: tensor<4xf16>, %n: tensor<4xi32>) -> (tensor<4xf16>, tensor<4xi32>) {
  %0 = braid.exp %x {braid.compute_type = f32, braid.tolerance = 1.0e-2 : f64} : (tensor<4xf16>) -> tensor<4xf16>
  %1 = braid.abs %n {braid.compute_type = f32, braid.tolerance = 1.0e-2 : f64} : (tensor<4xi32>) -> tensor<4xi32>
  func.return %0, %1 : tensor<4xf16>, tensor<4xi32>
}

// -----

func.func @says_itself(%x: tensor<4xf32>) -> tensor<4xf64> {
  // expected-error @+1 {{'braid.cast' op cannot be computed in f16}}
  %0 = braid.cast %x {braid.compute_type = f16, braid.tolerance = 1.0e-2 : f64} : (tensor<4xf32>) -> tensor<4xf64>
  func.return %0 : tensor<4xf64>
}
