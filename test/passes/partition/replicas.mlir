// Devices of one kind that take turns at the requests of a stream: decided, carried by clusters, and
// by the functions that these become.

// RUN: %braid-opt %s -p "assign-devices{strategy=throughput},select-clusters" --split-input-file --remarks 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// RUN: %braid-opt %s -p "assign-devices{strategy=throughput replicate=false}" --split-input-file | FileCheck %s --check-prefix=NONE
// RUN: %braid-opt %s -p "assign-devices{strategy=latency}" --split-input-file | FileCheck %s --check-prefix=NONE
// RUN: %braid-opt %s -p "assign-devices{strategy=throughput},select-clusters,apply-clusters,insert-channels" --split-input-file --remarks 2>%t2 | FileCheck %s --check-prefix=APPLIED
// RUN: FileCheck %s --check-prefix=CHANNELS < %t2

// No split of 5, 1 and 1 ms is below 5; on both cores in turn it is 3.5, plus transfers.
// REMARK: throughput: 3 ops: cpu:0 and cpu:1 in turn 3; busiest device 3.51 ms, at least 3.51
// REMARK: starts: 3 → 1 (at least 1): cpu:0 and cpu:1: 3 → 1
// CHECK-LABEL: func.func @unbalanced
// CHECK:         "a"{{.*}}braid.device = "cpu:0", braid.cluster = 0 : i64, braid.replicas = ["cpu:1"]
// CHECK:         "c"{{.*}}braid.device = "cpu:0", braid.cluster = 0 : i64, braid.replicas = ["cpu:1"]
// NONE-LABEL:  func.func @unbalanced
// NONE-NOT:      braid.replicas
// APPLIED-LABEL: func.func @unbalanced
// APPLIED-SAME:    braid.requests = 4 : i64
// APPLIED:         braid.launch async [] @cluster_0(%x) {braid.slots = array<i64: 0>, braid.stage_seconds = 7.0
// APPLIED:       func.func private @cluster_0
// APPLIED-SAME:    attributes {braid.device = "cpu:0", braid.replicas = ["cpu:1"], braid.stage_seconds = 7.000000e-03 : f64}
// CHANNELS: 1 stages on cpu:0, cpu:1: a result each 3.500 ms, busiest is cpu:0 with 3.500 ms; 0 channels
module attributes {braid.target = #braid.target<"host-2">} {
  func.func @unbalanced(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = braid.opaque "a"(%x) {cost = 5.0e-3 : f64} : (tensor<4xf32>) -> tensor<4xf32>
    %b = braid.opaque "b"(%a) {cost = 1.0e-3 : f64} : (tensor<4xf32>) -> tensor<4xf32>
    %c = braid.opaque "c"(%b) {cost = 1.0e-3 : f64} : (tensor<4xf32>) -> tensor<4xf32>
    func.return %c : tensor<4xf32>
  }
}

// -----

// What would take as long on one core as on both in turn stays there: what comes in takes longer.
// REMARK: cpu:0 1; busiest device 0.01 ms
// CHECK-LABEL: func.func @small
// CHECK-NOT:     braid.replicas
// NONE-LABEL:  func.func @small
// APPLIED-LABEL: func.func @small
module attributes {braid.target = #braid.target<"host-2">} {
  func.func @small(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = braid.opaque "a"(%x) {cost = 1.0e-5 : f64} : (tensor<4xf32>) -> tensor<4xf32>
    func.return %a : tensor<4xf32>
  }
}

// -----

// Attributes of ops take precedence over the strategy. An op in between stays; ops in a branch are
// launched
// by the host one by one.
// CHECK-LABEL: func.func @said
// CHECK:         "a"{{.*}}braid.cluster = 0 : i64{{.*}}braid.replicas = ["cpu:1"]
// CHECK:         "b"{{.*}}braid.device = "cpu:1"{{.*}}braid.cluster = 1 : i64}
// CHECK:         scf.if
// CHECK:           "i"{{.*}}braid.cluster = {{[0-9]+}} : i64} :
// CHECK:         "d"{{.*}}braid.device = "cpu:1"{{.*}}braid.replicas = ["cpu:0"]
// NONE-LABEL:  func.func @said
// NONE:          "a"{{.*}}braid.device = "cpu:0"{{.*}}braid.replicas = ["cpu:1"]
// APPLIED-LABEL: func.func @said
// APPLIED:       func.func private @cluster_0
// APPLIED-SAME:    braid.replicas = ["cpu:1"]
module attributes {braid.target = #braid.target<"host-2">} {
  func.func @said(%x: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {
    %a = braid.opaque "a"(%x) {cost = 1.0e-3 : f64, braid.device = "cpu:0", braid.replicas = ["cpu:1"]} : (tensor<4xf32>) -> tensor<4xf32>
    %b = braid.opaque "b"(%a) {cost = 1.0e-3 : f64, braid.device = "cpu:1"} : (tensor<4xf32>) -> tensor<4xf32>
    %q = tensor.extract %p[] : tensor<i1>
    %c = scf.if %q -> (tensor<4xf32>) {
      %i = braid.opaque "i"(%b) {cost = 5.0e-3 : f64} : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %i : tensor<4xf32>
    } else {
      scf.yield %b : tensor<4xf32>
    }
    %d = braid.opaque "d"(%c) {cost = 1.0e-3 : f64, braid.device = "cpu:1", braid.replicas = ["cpu:0"]} : (tensor<4xf32>) -> tensor<4xf32>
    func.return %d : tensor<4xf32>
  }
}
