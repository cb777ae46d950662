// The same devices in turn are one set, in whichever order they are named: one cluster. The first op
// says where a call runs.
// RUN: %braid-opt %s -p select-clusters --remarks 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file %t
// RUN: %braid-opt %s -p "assign-devices{strategy=throughput},select-clusters" | FileCheck %s
// RUN: %braid-opt %s -p "assign-devices{strategy=latency},select-clusters" | FileCheck %s

// REMARK: starts: 3 → 1 (at least 1): cpu:0 and cpu:1: 3 → 1
// CHECK-COUNT-3: braid.device = "cpu:1"{{.*}}braid.replicas = ["cpu:0"]
module attributes {braid.target = #braid.target<"host-2">} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = braid.opaque "a"(%x) {cost = 1.0e-3 : f64, braid.device = "cpu:1", braid.replicas = ["cpu:0"]} : (tensor<4xf32>) -> tensor<4xf32>
    %b = braid.opaque "b"(%a) {cost = 1.0e-3 : f64, braid.device = "cpu:0", braid.replicas = ["cpu:1"], braid.colocate = "w"} : (tensor<4xf32>) -> tensor<4xf32>
    %c = braid.opaque "c"(%b) {cost = 1.0e-3 : f64, braid.device = "cpu:1", braid.replicas = ["cpu:0"], braid.colocate = "w"} : (tensor<4xf32>) -> tensor<4xf32>
    func.return %c : tensor<4xf32>
  }
}
