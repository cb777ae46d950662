// RUN: env BRAID_CACHE_DIR=%t.none %braid-opt %s -p select-schedules,outline-kernels --remarks 2>&1 | FileCheck %s

// Without records nothing is decided; what is there stays, and tells kernels apart.
// CHECK:       remark: [select-schedules] 0 of 2 groups have a record of a search
// CHECK-LABEL: func.func @by_hand
// CHECK:         func.call @kernel_0({{.*}}) {braid.schedule = {family = "elementwise", schedule = {}}}
// CHECK:         func.call @kernel_1
// CHECK:       func.func private @kernel_0{{.*}} attributes {braid.schedule = {family = "elementwise", schedule = {}}}
// CHECK:       func.func private @kernel_1
// CHECK-NOT:     braid.schedule
func.func @by_hand(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = braid.fused (%x) {braid.schedule = {family = "elementwise", schedule = {}}} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%p: tensor<4xf32>):
    %e = braid.exp %p : (tensor<4xf32>) -> tensor<4xf32>
    braid.yield %e : tensor<4xf32>
  }
  %b = braid.fused (%a) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%p: tensor<4xf32>):
    %e = braid.exp %p : (tensor<4xf32>) -> tensor<4xf32>
    braid.yield %e : tensor<4xf32>
  }
  func.return %b : tensor<4xf32>
}
