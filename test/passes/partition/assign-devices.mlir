// RUN: %braid-opt %s -p "assign-devices{target=%S/Inputs/board.toml}" --split-input-file --remarks 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// RUN: %braid-opt %s -p "assign-devices{target=%S/Inputs/board.toml},select-clusters{target=%S/Inputs/board.toml}" --split-input-file --remarks -o /dev/null 2>&1 | FileCheck %s --check-prefix=STARTS

// The FPGA supports f and k as well, but the GPU and the CPU come first for these.
// REMARK: [assign-devices] priority: 13 ops: cpu:0 5, gpu:0 4, fpga:0 4; transfers and starts
// STARTS: starts: 13 → 4 (at least 4): cpu:0: 5 → 1, fpga:0: 4 → 1, gpu:0: 4 → 2
// CHECK-LABEL: func.func @textbook
// CHECK-DAG:     "a"{{.*}}braid.candidates = {{{.*}}gpu = 1 : i64}, braid.device = "gpu:0"
// CHECK-DAG:     "b"{{.*}}braid.device = "gpu:0"
// CHECK-DAG:     "c"{{.*}}braid.candidates = {cpu = 3 : i64}, braid.device = "cpu:0"
// CHECK-DAG:     "d"{{.*}}braid.device = "fpga:0"
// CHECK-DAG:     "e"{{.*}}braid.device = "fpga:0"
// CHECK-DAG:     "f"{{.*}}braid.candidates = {cpu = 3 : i64, {{.*}}fpga = 2 : i64{{.*}}}, braid.device = "gpu:0"
// CHECK-DAG:     "g"{{.*}}braid.device = "gpu:0"
// CHECK-DAG:     "h"{{.*}}braid.device = "fpga:0"
// CHECK-DAG:     "i"{{.*}}braid.device = "cpu:0"
// CHECK-DAG:     "k"{{.*}}braid.candidates = {cpu = 1 : i64, fpga = 2 : i64}, braid.device = "cpu:0"
// CHECK-DAG:     "m"{{.*}}braid.device = "fpga:0"
func.func @textbook(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = braid.opaque "a"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %c = braid.opaque "c"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = braid.opaque "b"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %d = braid.opaque "d"(%b) : (tensor<4xf32>) -> tensor<4xf32>
  %e = braid.opaque "e"(%d) : (tensor<4xf32>) -> tensor<4xf32>
  %f = braid.opaque "f"(%d) : (tensor<4xf32>) -> tensor<4xf32>
  %g = braid.opaque "g"(%f) : (tensor<4xf32>) -> tensor<4xf32>
  %h = braid.opaque "h"(%e) : (tensor<4xf32>) -> tensor<4xf32>
  %m = braid.opaque "m"(%h) : (tensor<4xf32>) -> tensor<4xf32>
  %i = braid.opaque "i"(%c, %g, %m) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %j = braid.opaque "j"(%i) : (tensor<4xf32>) -> tensor<4xf32>
  %k = braid.opaque "k"(%j) : (tensor<4xf32>) -> tensor<4xf32>
  %l = braid.opaque "l"(%k) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %l : tensor<4xf32>
}

// -----

// What stands on an op holds: its device, its candidates, and the backends of an opaque op.
// Colocated ops run on a device that supports all of them.
// CHECK-LABEL: func.func @asked
// CHECK:         "f"{{.*}}braid.device = "fpga:0"
// CHECK:         "z"{{.*}}braid.candidates = {gpu = 2 : i64}, braid.device = "gpu:0"
// CHECK:         "y"{{.*}}braid.device = "gpu:0"
// CHECK:         "d"{{.*}}braid.colocate = "w"{{.*}}braid.device = "cpu:0"
// CHECK:         "c"{{.*}}braid.colocate = "w"{{.*}}braid.device = "cpu:0"
func.func @asked(%x: tensor<4xf32>) -> tensor<4xf32> {
  %f = braid.opaque "f"(%x) {braid.device = "fpga:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %z = braid.opaque "z"(%f) {braid.candidates = {gpu = 2 : i64}} : (tensor<4xf32>) -> tensor<4xf32>
  %y = braid.opaque "y"(%z) {backends = ["gpu"]} : (tensor<4xf32>) -> tensor<4xf32>
  %d = braid.opaque "d"(%y) {braid.colocate = "w"} : (tensor<4xf32>) -> tensor<4xf32>
  %c = braid.opaque "c"(%d) {braid.colocate = "w"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %c : tensor<4xf32>
}

// -----

// Among equals, the device with the least transfers: b reads a, which is on the GPU.
// CHECK-LABEL: func.func @ties
// CHECK:         "a"{{.*}}braid.device = "gpu:0"
// CHECK:         "t"{{.*}}braid.device = "gpu:0"
// CHECK:         "d"{{.*}}braid.device = "fpga:0"
// CHECK:         "t"{{.*}}braid.device = "fpga:0"
func.func @ties(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = braid.opaque "a"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %s = braid.opaque "t"(%a) {braid.candidates = {cpu = 2 : i64, fpga = 1 : i64, gpu = 1 : i64}} : (tensor<4xf32>) -> tensor<4xf32>
  %d = braid.opaque "d"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %t = braid.opaque "t"(%d) {braid.candidates = {cpu = 2 : i64, fpga = 1 : i64, gpu = 1 : i64}} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %s, %t : tensor<4xf32>, tensor<4xf32>
}

// -----

// Control flow is the host's; what is in it runs on devices.
// CHECK-LABEL: func.func @nested
// CHECK:         scf.for
// CHECK:           scf.if
// CHECK:             "a"{{.*}}braid.device = "gpu:0"
// CHECK:             "d"{{.*}}braid.device = "fpga:0"
func.func @nested(%x: tensor<4xf32>, %p: i1, %from: index, %to: index, %step: index) -> tensor<4xf32> {
  %r = scf.for %i = %from to %to step %step iter_args(%v = %x) -> (tensor<4xf32>) {
    %s = scf.if %p -> (tensor<4xf32>) {
      %a = braid.opaque "a"(%v) : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %a : tensor<4xf32>
    } else {
      %d = braid.opaque "d"(%x) : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %d : tensor<4xf32>
    }
    scf.yield %s : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}

// -----

// Ops on the target's default device need no attribute.
// REMARK: priority: 1 ops: cpu:0 1
// CHECK-LABEL: func.func @alone
// CHECK-NOT:     braid.device
// CHECK:       }
func.func @alone(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = braid.opaque "c"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %c : tensor<4xf32>
}
