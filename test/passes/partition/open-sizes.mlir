// RUN: %braid-opt %s -p assign-devices,select-clusters,apply-clusters --split-input-file --remarks 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t

// Devices without code for open sizes run the ops of fixed sizes. The host's stay where they are,
// and the module says that it runs them.

// REMARK: [assign-devices] priority: 3 ops: cpu:0 2, gpu:0 1
// REMARK: [apply-clusters] 1 launches: 1 on gpu:0

// CHECK: builtin.module attributes {{.*}}braid.device = "cpu:0"
// CHECK: func.func @main
// CHECK: %[[Y:.*]], %[[T:.*]] = braid.launch async [] @cluster_0(%{{.*}}) {{.*}}: (tensor<1x64xf32>) -> tensor<1x64xf32>
// CHECK: braid.tanh {{.*}} : (tensor<?x64xf32, #braid.sizes<["n"]>>)
// CHECK: braid.await [%[[T]]] %[[Y]]
// CHECK: braid.add
// CHECK: func.func private @cluster_0({{.*}}) -> tensor<1x64xf32> attributes {{.*}}braid.device = "gpu:0"
// CHECK: braid.exp
builtin.module attributes {braid.target = #braid.target<"gpu-emulated">} {
  func.func @main(%x: tensor<?x64xf32, #braid.sizes<["n"]>>, %row: tensor<1x64xf32>)
      -> tensor<?x64xf32, #braid.sizes<["n"]>> {
    %0 = braid.exp %row : (tensor<1x64xf32>) -> tensor<1x64xf32>
    %1 = braid.tanh %x : (tensor<?x64xf32, #braid.sizes<["n"]>>) -> tensor<?x64xf32, #braid.sizes<["n"]>>
    %2 = braid.add %1, %0 : (tensor<?x64xf32, #braid.sizes<["n"]>>, tensor<1x64xf32>) -> tensor<?x64xf32, #braid.sizes<["n"]>>
    return %2 : tensor<?x64xf32, #braid.sizes<["n"]>>
  }
}

// -----

// What passes make of open sizes after devices were assigned belongs to the host as well, also beside
// an op of a device.

// CHECK-LABEL: func.func @hoisted
// CHECK: %[[R:.*]] = braid.reshape {{.*}} -> tensor<?xf32, #braid.sizes<["64 * n"]>>
// CHECK: braid.launch async [] @cluster_0(
// CHECK-NOT: braid.launch
// CHECK: func.func private @cluster_0
// CHECK-NOT: braid.reshape
builtin.module attributes {braid.target = #braid.target<"gpu-emulated">, braid.device = "cpu:0"} {
  func.func @hoisted(%x: tensor<?x64xf32, #braid.sizes<["n"]>>, %row: tensor<64xf32>)
      -> (tensor<?xf32, #braid.sizes<["64 * n"]>>, tensor<64xf32>) {
    %0 = braid.reshape %x : (tensor<?x64xf32, #braid.sizes<["n"]>>) -> tensor<?xf32, #braid.sizes<["64 * n"]>>
    %1 = braid.exp %row {braid.cluster = 0 : i64, braid.device = "gpu:0"} : (tensor<64xf32>) -> tensor<64xf32>
    return %0, %1 : tensor<?xf32, #braid.sizes<["64 * n"]>>, tensor<64xf32>
  }
}
