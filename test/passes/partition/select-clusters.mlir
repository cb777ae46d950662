// RUN: %braid-opt %s -p select-clusters --split-input-file --remarks 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// RUN: %braid-opt %s -p select-clusters,apply-clusters --split-input-file --remarks -o /dev/null 2>&1 | FileCheck %s --check-prefix=APPLIED

// a b and f g run on the gpu, with d between: it starts twice. Ops without a device are the host's.
// REMARK: [select-clusters] starts: 13 → 4 (at least 4): cpu:0: 5 → 1, fpga:0: 4 → 1, gpu:0: 4 → 2
// APPLIED: 4 launches: 1 on cpu:0, 1 on fpga:0, 2 on gpu:0
// CHECK-LABEL: func.func @textbook
// CHECK-DAG:     %a = {{.*}}braid.cluster = [[AB:.*]] : i64
// CHECK-DAG:     %b = {{.*}}braid.cluster = [[AB]] : i64
// CHECK-DAG:     %d = {{.*}}braid.cluster = [[DEHM:.*]] : i64
// CHECK-DAG:     %e = {{.*}}braid.cluster = [[DEHM]] : i64
// CHECK-DAG:     %h = {{.*}}braid.cluster = [[DEHM]] : i64
// CHECK-DAG:     %m = {{.*}}braid.cluster = [[DEHM]] : i64
// CHECK-DAG:     %f = {{.*}}braid.cluster = [[FG:.*]] : i64
// CHECK-DAG:     %g = {{.*}}braid.cluster = [[FG]] : i64
// CHECK-DAG:     %c = {{.*}}braid.cluster = [[HOST:.*]] : i64, braid.device = "cpu:0"
// CHECK-DAG:     %l = {{.*}}braid.cluster = [[HOST]] : i64, braid.device = "cpu:0"
func.func @textbook(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = braid.opaque "a"(%x) {braid.device = "gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %c = braid.opaque "c"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = braid.opaque "b"(%a) {braid.device = "gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %d = braid.opaque "d"(%b) {braid.device = "fpga:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %e = braid.opaque "e"(%d) {braid.device = "fpga:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %f = braid.opaque "f"(%d) {braid.device = "gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %g = braid.opaque "g"(%f) {braid.device = "gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %h = braid.opaque "h"(%e) {braid.device = "fpga:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %m = braid.opaque "m"(%h) {braid.device = "fpga:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %i = braid.opaque "i"(%c, %g, %m) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %j = braid.opaque "j"(%i) : (tensor<4xf32>) -> tensor<4xf32>
  %k = braid.opaque "k"(%j) : (tensor<4xf32>) -> tensor<4xf32>
  %l = braid.opaque "l"(%k) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %l : tensor<4xf32>
}

// -----

// In a diamond, ops that one path joins directly form two clusters if the other path is on another
// device.
// REMARK: starts: 3 → 3 (at least 3)
// CHECK-LABEL: func.func @diamond
// CHECK:         "a"{{.*}}braid.cluster = 0 : i64
// CHECK:         "b"{{.*}}braid.cluster = 1 : i64
// CHECK:         "c"{{.*}}braid.cluster = 2 : i64
func.func @diamond(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = braid.opaque "a"(%x) {braid.device = "gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %b = braid.opaque "b"(%a) {braid.device = "fpga:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %c = braid.opaque "c"(%a, %b) {braid.device = "gpu:0"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %c : tensor<4xf32>
}

// -----

// The same through a third cluster: a and d would wait for c, which waits for b, which waits for a.
// REMARK: starts: 4 → 4 (at least 4)
// CHECK-LABEL: func.func @long_diamond
// CHECK:         "a"{{.*}}braid.cluster = 0 : i64
// CHECK:         "b"{{.*}}braid.cluster = 1 : i64
// CHECK:         "c"{{.*}}braid.cluster = 2 : i64
// CHECK:         "d"{{.*}}braid.cluster = 3 : i64
func.func @long_diamond(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = braid.opaque "a"(%x) {braid.device = "gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %b = braid.opaque "b"(%a) {braid.device = "fpga:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %c = braid.opaque "c"(%b) {braid.device = "cpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %d = braid.opaque "d"(%a, %c) {braid.device = "gpu:0"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %d : tensor<4xf32>
}

// -----

// Each of two pairs could be one cluster, but not both: each would wait for the other.
// REMARK: starts: 4 → 3 (at least 3)
// CHECK-LABEL: func.func @circle
func.func @circle(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = braid.opaque "a"(%x) {braid.device = "gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %b = braid.opaque "b"(%a, %x) {braid.device = "fpga:0"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = braid.opaque "c"(%x) {braid.device = "fpga:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %d = braid.opaque "d"(%c, %x) {braid.device = "gpu:0"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %b, %d : tensor<4xf32>, tensor<4xf32>
}

// -----

// Control flow is a stage of the host: what is before it and behind it is two clusters, and what is
// inside of it has clusters of its own. Weights join nothing: each cluster has a copy.
// REMARK: starts: 6 → 5 (at least 5): cpu:0: 1 → 1, gpu:0: 5 → 4
// CHECK-LABEL: func.func @control_flow
// CHECK:         "a"{{.*}}braid.cluster = [[A:.*]] : i64
// CHECK:         "b"{{.*}}braid.cluster = [[A]] : i64
// CHECK:           "t"{{.*}}braid.device = "gpu:0", braid.cluster
// CHECK:           "e"{{.*}}braid.cluster = {{.*}} : i64, braid.device = "cpu:0"
func.func @control_flow(%x: tensor<4xf32>, %y: tensor<4xf32>, %p: i1) -> (tensor<4xf32>, tensor<4xf32>) {
  %w = braid.parameter {key = "w"} : tensor<4xf32>
  %a = braid.opaque "a"(%x, %w) {braid.device = "gpu:0"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = braid.opaque "b"(%a) {braid.device = "gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %c = scf.if %p -> (tensor<4xf32>) {
    %t = braid.opaque "t"(%b) {braid.device = "gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %t : tensor<4xf32>
  } else {
    %e = braid.opaque "e"(%a) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  }
  %d = braid.opaque "d"(%b, %c) {braid.device = "gpu:0"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %f = braid.opaque "f"(%y, %w) {braid.device = "gpu:0"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %d, %f : tensor<4xf32>, tensor<4xf32>
}

// -----

// Manual ids stay, and so do ops for any device.
// CHECK-LABEL: func.func @by_hand
// CHECK:         "a"{{.*}}braid.cluster = 7 : i64
func.func @by_hand(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = braid.opaque "a"(%x) {braid.cluster = 7 : i64, braid.device = "gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @host
// CHECK-NOT:     braid.cluster
func.func @host(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = braid.opaque "a"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %a : tensor<4xf32>
}
