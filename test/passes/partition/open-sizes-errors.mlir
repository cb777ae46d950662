// Only the host runs ops of open sizes: the memory of what it launches is fixed.

// RUN: not %braid-opt %s -p apply-clusters 2>&1 | FileCheck %s

// CHECK: error: {{.*}}'braid.exp' op has open sizes and braid.device = "gpu:0", expected "cpu:0"
// CHECK: hint: {{.*}}run 'assign-devices' before
builtin.module attributes {braid.target = #braid.target<"gpu-emulated">} {
  func.func @main(%x: tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<?xf32, #braid.sizes<["n"]>> {
    %0 = braid.exp %x {braid.cluster = 0 : i64, braid.device = "gpu:0"} : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<?xf32, #braid.sizes<["n"]>>
    return %0 : tensor<?xf32, #braid.sizes<["n"]>>
  }
}
