// RUN: %braid-opt %s -p "assign-devices{target=%S/Inputs/board.toml},select-clusters{target=%S/Inputs/board.toml min-gain=5e-6}" --split-input-file --remarks 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// RUN: not %braid-opt %s -p "select-clusters{min-gain=-1}" 2>&1 | FileCheck %s --check-prefix=GAIN
// RUN: not %braid-opt %s -p "assign-devices{rounds=-1}" 2>&1 | FileCheck %s --check-prefix=ROUNDS
// RUN: not %braid-opt %s -p "insert-channels{extra=-1}" 2>&1 | FileCheck %s --check-prefix=EXTRA

// GAIN: error: pass 'select-clusters' rejects its options: min-gain is -1, expected seconds from 0 on
// ROUNDS: error: pass 'assign-devices' rejects its options: rounds is -1, expected a number from 0 on
// EXTRA: error: pass 'insert-channels' rejects its options: extra is -1, expected slots from 0 on

// A start of the GPU and its transfers take 20 us. The first op saves 19 us there, the second 90 us.
// REMARK: starts: 3 → 2 (at least 2): cpu:0: 1 → 1, gpu:0: 2 → 1; 1 dissolved, which saved less than 5e-06 s
// CHECK-LABEL: func.func @main
// CHECK:         "a"{{.*}}braid.device = "cpu:0", braid.cluster = 0 : i64
// CHECK:         "c"{{.*}}braid.device = "cpu:0", braid.cluster = 0 : i64
// CHECK:         "b"{{.*}}braid.device = "gpu:0", braid.cluster = 1 : i64
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = braid.opaque "a"(%x) {backends = {cpu = 2.0e-5 : f64, gpu = 1.0e-6 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %c = braid.opaque "c"(%a) {backends = {cpu = 2.0e-5 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  %b = braid.opaque "b"(%c) {backends = {cpu = 1.0e-4 : f64, gpu = 1.0e-5 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}

// -----

// A pinned op stays, whatever a move saves, and so do ops that only the GPU supports.
// REMARK: starts: 2 → 1 (at least 1): gpu:0: 2 → 1
// CHECK-LABEL: func.func @pinned
// CHECK:         "a"{{.*}}braid.device = "gpu:0"
// CHECK:         "b"{{.*}}braid.device = "gpu:0"
func.func @pinned(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = braid.opaque "a"(%x) {backends = {cpu = 1.0e-6 : f64, gpu = 1.0e-6 : f64}, braid.device = "gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %b = braid.opaque "b"(%a) {backends = {gpu = 1.0e-5 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}
